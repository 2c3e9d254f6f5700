#include "../points.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "../bindings.h"
#include "../module.h"

namespace ltr {
namespace {

nb::tuple described(const FoundPoint& found) {
  nb::list columns, weights;
  for (std::size_t i = 0; i < found.size; ++i) {
    columns.append(found.columns[i]);
    weights.append(found.weights[i]);
  }
  return nb::make_tuple(found.value, nb::tuple(columns), nb::tuple(weights));
}

nb::list all_of(const std::vector<FoundPoint>& found) {
  nb::list all;
  for (const FoundPoint& one : found) all.append(described(one));
  return all;
}

// A search and the arrays that it reads.
struct BoundSearch {
  explicit BoundSearch(const nb::kwargs& fields) {
    const Arguments given(fields, kept);
    const auto X = given.rows<double>("X");
    const std::size_t n = X.columns;
    const auto b = given.vector<double>("b");
    PointProblem problem{.X = X,
                         .gains = given.vector<double>("gains", n),
                         .handicaps = given.vector<double>("handicaps", n),
                         .starts = given.vector<std::int64_t>("starts"),
                         .rank_weights = given.vector<double>("rank_weights", n),
                         .A = given.rows<double>("A", b.size(), X.rows),
                         .b = b,
                         .loose = given.get<double>("loose"),
                         .reach = given.get<int>("reach"),
                         .multiples = static_cast<Multiples>(given.get<int>("multiples")),
                         .mean = given.get<bool>("mean"),
                         .exact = given.get<bool>("exact"),
                         .price = given.get<double>("price"),
                         .tolerance = given.get<double>("tolerance")};
    require(problem.starts.size() >= 2 && problem.starts.front() == 0 && problem.starts.back() == std::int64_t(n),
            "lists of all rows");
    require(problem.exact || !problem.mean, "means need exact keys");
    if (given.has("demands")) {
      for (const nb::handle each : given.get<nb::list>("demands")) {
        const auto [gains, weights, least, room] =
            nb::cast<std::tuple<Vector<double>, Vector<double>, double, double>>(each);
        require(gains.shape(0) == n && weights.shape(0) == n, "one number per row");
        problem.demands.push_back({given.keep(gains), given.keep(weights), least, room});
      }
      require(problem.demands.empty() || (problem.exact && problem.starts.size() == 2),
              "demands need exact keys of one list");
    }
    if (given.has("met")) {
      problem.met = [met = given.get<nb::object>("met")](const FoundPoint& found) {
        const nb::gil_scoped_acquire acquire;
        const nb::tuple card = described(found);
        return nb::cast<bool>(met(card[1], card[2]));
      };
    }
    search = search_points(std::move(problem));
  }

  Kept kept;
  std::unique_ptr<PointSearch> search;
};

bool run(BoundSearch& bound, const Rows<std::int64_t>& sets, const Vector<double>& bounds, double value, int threads,
         const Vector<std::uint8_t>& stop, double threshold, std::size_t most) {
  require(sets.shape(1) <= kMostColumns && bounds.shape(0) == sets.shape(0) && threads >= 1, "sets");
  for (std::size_t s = 0; s < sets.shape(0); ++s) require(sets(s, 0) >= 0, "no empty sets");
  const nb::gil_scoped_release release;
  return bound.search->search(view(sets), view(bounds), value, threads, Stop(view(stop)), threshold, most);
}

}  // namespace

void bind_points(nb::module_& module) {
  nb::class_<BoundSearch>(module, "PointSearch", "The search of whole-number weights, see `ltr.exact.points`.")
      .def(
          "__init__", [](BoundSearch* self, const nb::kwargs& fields) { new (self) BoundSearch(fields); },
          nb::sig("def __init__(self, **fields: object) -> None"))
      .def("search", &run, nb::arg("sets"), nb::arg("bounds"), nb::arg("value"), nb::arg("threads"),
           nb::arg("stop").noconvert(), nb::arg("threshold") = kInfinity, nb::arg("most") = 0)
      .def(
          "rise", [](BoundSearch& bound, double value) { bound.search->raise(value); }, nb::arg("value"))
      .def("undecided", [](BoundSearch& bound) { return all_of(bound.search->undecided()); })
      .def_prop_ro("bound", [](BoundSearch& bound) { return bound.search->bound(); })
      .def_prop_ro("best", [](BoundSearch& bound) { return described(bound.search->best()); })
      .def_prop_ro("collected", [](BoundSearch& bound) { return all_of(bound.search->collected()); })
      .def_prop_ro("full", [](const BoundSearch& bound) { return bound.search->full(); })
      .def_prop_ro("visited", [](const BoundSearch& bound) { return bound.search->visited(); });
}

}  // namespace ltr
