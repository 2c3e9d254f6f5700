#include "../recorder.h"

#include <nanobind/stl/vector.h>

#include "../bindings.h"

namespace ltr {
namespace {

using namespace recorder;

Problem problem_of(Arguments& given) {
  Problem problem;
  problem.columns = given.rows<double>("columns");
  const std::size_t d = problem.columns.rows;
  require(d > 0, "features");
  Pairs& pairs = problem.pairs;
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
  problem.tiny = given.get<double>("tiny");
  problem.counters = given.get<std::size_t>("counters");
  require_places(pairs.above, problem.columns.columns, "observations of pairs");
  require_places(pairs.below, problem.columns.columns, "observations of pairs");
  require_places(pairs.counter, problem.counters, "counters of pairs");
  problem.contribution = given.vector<std::int64_t>("contribution");
  problem.b = given.vector<double>("b");
  problem.A = given.rows<double>("A", problem.b.size(), d);
  problem.loose = given.get<double>("loose");
  problem.zeros = given.vector<std::uint8_t>("zeros", d);
  problem.required = given.vector<std::uint8_t>("required_columns", d);
  problem.least = given.get<double>("least");
  problem.most = given.get<std::size_t>("most");
  problem.whole = given.get<bool>("whole");
  const auto layers = given.rows<std::int64_t>("layers"), lists = given.rows<std::int64_t>("lists");
  const auto objectives = given.rows<std::int64_t>("objectives");
  require(layers.columns == 2 && lists.columns == 5 && objectives.columns == 4, "numbers of layers and lists");
  for (std::size_t row = 0; row < layers.rows; ++row) {
    problem.layers.push_back({index(layers(row, 0)), index(layers(row, 1))});
  }
  for (std::size_t row = 0; row < lists.rows; ++row) {
    const auto of = lists[row];
    problem.lists.push_back({index(of[0]), index(of[1]), index(of[2]), index(of[3]), index(of[4])});
  }
  for (std::size_t row = 0; row < objectives.rows; ++row) {
    const auto of = objectives[row];
    problem.objectives.push_back({index(of[0]), index(of[1]), index(of[2]), index(of[3])});
    const auto& [begin, end, first, counters] = problem.objectives.back();
    require(end <= lists.rows && first + counters <= problem.counters, "objectives of lists and counters");
  }
  return problem;
}

}  // namespace

void bind_recorder(nb::module_& module) {
  nb::class_<Problem>(module, "PartitionProblem", "A problem as `Partition` reads it, see `ltr.exact.certificate`.")
      .def("__init__", &construct<Problem, problem_of>, kFields);
  nb::class_<Partition>(module, "Partition", "The partition of one root that is being recorded, see `recorder.h`.")
      .def(nb::init<const Problem&, std::span<const double>, std::span<const double>, Matrix<const std::int64_t>,
                    std::size_t, std::int64_t>(),
           "problem"_a, "low"_a, "high"_a, "limits"_a, "boxes"_a, "checks"_a, nb::keep_alive<1, 2>())
      .def(
          "advance", [](Partition& self, std::int64_t work) { return static_cast<int>(self.advance(work)); }, "work"_a,
          kReleased, "Examine about this many pairs; return 0 when done, 1 if there is more to do, 2 at a limit.")
      .def_prop_ro("words", &Partition::words, "What was done with each box.")
      .def_prop_ro("checks", &Partition::checks, "The number of checks left.");
}

}  // namespace ltr
