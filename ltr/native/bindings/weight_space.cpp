// What Python sees of the weight-space search: the space, the memory of a thread, and the search of one thread.
#include "../bindings.h"
#include "../weight_space/bounds.h"
#include "../weight_space/probing.h"
#include "../weight_space/search.h"

namespace ltr {
namespace {

using namespace weight_space;

Space space_of(Arguments& given) {
  Space space;
  space.T = given.rows<double>("T");
  const std::size_t d = space.d();
  require(d > 0, "coordinates");
  const auto positive = given.vector<std::int32_t>("positive");
  const std::size_t pairs = positive.size();
  require(pairs < (std::size_t{1} << 31), "fewer pairs than 2^31");
  space.pairs = {.columns = given.rows<double>("columns", d + 1, pairs).data,
                 .single = given.rows<float>("single", pairs, space.single_size()).data,
                 .slack = given.vector<double>("slack", pairs).data(),
                 .member = positive.data(),
                 .size = pairs,
                 .stride = pairs};
  const auto one = given.vector<std::int32_t>("one");
  const auto other = given.vector<std::int32_t>("other", one.size());
  require_places(one, pairs, "candidates of pairs");
  require_places(other, pairs, "candidates of pairs");
  space.conflicts = {given.rows<float>("conflict_columns", d + 1, one.size()).data, one.data(), other.data(),
                     given.vector<float>("apart", one.size()).data(), one.size()};
  Tables& tables = space.tables;
  tables.table = given.vector<std::int64_t>("table");
  tables.level = given.vector<std::int64_t>("level");
  tables.start = given.vector<std::int64_t>("start", tables.levels() + 1);
  tables.most = given.vector<std::int64_t>("most", tables.levels());
  tables.counts_at = given.vector<std::int64_t>("counts_at", tables.levels());
  tables.contribution = given.vector<std::int64_t>("contribution");
  tables.step = given.vector<std::int64_t>("step");
  tables.counts_size = given.get<std::size_t>("counts_size");
  tables.least = given.vector<std::int64_t>("least");
  tables.first_level = given.vector<std::int64_t>("first_level", tables.objectives() + 1);
  require_places(positive, tables.members(), "pairs of members");
  require_places(tables.level, tables.levels(), "levels of members");
  std::size_t objective = 0;
  for (const std::int64_t of : tables.level) {
    while (of >= tables.first_level[objective + 1]) ++objective;
    tables.of_member.push_back({tables.table[index(of)], tables.counts_at[index(of)], objective});
  }
  for (std::size_t q = 0; q < pairs; ++q) {
    if (q == 0 || positive[q] != positive[q - 1]) space.run.push_back(static_cast<std::int32_t>(q));
  }
  space.pairs.runs = space.run.size();
  space.run.push_back(static_cast<std::int32_t>(pairs));
  space.pairs.run = space.run.data();
  const std::size_t weights = (space.T.rows + 7) / 8 * 8;
  space.axes.resize(d * weights);
  space.axis_sizes.resize(d * weights);
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t i = 0; i < space.T.rows; ++i) {
      space.axes[j * weights + i] = space.T(i, j);
      space.axis_sizes[j * weights + i] = std::abs(space.T(i, j));
    }
  }
  space.b = given.vector<double>("b");
  space.A = given.rows<double>("A", space.b.size(), d);
  space.price = given.vector<std::int64_t>("price", d);
  space.support = given.get<std::int64_t>("support");
  space.loose = given.get<double>("loose");
  space.error = given.get<double>("error");
  space.fixed = given.get<bool>("fixed");
  space.sparse = given.get<bool>("sparse");
  space.integer = given.get<bool>("integer");
  space.stop = given.stop();
  return space;
}

template <typename T, typename... Shape>
nb::object array_of(std::vector<T>&& values, Shape... shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* data) noexcept { delete static_cast<std::vector<T>*>(data); });
  return nb::cast(nb::ndarray<nb::numpy, T>(owned->data(), {index(shape)...}, owner));
}

nb::tuple arrays_of(Boxes&& boxes) {
  const std::size_t size = boxes.size(), columns = boxes.columns;
  return nb::make_tuple(array_of(std::move(boxes.low), size, columns), array_of(std::move(boxes.high), size, columns),
                        array_of(std::move(boxes.used), size, columns), array_of(std::move(boxes.bound), size));
}

void check(const Space& space, const Workspace& work, Matrix<const double> low, Matrix<const double> high,
           Matrix<const std::uint8_t> used) {
  require(work.fits(space), "memory for this space");
  for (const std::size_t columns : {low.columns, high.columns, used.columns}) {
    require(columns == space.columns(), "one column per coordinate");
  }
  require(high.rows == low.rows && used.rows == low.rows, "one row per box");
}

nb::tuple search_boxes(const Space& space, Workspace& work, Matrix<const double> low, Matrix<const double> high,
                       Matrix<const std::uint8_t> used, std::span<const std::int64_t> bounds, std::int64_t target,
                       std::int64_t allowance, std::size_t narrow, bool trusted) {
  check(space, work, low, high, used);
  require(bounds.size() == low.rows, "one bound per box");
  Found found;
  {
    const nb::gil_scoped_release release;
    found = search(space, work, {low, high, used, bounds}, {target, allowance, narrow, trusted});
  }
  const std::size_t columns = space.columns();
  return nb::make_tuple(arrays_of(std::move(found.left)), arrays_of(std::move(found.narrow)), found.target, found.value,
                        array_of(std::move(found.best), columns), found.boxes, found.spent);
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

void push(Workspace& work, const Space& space, Matrix<const double> low, Matrix<const double> high,
          Matrix<const std::uint8_t> used) {
  check(space, work, low, high, used);
  require(low.rows == 1, "one box");
  push_root(space, work, low.data, high.data, used.data);
}

void require_box(const Workspace& work, const Space& space) {
  require(work.fits(space) && work.boxes[0].upper != nullptr, "a box of this space");
}

nb::tuple probe_first(Workspace& work, const Space& space, std::int64_t required) {
  require_box(work, space);
  work.required.fill(required);
  const Probed probed = probe(space, work, work.boxes[0]);
  const std::size_t single_size = work.half.size();
  std::vector<std::int64_t> loss(work.loss.data(), work.loss.data() + work.loss.size());
  const int went = probed.tightened == Tightened::kEmpty ? -1 : probed.tightened == Tightened::kYes;
  return nb::make_tuple(went, array_of(std::move(loss), kParts, single_size));
}

// Set what is required of each objective on the first box; return whether all of it is above 0.
bool require_losses(const Space& space, Workspace& work, std::int64_t target) {
  require_box(work, space);
  const Box& box = work.boxes[0];
  work.required[0] = box.bound - target;
  std::copy_n(box.room, space.tables.demands(), work.required.data() + 1);
  return !closed(space.tables, box, target);
}

bool lose_first(Workspace& work, const Space& space, std::int64_t target) {
  if (!require_losses(space, work, target)) return false;
  compute_unit_losses(space, work, work.boxes[0]);
  return lose_opposites(space, work, work.boxes[0]);
}

bool hinge_first(Workspace& work, const Space& space, std::int64_t target) {
  if (!require_losses(space, work, target)) return true;
  Box& box = work.boxes[0];
  compute_unit_losses(space, work, box);
  if (subtract_conflicts(space, work, box)) return true;
  compute_hinge_slopes(space, work, box);
  const double needed = space.tables.demands() == 0 ? work.needed[0] : 1.0 + 1e-12;
  return hinge_bound(space, work, box, needed).outcome == Outcome::kClosed;
}

}  // namespace

void bind_weight_space(nb::module_& module) {
  nb::class_<Space>(module, "SearchSpace",
                    "A problem as the weight-space search reads it; `ltr.exact.weight_space.space` explains it.")
      .def("__init__", &construct<Space, space_of>, kFields);
  nb::class_<Workspace>(module, "SearchWorkspace",
                        "The memory of one thread of the weight-space search, for spaces of one size.")
      .def(nb::init<const Space&>(), "space"_a)
      .def("push", &push, "space"_a, "low"_a, "high"_a, "used"_a, "Put a box on the empty stack, for tests.")
      .def("probe", &probe_first, "space"_a, "required"_a,
           "Probe that box; return whether it was tightened, -1 if nothing is left, and what each part loses.")
      .def("lose_opposites", &lose_first, "space"_a, "target"_a,
           "Count the pairs of that box as lost that are in conflict with forced ones; return whether there are any.")
      .def("hinge_bound", &hinge_first, "space"_a, "target"_a,
           "Return whether a hinge bound closes that box at a target.")
      .def_prop_ro("box", &first_box, "What is known of that box.");
  module.def(
      "search_weight_space", &search_boxes, "space"_a, "workspace"_a, "low"_a, "high"_a, "used"_a, "bound"_a,
      "target"_a, "allowance"_a, "narrow"_a, "trusted"_a = true,
      "Search boxes for weights with a value above the target.\n\n"
      "Returns the boxes that are left, those too narrow to split, the largest target used (a candidate raises it\n"
      "to its value if candidates are trusted to be feasible), the value of the\n"
      "best candidate and its coordinates, the number of boxes, and the work in pairs examined.");
}

}  // namespace ltr
