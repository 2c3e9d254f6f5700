#include "../points.h"

#include <nanobind/stl/tuple.h>

#include "found_weights.h"

namespace ltr {
namespace {

points::Problem problem_of(Arguments& given) {
  const auto X = given.rows<double>("X");
  const std::size_t n = X.columns;
  const auto b = given.vector<double>("b");
  points::Problem problem{.kept = {},
                          .X = X,
                          .gains = given.vector<double>("gains", n),
                          .handicaps = given.vector<double>("handicaps", n),
                          .starts = given.vector<std::int64_t>("starts"),
                          .rank_weights = given.vector<double>("rank_weights", n),
                          .demands = {},
                          .met = met_of(given),
                          .A = given.rows<double>("A", b.size(), X.rows),
                          .b = b,
                          .loose = given.get<double>("loose"),
                          .reach = given.get<int>("reach"),
                          .multiples = static_cast<points::Multiples>(given.get<int>("multiples")),
                          .mean = given.get<bool>("mean"),
                          .exact = given.get<bool>("exact"),
                          .price = given.get<double>("price"),
                          .tolerance = given.get<double>("tolerance")};
  require(problem.starts.size() >= 2 && problem.starts.front() == 0 && problem.starts.back() == std::int64_t(n),
          "lists of all rows");
  require(problem.exact || !problem.mean, "means need exact keys");
  if (!given.has("demands")) return problem;
  using Numbers = Array<const double, 1>;
  for (const nb::handle each : given.get<nb::list>("demands")) {
    const auto [gains, weights, least, room] = nb::cast<std::tuple<Numbers, Numbers, double, double>>(each);
    require(gains.shape(0) == n && weights.shape(0) == n, "one number per row");
    problem.demands.push_back({given.keep(gains), given.keep(weights), least, room});
  }
  require(problem.demands.empty() || (problem.exact && problem.starts.size() == 2),
          "demands need exact keys of one list");
  return problem;
}

}  // namespace

void bind_points(nb::module_& module) {
  using points::Search;
  nb::class_<Search>(module, "PointSearch", "The search of whole-number weights, see `points.h`.")
      .def("__init__", &construct<Search, problem_of>, kFields)
      .def("search", &Search::search, "sets"_a, "bounds"_a, "value"_a, "threads"_a, "stop"_a, "threshold"_a = kInfinity,
           "most"_a = 0, kReleased)
      .def("rise", &Search::raise, "value"_a)
      .def("undecided", [](Search& self) { return described(self.undecided()); })
      .def_prop_ro("bound", &Search::bound)
      .def_prop_ro("best", [](Search& self) { return described(self.best()); })
      .def_prop_ro("collected", [](Search& self) { return described(self.collected()); })
      .def_prop_ro("full", &Search::full)
      .def_prop_ro("visited", &Search::visited);
}

}  // namespace ltr
