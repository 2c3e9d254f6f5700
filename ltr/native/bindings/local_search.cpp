#include "../local_search.h"

#include <nanobind/stl/pair.h>

#include "../bindings.h"
#include "../list_lines.h"
#include "../module.h"
#include "../pair_lines.h"

namespace ltr {
namespace {

// The arrays of pairs, of levels and of lists are copied.
std::unique_ptr<LineSearch> pairs_of(const Arguments& given, std::size_t observations, Stop stop) {
  const auto above = given.vector<std::int32_t>("above");
  const Pairs pairs{above, given.vector<std::int32_t>("below", above.size()),
                    given.vector<double>("limit", above.size()), given.vector<std::int32_t>("positive", above.size())};
  const auto table = given.vector<std::int64_t>("table");
  const Levels levels{.level = given.vector<std::int64_t>("level"),
                      .start = given.vector<std::int64_t>("start", table.size() + 1),
                      .most_lost = given.vector<std::int64_t>("most_lost", table.size()),
                      .table = table,
                      .counts_at = given.vector<std::int64_t>("counts_at", table.size()),
                      .contribution = given.vector<double>("contribution"),
                      .counts_size = given.get<std::int64_t>("counts_size"),
                      .shift = given.get<double>("shift"),
                      .first_level = given.vector<std::int64_t>("first_level"),
                      .least = given.vector<double>("least"),
                      .penalty = given.vector<double>("penalty")};
  const nb::gil_scoped_release release;
  return search_pairs(pairs, levels, observations, stop);
}

std::unique_ptr<LineSearch> lists_of(const Arguments& given, std::size_t observations, Stop stop) {
  const auto row = given.vector<std::int32_t>("row");
  const auto start = given.vector<std::int64_t>("start");
  const Lists lists{.row = row,
                    .offset = given.vector<double>("offset", row.size()),
                    .gain = given.vector<double>("gain", row.size()),
                    .counts = given.vector<std::uint8_t>("counts", row.size()),
                    .start = start,
                    .weight = given.vector<double>("weight"),
                    .weight_at = given.vector<std::int64_t>("weight_at", start.size() - 1),
                    .shift = given.get<double>("shift")};
  const auto threads = given.get<std::size_t>("threads");
  const nb::gil_scoped_release release;
  return search_lists(lists, observations, threads, stop);
}

// An ascent over listed pairs or, where there are rows of items, over lists, and the arrays that it reads.
class Ascents {
 public:
  explicit Ascents(const nb::kwargs& fields) {
    const Arguments given(fields, kept_);
    const auto columns = given.rows<double>("columns");
    const std::size_t d = columns.rows;
    require(d > 0, "features");
    const auto b = given.vector<double>("b");
    const auto project = given.rows<double>("project");
    require(project.rows == 0 || (project.rows == d && project.columns == d), "projection of weights");
    const Shape shape{.columns = columns,
                      .C = given.get<double>("C"),
                      .priced = given.vector<std::uint8_t>("priced", d),
                      .constrained = given.get<bool>("constrained"),
                      .sides = {given.rows<double>("A", b.size(), d), b, given.get<double>("tolerance")},
                      .project = project,
                      .extra = given.get<std::size_t>("extra")};
    const Random random(given.get<std::uint64_t>("seed"));
    const auto make = given.has("row") ? lists_of : pairs_of;
    Kept read;
    ascent_ = std::make_unique<Ascent>(shape, make({fields, read}, columns.columns, given.stop()), random);
  }

  std::pair<double, std::int64_t> ascend(const OutVector<double>& w, std::int64_t lines, bool resume) {
    require(w.shape(0) == ascent_->d(), "one weight per feature");
    const nb::gil_scoped_release release;
    return ascent_->ascend(view(w), lines, resume);
  }

  double objective(const Vector<double>& w, double share) {
    require(w.shape(0) == ascent_->d(), "one weight per feature");
    const nb::gil_scoped_release release;
    return ascent_->objective(view(w), share);
  }

  std::pair<double, double> line_search(const Vector<double>& f, const Vector<double>& g, double low, double high,
                                        double least, double here) {
    require(f.shape(0) == ascent_->n() && g.shape(0) == ascent_->n(), "one score per observation");
    const nb::gil_scoped_release release;
    const auto [value, at] = ascent_->search(view(f), view(g), {low, high}, here, least);
    return {value, at};
  }

 private:
  Kept kept_;
  std::unique_ptr<Ascent> ascent_;
};

std::pair<double, double> clip_segment(const Rows<double>& A, const Vector<double>& b, double tolerance,
                                       const Vector<double>& w, const Vector<double>& v, double low, double high) {
  const std::size_t d = w.shape(0);
  require(v.shape(0) == d && A.shape(1) == d && A.shape(0) == b.shape(0), "one entry per feature");
  const Segment segment = clip({view(A), view(b), tolerance}, view(w), view(v), {low, high});
  return {segment.low, segment.high};
}

}  // namespace

void bind_local_search(nb::module_& module) {
  module.def("clip_segment", &clip_segment, nb::arg("A"), nb::arg("b"), nb::arg("tolerance"), nb::arg("w"),
             nb::arg("v"), nb::arg("low"), nb::arg("high"),
             "Return the part of low <= t <= high on which w + t v satisfies the box and A w <= b, up to the tolerance "
             "relative to the size of the terms.");
  nb::class_<Ascents>(module, "Ascents", "Ascents by exact line searches, see `ltr.exact.local_search`.")
      .def(
          "__init__", [](Ascents* self, const nb::kwargs& fields) { new (self) Ascents(fields); },
          nb::sig("def __init__(self, **fields: object) -> None"))
      .def("ascend", &Ascents::ascend, nb::arg("w").noconvert(), nb::arg("lines"), nb::arg("resume"),
           "Ascend from w, in place; return the objective reached and the lines left, see `local_search.h`.")
      .def("objective", &Ascents::objective, nb::arg("w"), nb::arg("share"),
           "Return the objective at w, with the limits of all pairs multiplied by a share.")
      .def("line_search", &Ascents::line_search, nb::arg("f"), nb::arg("g"), nb::arg("low"), nb::arg("high"),
           nb::arg("least") = -kInfinity, nb::arg("here") = std::numeric_limits<double>::quiet_NaN(),
           "Return the best value of the statistic on a line and where it is, see `line_search.h`.");
}

}  // namespace ltr
