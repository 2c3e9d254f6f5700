#include "../recorder.h"

#include <nanobind/stl/vector.h>

#include "../bindings.h"
#include "../module.h"

namespace ltr {
namespace {

using namespace recorder;

// Keeps a problem, and the partition that is being recorded.
class Partition {
 public:
  explicit Partition(const nb::kwargs& fields) {
    const Arguments given(fields, kept_);
    Problem& own = problem_;
    own.columns = given.rows<double>("columns");
    const std::size_t d = own.columns.rows;
    require(d > 0, "features");
    Pairs& pairs = own.pairs;
    pairs.above = given.vector<std::int32_t>("above");
    const std::size_t count = pairs.above.size();
    pairs.below = given.vector<std::int32_t>("below", count);
    pairs.counter = given.vector<std::int32_t>("counter", count);
    pairs.weight = given.vector<std::int64_t>("weight", count);
    pairs.required = given.vector<double>("required", count);
    pairs.size = given.vector<double>("size", count);
    pairs.line = given.vector<std::int32_t>("line", count);
    pairs.ascends = given.vector<std::uint8_t>("ascends", count);
    for (const std::int32_t line : pairs.line) pairs.lines = std::max(pairs.lines, index(line + 1));
    own.tiny = given.get<double>("tiny");
    own.counters = given.get<std::size_t>("counters");
    require_places(pairs.above, own.columns.columns, "observations of pairs");
    require_places(pairs.below, own.columns.columns, "observations of pairs");
    require_places(pairs.counter, own.counters, "counters of pairs");
    own.contribution = given.vector<std::int64_t>("contribution");
    own.b = given.vector<double>("b");
    own.A = given.rows<double>("A", own.b.size(), d);
    own.loose = given.get<double>("loose");
    own.zeros = given.vector<std::uint8_t>("zeros", d);
    own.required = given.vector<std::uint8_t>("required_columns", d);
    own.least = given.get<double>("least");
    own.most = given.get<std::size_t>("most");
    own.whole = given.get<bool>("whole");
    const auto members = given.vector<std::int64_t>("members");
    const auto table = given.vector<std::int64_t>("table", members.size());
    for (std::size_t t = 0; t < members.size(); ++t) own.layers.push_back({index(members[t]), index(table[t])});
    const auto lists = given.rows<std::int64_t>("lists");
    for (std::size_t row = 0; row < lists.rows; ++row) {
      const std::span<const std::int64_t> of = lists[row];
      own.lists.push_back({.first = index(of[0]),
                           .ranked = index(of[1]),
                           .layers = index(of[2]),
                           .layer = index(of[4]),
                           .size = index(of[3])});
    }
    const auto objectives = given.rows<std::int64_t>("objectives");
    std::size_t list = 0, counter = 0;
    for (std::size_t o = 0; o < objectives.rows; ++o) {
      const std::size_t end = list + index(objectives(o, 0)), counters = index(objectives(o, 1));
      own.objectives.push_back({list, end, counter, counters});
      list = end;
      counter += counters;
    }
    require(list == own.lists.size() && counter == own.counters, "objectives of lists and counters");
  }

  void begin(const Vector<double>& low, const Vector<double>& high, const Rows<std::int64_t>& limits, std::size_t boxes,
             std::int64_t checks) {
    const std::size_t d = problem_.columns.rows;
    require(low.shape(0) == d && high.shape(0) == d, "one interval per feature");
    require(limits.shape(0) == problem_.objectives.size() && limits.shape(1) == d + 1,
            "one limit per objective and number of weights");
    recording_ = record(problem_, view(low), view(high), {limits.data(), limits.size()}, boxes, checks);
  }

  int advance(std::int64_t work) {
    require(recording_ != nullptr, "a root to begin with");
    const nb::gil_scoped_release release;
    return static_cast<int>(recording_->advance(work));
  }

  std::vector<std::int32_t> words() const { return recording_ ? recording_->words() : std::vector<std::int32_t>{}; }
  std::int64_t checks() const { return recording_ ? recording_->checks() : 0; }

 private:
  Kept kept_;
  Problem problem_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace

void bind_recorder(nb::module_& module) {
  nb::class_<Partition>(module, "Partition", "A partition that is being recorded, see `ltr.exact.certificate`.")
      .def(
          "__init__", [](Partition* self, const nb::kwargs& fields) { new (self) Partition(fields); },
          nb::sig("def __init__(self, **fields: object) -> None"))
      .def("begin", &Partition::begin, nb::arg("low"), nb::arg("high"), nb::arg("limits"), nb::arg("boxes"),
           nb::arg("checks"), "Begin with a root, given by its interval bounds.")
      .def("advance", &Partition::advance, nb::arg("work"),
           "Examine about this many pairs; return 0 when done, 1 if there is more to do, 2 if a limit was reached.")
      .def("words", &Partition::words, "Return what was done with each box, see `recorder.h`.")
      .def("checks", &Partition::checks, "Return the number of checks left.");
}

}  // namespace ltr
