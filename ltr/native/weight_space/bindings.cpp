// What Python sees of the weight-space search: the space, the memory of a thread, and the search of one thread.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "../module.h"
#include "bounds.h"
#include "operating_points.h"
#include "opposites.h"
#include "probing.h"
#include "search.h"

namespace ltr {
namespace {

using namespace weight_space;

// A space and the arrays that it reads, which must not change but for `stop`.
struct BoundSpace {
  Space space;
  std::vector<std::shared_ptr<void>> arrays;
};

template <typename Array>
auto kept(BoundSpace& bound, const Array& array) {
  bound.arrays.push_back(std::make_shared<Array>(array));
  return view(array);
}

void check(const Tables& tables, const Pairs& pairs) {
  const auto levels = static_cast<std::int64_t>(tables.levels()), members = static_cast<std::int64_t>(tables.members());
  require(tables.start.size() == tables.levels() + 1 && tables.most.size() == tables.levels() &&
              tables.counts_at.size() == tables.levels(),
          "one table per level");
  require(tables.start[0] == 0 && tables.start[tables.levels()] == members, "each member in a level");
  require(tables.step.size() >= tables.contribution.size(), "one step per entry");
  require(tables.first_level.size() == tables.objectives() + 1 && tables.first_level.front() == 0 &&
              tables.first_level.back() == levels,
          "levels of each objective");
  for (std::size_t o = 0; o < tables.objectives(); ++o) {
    require(tables.first_level[o] <= tables.first_level[o + 1], "levels sorted by objective");
  }
  for (std::int64_t level = 0; level < levels; ++level) {
    const auto at = static_cast<std::size_t>(level);
    const std::int64_t size = tables.start[at + 1] - tables.start[at], most = tables.most[at];
    require(size >= 0 && most >= 0 && size <= members && most <= static_cast<std::int64_t>(pairs.size), "levels");
    require(tables.table[at] >= 0 && tables.table[at] + size + most <=
                                         static_cast<std::int64_t>(tables.contribution.size()) + (size == 0 ? 1 : 0),
            "one entry per place and count");
    const std::int64_t counts_at = tables.counts_at[at];
    require(counts_at >= 0 ? counts_at + most + 2 <= static_cast<std::int64_t>(tables.counts_size)
                           : counts_at == -1 && size == 1,
            "one number per count");
    for (std::int64_t i = tables.start[at]; i < tables.start[at + 1]; ++i) {
      require(tables.level[static_cast<std::size_t>(i)] == level, "members sorted by level");
    }
  }
  std::vector<std::int64_t> losable(tables.members());
  for (std::size_t q = 0; q < pairs.size; ++q) {
    require(pairs.member[q] >= (q > 0 ? pairs.member[q - 1] : 0) && pairs.member[q] < members, "pairs by member");
    ++losable[static_cast<std::size_t>(pairs.member[q])];
  }
  for (std::size_t i = 0; i < losable.size(); ++i) {
    require(losable[i] <= tables.most[static_cast<std::size_t>(tables.level[i])], "no more pairs than counts");
  }
}

// Return a field of Python's `Space` by its name, without a copy of its array.
template <typename T>
T field(const nb::kwargs& fields, const char* name) {
  T value{};
  if (!nb::try_cast(fields[name], value, false)) throw nb::type_error(name);
  return value;
}

void make_space(BoundSpace* self, const nb::kwargs& fields) {
  const auto columns = field<Rows<double>>(fields, "columns"), T = field<Rows<double>>(fields, "T"),
             A = field<Rows<double>>(fields, "A");
  const auto slack = field<Vector<double>>(fields, "slack"), b = field<Vector<double>>(fields, "b");
  const auto single = field<Rows<float>>(fields, "single");
  const auto positive = field<Vector<std::int32_t>>(fields, "positive");
  const auto price = field<Vector<std::int64_t>>(fields, "price");
  const auto conflict_columns = field<Rows<float>>(fields, "conflict_columns");
  const auto one = field<Vector<std::int32_t>>(fields, "one"), other = field<Vector<std::int32_t>>(fields, "other");
  const auto apart = field<Vector<float>>(fields, "apart");
  const auto stop = field<Vector<std::uint8_t>>(fields, "stop");
  BoundSpace bound;
  Space& space = bound.space;
  space.T = kept(bound, T);
  const std::size_t d = space.d(), pairs = columns.shape(1), conflicts = one.shape(0);
  require(d > 0 && columns.shape(0) == d + 1, "one row per coordinate");
  require(slack.shape(0) == pairs && positive.shape(0) == pairs, "one entry per pair");
  require(pairs < (std::size_t{1} << 31), "fewer pairs than 2^31");
  require(single.shape(0) == pairs && single.shape(1) == space.single_size(), "one row per pair in single precision");
  require(A.shape(0) == b.shape(0) && (A.shape(0) == 0 || A.shape(1) == d), "one row per constraint");
  require(price.shape(0) == d, "one price per weight");
  require(conflict_columns.shape(0) == d + 1 && conflict_columns.shape(1) == conflicts && other.shape(0) == conflicts &&
              apart.shape(0) == conflicts,
          "one entry per candidate");
  require(stop.shape(0) == 1, "one byte to stop by");
  space.pairs = {kept(bound, columns).data,
                 kept(bound, single).data,
                 kept(bound, slack).data(),
                 kept(bound, positive).data(),
                 pairs,
                 pairs,
                 nullptr,
                 0};
  space.conflicts = {kept(bound, conflict_columns).data,
                     kept(bound, one).data(),
                     kept(bound, other).data(),
                     kept(bound, apart).data(),
                     conflicts,
                     conflicts};
  for (std::size_t c = 0; c < conflicts; ++c) {
    for (const std::int32_t q : {space.conflicts.one[c], space.conflicts.other[c]}) {
      require(q >= 0 && q < static_cast<std::int64_t>(pairs), "candidates of pairs");
    }
  }
  const auto whole = [&](const char* name) { return kept(bound, field<Vector<std::int64_t>>(fields, name)); };
  space.tables = {whole("level"),
                  whole("start"),
                  whole("most"),
                  whole("table"),
                  whole("counts_at"),
                  whole("contribution"),
                  whole("step"),
                  field<std::size_t>(fields, "counts_size"),
                  whole("first_level"),
                  whole("least"),
                  {}};
  check(space.tables, space.pairs);
  std::size_t objective = 0;
  for (const std::int64_t of : space.tables.level) {
    const auto at = static_cast<std::size_t>(of);
    while (of >= space.tables.first_level[objective + 1]) ++objective;
    space.tables.of_member.push_back({space.tables.table[at], space.tables.counts_at[at], objective});
  }
  for (std::size_t q = 0; q < pairs; ++q) {
    if (q == 0 || space.pairs.member[q] != space.pairs.member[q - 1]) space.run.push_back(static_cast<std::int32_t>(q));
  }
  space.pairs.runs = space.run.size();
  space.run.push_back(static_cast<std::int32_t>(pairs));
  const std::size_t weights = (T.shape(0) + 7) / 8 * 8;
  space.axes.resize(d * weights);
  space.axis_sizes.resize(d * weights);
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t i = 0; i < T.shape(0); ++i) {
      space.axes[j * weights + i] = space.T(i, j);
      space.axis_sizes[j * weights + i] = std::abs(space.T(i, j));
    }
  }
  space.A = kept(bound, A);
  space.b = kept(bound, b);
  space.price = kept(bound, price);
  space.support = field<std::int64_t>(fields, "support");
  space.loose = field<double>(fields, "loose");
  space.error = field<double>(fields, "error");
  space.fixed = field<bool>(fields, "fixed");
  space.sparse = field<bool>(fields, "sparse");
  space.integer = field<bool>(fields, "integer");
  space.stop = Stop(kept(bound, stop));
  space.pairs.run = space.run.data();
  new (self) BoundSpace(std::move(bound));
}

template <typename T, typename... Shape>
nb::object array_of(std::vector<T>&& values, Shape... shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* data) noexcept { delete static_cast<std::vector<T>*>(data); });
  return nb::cast(nb::ndarray<nb::numpy, T>(owned->data(), {static_cast<std::size_t>(shape)...}, owner));
}

nb::tuple arrays_of(Boxes&& boxes) {
  const std::size_t size = boxes.size(), columns = boxes.columns;
  return nb::make_tuple(array_of(std::move(boxes.low), size, columns), array_of(std::move(boxes.high), size, columns),
                        array_of(std::move(boxes.used), size, columns), array_of(std::move(boxes.bound), size));
}

void check(const Space& space, Matrix<const double> low, Matrix<const double> high, Matrix<const std::uint8_t> used) {
  for (const std::size_t columns : {low.columns, high.columns, used.columns}) {
    require(columns == space.columns(), "one column per coordinate");
  }
  require(high.rows == low.rows && used.rows == low.rows, "one row per box");
}

nb::tuple search_boxes(const BoundSpace& bound, Workspace& work, Rows<double> low, Rows<double> high,
                       Rows<std::uint8_t> used, Vector<std::int64_t> bounds, std::int64_t target,
                       std::int64_t allowance, std::size_t narrow, bool trusted) {
  const Space& space = bound.space;
  require(work.fits(space), "memory for this space");
  check(space, view(low), view(high), view(used));
  require(bounds.shape(0) == low.shape(0), "one bound per box");
  Found found;
  {
    const nb::gil_scoped_release release;
    found =
        search(space, work, {view(low), view(high), view(used), view(bounds)}, {target, allowance, narrow, trusted});
  }
  const nb::tuple tally = nb::make_tuple(found.boxes, found.hinge_bounds, found.closed_by_hinge_bounds, found.spent);
  const std::size_t columns = space.columns();
  return nb::make_tuple(arrays_of(std::move(found.left)), arrays_of(std::move(found.narrow)), found.target, found.value,
                        array_of(std::move(found.best), columns), tally);
}

// The only box on the stack, for tests.
nb::dict first_box(const Workspace& work) {
  const Box& box = work.boxes[0];
  const std::size_t pairs = work.lists[box.list].pairs.size, columns = work.columns(),
                    demands = work.required.size() - 1;
  const auto copy = [](const double* from, std::size_t size) {
    return array_of(std::vector<double>(from, from + size), size);
  };
  nb::dict found;
  found["low"] = copy(box.low, columns);
  found["high"] = copy(box.high, columns);
  found["upper"] = copy(box.upper, pairs);
  found["lower"] = copy(box.lower, pairs);
  found["bound"] = box.bound;
  found["room"] = array_of(std::vector<std::int64_t>(box.room, box.room + demands), demands);
  found["open"] = array_of(std::vector<std::uint8_t>(box.open, box.open + pairs), pairs);
  found["updates"] = box.updates;
  return found;
}

void push(Workspace& work, const BoundSpace& bound, Rows<double> low, Rows<double> high, Rows<std::uint8_t> used) {
  require(work.fits(bound.space), "memory for this space");
  check(bound.space, view(low), view(high), view(used));
  require(low.shape(0) == 1, "one box");
  push_root(bound.space, work, low.data(), high.data(), used.data());
}

void require_box(const Workspace& work, const BoundSpace& bound) {
  require(work.fits(bound.space) && work.boxes[0].upper != nullptr, "a box of this space");
}

nb::tuple probe_first(Workspace& work, const BoundSpace& bound, std::int64_t required) {
  require_box(work, bound);
  work.required.fill(required);
  const Probed probed = probe(bound.space, work, work.boxes[0]);
  const std::size_t single_size = work.half.size();
  std::vector<std::int64_t> loss(work.loss.data(), work.loss.data() + work.loss.size());
  const int went = probed.tightened == Tightened::kEmpty ? -1 : probed.tightened == Tightened::kYes;
  return nb::make_tuple(went, array_of(std::move(loss), kParts, single_size));
}

void tighten_first(Workspace& work, const BoundSpace& bound, std::size_t j, double low, double high) {
  require(work.fits(bound.space) && work.boxes[0].upper != nullptr && j < bound.space.d(), "a box of this space");
  tighten(bound.space, work.boxes[0], j, low, high);
  update_decided(bound.space, work, work.boxes[0]);
}

void settle_first(Workspace& work, const BoundSpace& bound) {
  require_box(work, bound);
  settle_demands(bound.space, work, work.boxes[0]);
}

// Set what is required of each objective on the first box; return whether all of it is above 0.
bool require_losses(const BoundSpace& bound, Workspace& work, std::int64_t target) {
  require_box(work, bound);
  const Box& box = work.boxes[0];
  work.required[0] = box.bound - target;
  std::copy_n(box.room, bound.space.tables.demands(), work.required.data() + 1);
  return !closed(bound.space.tables, box, target);
}

bool lose_first(Workspace& work, const BoundSpace& bound, std::int64_t target) {
  if (!require_losses(bound, work, target)) return false;
  compute_unit_losses(bound.space, work, work.boxes[0]);
  return lose_opposites(bound.space, work, work.boxes[0]);
}

bool hinge_first(Workspace& work, const BoundSpace& bound, std::int64_t target) {
  if (!require_losses(bound, work, target)) return true;
  const Space& space = bound.space;
  Box& box = work.boxes[0];
  compute_unit_losses(space, work, box);
  if (subtract_conflicts(space, work, box)) return true;
  compute_hinge_slopes(space, work, box);
  const double needed = space.tables.demands() == 0 ? work.needed[0] : 1.0 + 1e-12;
  return hinge_bound(space, work, box, needed).outcome == Outcome::kClosed;
}

// A search of operating points and the arrays that it reads.
struct BoundPoints {
  BoundPoints(Rows<double> points, Vector<std::uint8_t> positive, std::size_t levels, double margin, double reach)
      : points(points), positive(positive), search(view(points), view(positive), levels, margin, reach) {}
  Rows<double> points;
  Vector<std::uint8_t> positive;
  OperatingPoints search;
};

void make_points(BoundPoints* self, Rows<double> points, Vector<std::uint8_t> positive, std::size_t levels,
                 double margin, double reach) {
  require(points.shape(0) == positive.shape(0), "one row per point");
  require(points.shape(0) > 0 && points.shape(1) > 0, "some points");
  require(levels > 0 && levels <= OperatingPoints::kMostLevels, "1 to 8 levels");
  require(margin > 0.0 && reach >= 1.0, "a margin above 0, and weights of up to 1 or more");
  new (self) BoundPoints(points, positive, levels, margin, reach);
}

void start_points(BoundPoints& bound, Vector<std::int64_t> above, Rows<std::int64_t> loss, std::int64_t required) {
  const std::span<const std::int64_t> levels = view(above);
  require(levels.size() == bound.search.levels() && loss.shape(0) == levels.size(), "one row per level");
  require(loss.shape(1) == static_cast<std::size_t>(bound.search.members()) + 1, "one loss per number of positives");
  for (std::size_t l = 0; l < levels.size(); ++l) {
    require(levels[l] >= (l > 0 ? levels[l - 1] + 1 : 0), "levels that ascend");
    for (std::size_t r = 1; r < loss.shape(1); ++r) {
      require(view(loss)(l, r) >= view(loss)(l, r - 1) && view(loss)(l, 0) >= 0, "losses that do not descend");
    }
  }
  require(required > 0, "a loss above 0");
  bound.search.start(levels, view(loss), required);
}

nb::tuple advance_points(BoundPoints& bound, std::int64_t allowance, Vector<std::uint8_t> stop) {
  require(stop.shape(0) == 1, "one byte to stop by");
  OperatingPoints::Progress progress;
  const std::int64_t before = bound.search.spent();
  {
    const nb::gil_scoped_release release;
    progress = bound.search.advance(allowance, Stop(view(stop)));
  }
  return nb::make_tuple(static_cast<int>(progress), bound.search.spent() - before, bound.search.nodes,
                        bound.search.pool());
}

}  // namespace

void bind_weight_space(nb::module_& module) {
  nb::class_<BoundSpace>(module, "SearchSpace",
                         "A problem as the weight-space search reads it; `ltr.exact.weight_space.space` explains it.")
      .def("__init__", &make_space, nb::sig("def __init__(self, **fields: object) -> None"));
  nb::class_<Workspace>(module, "SearchWorkspace",
                        "The memory of one thread of the weight-space search, for spaces of one size.")
      .def(
          "__init__", [](Workspace* self, const BoundSpace& bound) { new (self) Workspace(bound.space); },
          nb::arg("space"))
      .def("push", &push, nb::arg("space"), nb::arg("low"), nb::arg("high"), nb::arg("used"),
           "Put a box on the empty stack, for tests.")
      .def("probe", &probe_first, nb::arg("space"), nb::arg("required"),
           "Probe that box; return whether it was tightened, -1 if nothing is left, and what each part loses.")
      .def("tighten", &tighten_first, nb::arg("space"), nb::arg("j"), nb::arg("low"), nb::arg("high"),
           "Tighten coordinate j of that box.")
      .def("settle", &settle_first, nb::arg("space"), "Take the open pairs of demands that are met off that box.")
      .def("lose_opposites", &lose_first, nb::arg("space"), nb::arg("target"),
           "Count the pairs of that box as lost that are in conflict with forced ones; return whether there are any.")
      .def("hinge_bound", &hinge_first, nb::arg("space"), nb::arg("target"),
           "Return whether a hinge bound closes that box at a target.")
      .def_prop_ro("box", &first_box, "What is known of that box.");
  nb::class_<BoundPoints>(module, "OperatingPoints",
                          "A proof that weights lose positives to negatives; see ``weight_space/operating_points.h``.")
      .def("__init__", &make_points, nb::arg("points"), nb::arg("positive"), nb::arg("levels"), nb::arg("margin"),
           nb::arg("reach"))
      .def("start", &start_points, nb::arg("above"), nb::arg("loss"), nb::arg("required"),
           "Begin to prove that no weights lose less than `required`.")
      .def("advance", &advance_points, nb::arg("allowance"), nb::arg("stop").noconvert(),
           "Go on; return 0 if the allowance is used up, 1 if it is proven, 2 if the levels do not suffice; then the\n"
           "work, the nodes and the infeasible subsystems so far.")
      .def(
          "learn_from",
          [](BoundPoints& to, const BoundPoints& from) {
            require(to.points.shape(0) == from.points.shape(0), "the same points");
            to.search.learn_from(from.search);
          },
          nb::arg("other"), "Take over the infeasible subsystems of a search of the same points with a single level.");
  module.def(
      "find_opposites",
      [](const Rows<float>& directions, const OutRows<std::int32_t>& partner, const OutRows<float>& distance) {
        const std::size_t n = directions.shape(1), wanted = partner.shape(1);
        require(partner.shape(0) == n && distance.shape(0) == n && distance.shape(1) == wanted,
                "one row per direction");
        require(0 < wanted && wanted <= n, "no more partners than directions");
        const nb::gil_scoped_release released;
        find_opposites(view(directions), view(partner), view(distance));
      },
      nb::arg("directions"), nb::arg("partner").noconvert(), nb::arg("distance").noconvert(),
      "Write the directions nearest to the negative of each one, and their distances in the 1-norm.");
  module.def(
      "search_weight_space", &search_boxes, nb::arg("space"), nb::arg("workspace"), nb::arg("low"), nb::arg("high"),
      nb::arg("used"), nb::arg("bound"), nb::arg("target"), nb::arg("allowance"), nb::arg("narrow"),
      nb::arg("trusted") = true,
      "Search boxes for weights with a value above the target.\n\n"
      "Returns the boxes that are left, those too narrow to split, the largest target used (a candidate raises it\n"
      "to its value if candidates are trusted to be feasible), the value of the\n"
      "best candidate and its coordinates, and counts of boxes, hinge bounds, boxes closed by these, and work.");
}

}  // namespace ltr
