#include "../local_search.h"

#include <nanobind/stl/pair.h>

#include "../bindings.h"

namespace ltr {
namespace {

std::unique_ptr<LineSearch> pairs_of(Arguments& given, std::size_t observations, Stop stop) {
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

std::unique_ptr<LineSearch> lists_of(Arguments& given, std::size_t observations, Stop stop) {
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

// Over listed pairs or, where there are rows of items, over lists.
Shape shape_of(Arguments& given) {
  const auto columns = given.rows<double>("columns");
  const std::size_t d = columns.rows;
  require(d > 0, "features");
  const auto b = given.vector<double>("b");
  const auto project = given.rows<double>("project");
  require(project.rows == 0 || (project.rows == d && project.columns == d), "projection of weights");
  const auto lines = given.has("row") ? lists_of : pairs_of;
  return {.kept = {},
          .columns = columns,
          .C = given.get<double>("C"),
          .priced = given.vector<std::uint8_t>("priced", d),
          .constrained = given.get<bool>("constrained"),
          .sides = {given.rows<double>("A", b.size(), d), b, given.get<double>("tolerance")},
          .project = project,
          .extra = given.get<std::size_t>("extra"),
          .lines = lines(given, columns.columns, given.stop()),
          .random = Random(given.get<std::uint64_t>("seed"))};
}

std::pair<double, double> clip_segment(Matrix<const double> A, std::span<const double> b, double tolerance,
                                       std::span<const double> w, std::span<const double> v, double low, double high) {
  const std::size_t d = w.size();
  require(v.size() == d && A.columns == d && A.rows == b.size(), "one entry per feature");
  const Segment segment = clip({A, b, tolerance}, w, v, {low, high});
  return {segment.low, segment.high};
}

}  // namespace

void bind_local_search(nb::module_& module) {
  module.def("clip_segment", &clip_segment, "A"_a, "b"_a, "tolerance"_a, "w"_a, "v"_a, "low"_a, "high"_a,
             "Return the part of low <= t <= high on which w + t v satisfies the box and A w <= b, up to the tolerance "
             "relative to the size of the terms.");
  nb::class_<Ascent>(module, "Ascents", "Ascents by exact line searches, see `local_search.h`.")
      .def("__init__", &construct<Ascent, shape_of>, kFields)
      .def("ascend", &Ascent::ascend, "w"_a, "lines"_a, "resume"_a, kReleased)
      .def("objective", &Ascent::objective, "w"_a, "share"_a, kReleased)
      .def("line_search", &Ascent::line_search, "f"_a, "g"_a, "low"_a, "high"_a, "least"_a = -kInfinity,
           "here"_a = std::numeric_limits<double>::quiet_NaN(), kReleased,
           "Return the best value of the statistic on a line and where it is, see `line_search.h`.");
}

}  // namespace ltr
