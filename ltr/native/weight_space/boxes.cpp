#include "boxes.h"

#include <cstring>

namespace ltr::weight_space {
namespace {

constexpr double kRoom = 1e-14;  // added to caps, for coordinates up to 1

LTR_MULTIVERSION void add_coordinate(double* __restrict upper, double* __restrict lower, const double* __restrict e,
                                     double middle, double half, std::size_t size) {
  for (std::size_t q = 0; q < size; ++q) {
    const double x = middle * e[q], y = half * std::abs(e[q]);
    upper[q] += x + y;
    lower[q] += x - y;
  }
}

// The mark of a pair that was open, by its interval bounds: one bit for a pair that they decide.
constexpr std::uint8_t kWon = 1, kLost = 2;
[[gnu::always_inline]] inline std::uint8_t mark_of(double upper, double lower) {
  const std::uint8_t lost = upper < 0.0, won = lower >= 0.0;
  return static_cast<std::uint8_t>(lost << 1) | static_cast<std::uint8_t>(won & (lost ^ 1));
}

// Add a move to the interval bounds of some pairs.
LTR_MULTIVERSION void add_move(double* __restrict upper, double* __restrict lower, const double* __restrict e,
                               double rise, double fall, std::size_t size) {
  for (std::size_t q = 0; q < size; ++q) {
    const double x = rise * e[q], y = -fall * e[q];  // of different signs, as the box becomes smaller
    upper[q] += x < y ? x : y;
    lower[q] += x > y ? x : y;
  }
}

// Take the pairs that their interval bounds decide off `open`, and mark them.
LTR_MULTIVERSION void mark_decided(const double* __restrict upper, const double* __restrict lower,
                                   std::uint8_t* __restrict open, std::uint8_t* __restrict marks, std::size_t size) {
  for (std::size_t q = 0; q < size; ++q) {
    const std::uint8_t was = open[q], mark = mark_of(upper[q], lower[q]);
    marks[q] = was != 0 ? mark : std::uint8_t{0};
    open[q] = mark != 0 ? std::uint8_t{0} : was;
  }
}

// Count the pairs decided and the pairs lost among the marks from `begin` to before `end`.
[[gnu::always_inline]] inline std::pair<int, int> count_marks(const std::uint8_t* marks, std::size_t begin,
                                                              std::size_t end) {
  constexpr std::uint64_t kAllLost = kLost * (~std::uint64_t{0} / 255);
  int decided = 0, lost = 0;
  for (std::size_t q = begin; q < end; q += 8) {
    std::uint64_t word;
    std::memcpy(&word, marks + q, 8);
    if (end - q < 8) word = first_bytes(word, end - q);
    decided += std::popcount(word);
    lost += std::popcount(word & kAllLost);
  }
  return {decided, lost};
}

// Enter the marked pairs of a box as decided into its counts and its bound.
LTR_MULTIVERSION void count_decided(const Tables& tables, Box& box, const Pairs& pairs, const std::uint8_t* marks) {
  for (std::size_t run = 0; run < pairs.runs; ++run) {
    const auto begin = index(pairs.run[run]), end = index(pairs.run[run + 1]);
    const auto [decided, lost] = count_marks(marks, begin, end);
    if (decided == 0) continue;
    const auto member = index(pairs.member[begin]);
    box.losable[member] -= decided;
    box.alive -= index(decided);
    if (lost > 0) {
      bound_of(box, tables.of_member[member].objective) += raise_count(tables, box.counts, box.fewer, member, lost);
    }
  }
}

// Write the interval bounds of the upper half of a box, whose lower half stays in place, and mark what each decides.
LTR_MULTIVERSION void split(double* __restrict upper, double* __restrict lower, double* __restrict upper2,
                            double* __restrict lower2, const double* __restrict e, std::uint8_t* __restrict open,
                            std::uint8_t* __restrict open2, std::uint8_t* __restrict marks,
                            std::uint8_t* __restrict marks2, double rise, double fall, std::size_t size) {
  for (std::size_t q = 0; q < size; ++q) {
    const double x = rise * e[q], y = -fall * e[q];
    const double a = upper[q] + (y < 0.0 ? y : 0.0), b = lower[q] + (y < 0.0 ? 0.0 : y);
    const double c = upper[q] + (x < 0.0 ? x : 0.0), d = lower[q] + (x < 0.0 ? 0.0 : x);
    upper[q] = a;
    lower[q] = b;
    upper2[q] = c;
    lower2[q] = d;
    const std::uint8_t was = open[q], mark = mark_of(a, b), mark2 = mark_of(c, d);
    marks[q] = was != 0 ? mark : std::uint8_t{0};
    marks2[q] = was != 0 ? mark2 : std::uint8_t{0};
    open[q] = mark != 0 ? std::uint8_t{0} : was;
    open2[q] = mark2 != 0 ? std::uint8_t{0} : was;
  }
}

// Copy some rows of a multiple of 8 numbers each.
LTR_MULTIVERSION void take_singles(const float* source, std::size_t single_size, const std::int32_t* index,
                                   std::size_t kept, float* into) {
  Floats8 numbers;
  for (std::size_t k = 0; k < kept; ++k) {
    const float* from = source + static_cast<std::uint32_t>(index[k]) * single_size;
    for (std::size_t j = 0; j < single_size; j += 8, into += 8) {
      load(numbers, from + j);
      store(numbers, into);
    }
  }
}

template <typename T>
void take(const T* source, const std::int32_t* index, std::size_t kept, T* into) {
  for (std::size_t k = 0; k < kept; ++k) into[k] = source[static_cast<std::uint32_t>(index[k])];
}

// Take the same entries of several rows.
template <typename T>
void take_rows(const T* source, std::size_t stride, const std::int32_t* index, std::size_t kept, T* into,
               std::size_t into_stride, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row) take(source + row * stride, index, kept, into + row * into_stride);
}

// Copy the open pairs of a box to a list of its own, padded to a multiple of 8 with pairs that stay undecided but do
// not count as open.
void copy_open_pairs(Workspace& work, Box& box) {
  const PairList& from = work.lists[box.list];
  PairList& into = work.lists[box.list + 1];
  const Pairs& old = from.pairs;
  std::int32_t* index = work.gather.data();
  const std::size_t kept = list_marked(box.open, old.size, index);
  const std::size_t padded = (kept + 7) / 8 * 8, columns = work.columns(), at = from.pairs_end;
  const std::size_t single_size = work.half.size();
  double* column = work.pair_columns.data() + at * columns;
  float* single = work.pair_single.data() + at * single_size;
  double* slack = work.slack.data() + at;
  std::int32_t* member = work.member.data() + at;
  take_rows(old.columns, old.stride, index, kept, column, padded, columns);
  for (std::size_t j = 0; j < columns; ++j) std::fill(column + j * padded + kept, column + (j + 1) * padded, 0.0);
  if (padded >= tuning::kProbed) {  // shorter lists are not probed
    take_singles(old.single, single_size, index, kept, single);
    std::fill(single + kept * single_size, single + padded * single_size, 0.0f);
  }
  take(old.slack, index, kept, slack);
  take(old.member, index, kept, member);
  take(box.upper, index, kept, box.upper);
  take(box.lower, index, kept, box.lower);
  std::fill(slack + kept, slack + padded, 0.0);
  std::fill(member + kept, member + padded, 0);
  std::fill(box.upper + kept, box.upper + padded, 1.0);
  std::fill(box.lower + kept, box.lower + padded, -1.0);
  for (std::size_t k = 0; k < padded; ++k) box.open[k] = k < kept;
  std::int32_t* run = work.run.data() + at + box.list;  // each list has one entry more
  std::size_t runs = 0;
  for (std::size_t k = 0; k < kept; ++k) {
    run[runs] = static_cast<std::int32_t>(k);
    runs += k == 0 || member[k] != member[k - 1];
  }
  run[runs] = static_cast<std::int32_t>(kept);
  into.pairs = {column, single, slack, member, padded, padded, run, runs};
  into.pairs_end = at + padded;
}

// Copy the conflicts of a pair list to the next list, which has the first `open` pairs in `gather`.
void keep_conflicts(Workspace& work, const PairList& from, PairList& into, std::size_t open) {
  const Conflicts& old = from.conflicts;
  std::int32_t* place = work.place.data();  // of each pair in the next list, -1 for none
  if (old.size > 0) std::fill_n(place, from.pairs.size, -1);
  for (std::size_t k = 0; k < open && old.size > 0; ++k) place[work.gather[k]] = static_cast<std::int32_t>(k);
  std::size_t kept = 0;
  for (std::size_t c = 0; c < old.size; ++c) {
    work.listed[kept] = static_cast<std::int32_t>(c);
    kept += (place[old.one[c]] >= 0) & (place[old.other[c]] >= 0);
  }
  std::int32_t *one = work.one.data() + from.conflicts_end, *other = work.other.data() + from.conflicts_end;
  float* apart = work.apart.data() + from.conflicts_end;
  float* columns = work.conflict_columns.data() + from.conflicts_end * work.columns();
  take_rows(old.columns, old.size, work.listed.data(), kept, columns, kept, work.columns());
  take(old.apart, work.listed.data(), kept, apart);
  for (std::size_t k = 0; k < kept; ++k) {
    one[k] = place[old.one[work.listed[k]]];
    other[k] = place[old.other[work.listed[k]]];
  }
  into.conflicts = {columns, one, other, apart, kept};
  into.conflicts_end = from.conflicts_end + kept;
}

// Compute bounds of max|(Tv)_j| over a box; T has its coordinates in rows, padded with zeros to a multiple of 8.
LTR_MULTIVERSION void norm_bounds(const double* axes, const double* sizes, std::size_t weights, std::size_t d,
                                  const double* low, const double* high, double& least, double& most) {
  for (std::size_t first = 0; first < weights; first += 8) {
    double middle[8] = {}, half[8] = {};
    for (std::size_t j = 0; j < d; ++j) {
      const double x = 0.5 * (low[j] + high[j]), y = 0.5 * (high[j] - low[j]);
      for (std::size_t i = 0; i < 8; ++i) {
        middle[i] += x * axes[j * weights + first + i];
        half[i] += y * sizes[j * weights + first + i];
      }
    }
    for (std::size_t i = 0; i < 8; ++i) {
      const double error = 1e-14 * (std::abs(middle[i]) + half[i] + 1e-3);
      least = std::max(least, std::abs(middle[i]) - half[i] - error);
      most = std::max(most, std::abs(middle[i]) + half[i] + error);
    }
  }
}

double least_term(const Space& space, const Box& box, std::size_t row, std::size_t j) {
  const double a = space.A(row, j);
  return side_term(space, a * (a > 0.0 ? box.low[j] : box.high[j]));
}

}  // namespace

void compute_interval_bounds(Workspace& work, Box& box) {
  const Pairs& pairs = work.list_of(box).pairs;
  for (std::size_t q = 0; q < pairs.size; ++q) {
    box.upper[q] = pairs.slack[q];
    box.lower[q] = -pairs.slack[q];
  }
  for (std::size_t j = 0; j < work.columns(); ++j) {
    const double middle = 0.5 * (box.low[j] + box.high[j]);
    // outwards: the middle is rounded, and both ends of the box must be within
    const double half = std::max(box.high[j] - middle, middle - box.low[j]);
    add_coordinate(box.upper, box.lower, pairs.column(j), middle, half, pairs.size);
  }
  std::copy_n(box.low, work.columns(), box.moved_low);
  std::copy_n(box.high, work.columns(), box.moved_high);
  box.updates = 0;
}

void update_decided(const Space& space, Workspace& work, Box& box) {
  const Pairs& pairs = work.list_of(box).pairs;
  if (box.updates >= tuning::kUpdates) compute_interval_bounds(work, box);
  std::size_t number = 0;
  for (std::size_t j = 0; j < work.columns(); ++j) {
    const double rise = box.low[j] - box.moved_low[j], fall = box.moved_high[j] - box.high[j];
    if (rise == 0.0 && fall == 0.0) continue;
    work.moves[number++] = {pairs.column(j), rise, fall};
    box.moved_low[j] = box.low[j];
    box.moved_high[j] = box.high[j];
  }
  box.updates += 2 * static_cast<int>(number);
  for (std::size_t first = 0; first < pairs.size; first += tuning::kCached) {
    const std::size_t size = std::min(tuning::kCached, pairs.size - first);
    double *upper = box.upper + first, *lower = box.lower + first;
    for (std::size_t k = 0; k < number; ++k) {
      const Move& move = work.moves[k];
      add_move(upper, lower, move.e + first, move.rise, move.fall, size);
    }
    mark_decided(upper, lower, box.open + first, work.changed.data() + first, size);
  }
  count_decided(space.tables, box, pairs, work.changed.data());
}

void copy_box(Workspace& work, const Box& box, const Box& top, Box& child, bool with_bounds) {
  const std::size_t size = work.list_of(box).pairs.size, columns = work.columns();
  child.list = box.list;
  child.bound = box.bound;
  child.alive = box.alive;
  child.updates = box.updates;
  child.upper = top.upper + size;
  child.lower = top.lower + size;
  child.open = top.open + size;
  std::copy_n(box.low, columns, child.low);
  std::copy_n(box.high, columns, child.high);
  std::copy_n(box.moved_low, columns, child.moved_low);
  std::copy_n(box.moved_high, columns, child.moved_high);
  std::copy_n(box.used, columns, child.used);
  std::copy_n(box.point, columns, child.point);
  std::copy_n(box.counts, work.unit_loss.size(), child.counts);
  std::copy_n(box.losable, work.unit_loss.size(), child.losable);
  std::copy_n(box.fewer, work.trial_fewer.size(), child.fewer);
  std::copy_n(box.room, work.required.size() - 1, child.room);
  if (with_bounds) {
    std::copy_n(box.upper, size, child.upper);
    std::copy_n(box.lower, size, child.lower);
    std::copy_n(box.open, size, child.open);
  }
}

void halve(const Space& space, Workspace& work, Box& box, Box& child, std::size_t j) {
  const Pairs& pairs = work.list_of(box).pairs;
  const double middle = 0.5 * (box.low[j] + box.high[j]);
  const double high = space.integer ? std::floor(middle) : middle, low = space.integer ? high + 1.0 : middle;
  split(box.upper, box.lower, child.upper, child.lower, pairs.column(j), box.open, child.open, work.changed.data(),
        work.changed_too.data(), low - box.low[j], box.high[j] - high, pairs.size);
  box.high[j] = box.moved_high[j] = high;
  child.low[j] = child.moved_low[j] = low;
  child.updates = ++box.updates;
  count_decided(space.tables, child, pairs, work.changed_too.data());
  count_decided(space.tables, box, pairs, work.changed.data());
}

std::pair<double, double> norm_interval(const Space& space, const Box& box) {
  const std::size_t d = space.d();
  double least = 0.0, most = 0.0;
  norm_bounds(space.axes.data(), space.axis_sizes.data(), space.axes.size() / d, d, box.low, box.high, least, most);
  return {std::max(least, box.low[d]), std::min(box.high[d], most)};
}

void mark_used(const Space& space, Box& box, std::size_t j) {
  if (box.used[j] != 0) return;
  box.used[j] = 1;
  box.bound -= space.price[j];
}

void tighten(const Space& space, Box& box, std::size_t j, double low, double high) {
  if (space.integer) {
    low = std::ceil(low - kWhole);
    high = std::floor(high + kWhole);
    if (low > high) {
      box.bound = kNever;
      return;
    }
  }
  box.low[j] = low;
  box.high[j] = high;
  if (low > 0.0 || high < 0.0) mark_used(space, box, j);
}

Tightened tighten_to_forced_pairs(const Space& space, Workspace& work, Box& box) {
  const Pairs& pairs = work.list_of(box).pairs;
  const std::size_t d = space.d();
  double *low = work.least.data(), *high = work.largest.data();
  std::copy_n(box.low, d, low);
  std::copy_n(box.high, d, high);
  for (std::size_t q = 0; q < pairs.size; ++q) {
    if (box.open[q] == 0 || work.forced[index(pairs.member[q])] == 0) continue;
    const double room = box.upper[q];
    for (std::size_t j = 0; j < d; ++j) {
      const double e = pairs.column(j)[q];
      if (std::abs(e) * (box.high[j] - box.low[j]) > room) {
        const double cap = room / std::abs(e) + kRoom;
        if (e > 0.0) {
          low[j] = std::max(low[j], box.high[j] - cap);
        } else {
          high[j] = std::min(high[j], box.low[j] + cap);
        }
      }
    }
  }
  Tightened tightened = Tightened::kNo;
  for (std::size_t j = 0; j < d; ++j) {
    if (high[j] < low[j]) return Tightened::kEmpty;
    if (high[j] - low[j] < tuning::kWorthwhile * (box.high[j] - box.low[j])) {
      tighten(space, box, j, low[j], high[j]);
      tightened = Tightened::kYes;
    }
  }
  return tightened;
}

bool tighten_to_hinge_bound(const Space& space, Box& box, const double* g, double room) {
  bool tightened = false;
  for (std::size_t j = 0; j < space.d(); ++j) {
    double low = box.low[j], high = box.high[j];
    if (std::abs(g[j]) * (high - low) * tuning::kWorthwhile <= room) continue;
    const double cap = room / std::abs(g[j]) + kRoom;
    if (g[j] > 0.0) {
      low = std::max(low, high - cap);
    } else {
      high = std::min(high, low + cap);
    }
    if (high - low < box.high[j] - box.low[j]) {
      tighten(space, box, j, low, high);
      tightened = true;
    }
  }
  return tightened;
}

bool tighten_to_constraints(const Space& space, Box& box) {
  const std::size_t d = space.d();
  if (space.support < static_cast<std::int64_t>(d)) {
    std::int64_t used = 0;
    for (std::size_t j = 0; j < d; ++j) used += box.used[j];
    if (used > space.support) return false;
    if (used == space.support) {
      for (std::size_t j = 0; j < d; ++j) {
        if (box.used[j] == 0 && box.high[j] > box.low[j]) tighten(space, box, j, 0.0, 0.0);
      }
    }
  }
  for (std::size_t row = 0; row < space.A.rows; ++row) {
    double room = space.b[row];
    for (std::size_t j = 0; j < d; ++j) room -= least_term(space, box, row, j);
    if (room < 0.0) return false;
    for (std::size_t j = 0; j < d; ++j) {
      const double a = space.A(row, j), low = box.low[j], high = box.high[j];
      if (std::abs(a) * (high - low) * tuning::kWorthwhile <= room) continue;
      double rest = space.b[row];  // what the others leave, summed without this term: it may be far smaller
      for (std::size_t k = 0; k < d; ++k) {
        if (k != j) rest -= least_term(space, box, row, k);
      }
      const double end = rest / (rest > 0.0 ? 1.0 - space.loose : 1.0 + space.loose) / a;
      if (a > 0.0) {
        tighten(space, box, j, low, std::max(low, std::min(high, end)));
      } else {
        tighten(space, box, j, std::min(high, std::max(low, end)), high);
      }
    }
  }
  return true;
}

void push_root(const Space& space, Workspace& work, const double* low, const double* high, const std::uint8_t* used) {
  Box& box = work.boxes[0];
  const std::size_t columns = space.columns(), pairs = space.pairs.size;
  const Tables& tables = space.tables;
  work.lists[0] = {space.pairs, space.conflicts, pairs, space.conflicts.size};
  box.list = 0;
  box.upper = work.upper.data();
  box.lower = work.lower.data();
  box.open = work.open.data();
  for (std::size_t j = 0; j < columns; ++j) {
    box.low[j] = low[j];
    box.high[j] = high[j];
    box.used[j] = used[j];
    box.point[j] = 0.5 * (low[j] + high[j]);
  }
  std::fill_n(box.open, pairs, std::uint8_t{1});
  std::fill_n(box.counts, tables.members(), 0);
  std::fill_n(box.losable, tables.members(), 0);
  for (std::size_t q = 0; q < pairs; ++q) ++box.losable[space.pairs.member[q]];
  box.alive = pairs;
  std::fill_n(box.fewer, tables.counts_size, 0);
  box.bound = 0;
  for (std::size_t demand = 0; demand < tables.demands(); ++demand) box.room[demand] = 1 - tables.least[demand];
  for (std::size_t objective = 0; objective < tables.objectives(); ++objective) {
    std::int64_t& most = bound_of(box, objective);
    const auto last = index(tables.first_level[objective + 1]);
    for (auto level = index(tables.first_level[objective]); level < last; ++level) {
      const std::int64_t members = tables.start[level + 1] - tables.start[level], counts_at = tables.counts_at[level];
      for (std::int64_t p = 0; p < members; ++p) {
        most += tables.contribution[index(tables.table[level] + p)];
      }
      if (counts_at >= 0) {
        std::fill_n(box.fewer + counts_at + 1, tables.most[level] + 1, static_cast<std::int32_t>(members));
      }
    }
  }
  for (std::size_t j = 0; j + 1 < columns; ++j) box.bound -= space.price[j] * box.used[j];
  compute_interval_bounds(work, box);
  update_decided(space, work, box);
}

void compact_open_pairs(const Space& space, Workspace& work, Box& box, double dense) {
  const PairList& list = work.lists[box.list];
  const std::size_t size = list.pairs.size;
  const bool room = list.pairs_end + size + 8 < work.slack.size() &&
                    list.conflicts_end + list.conflicts.size <= work.apart.size() && box.list + 1 < work.lists.size();
  if (static_cast<double>(box.alive) < dense * static_cast<double>(size) && room) {
    copy_open_pairs(work, box);
    keep_conflicts(work, list, work.lists[box.list + 1], box.alive);
    ++box.list;
  }
  if (box.updates > tuning::kUpdates) {
    compute_interval_bounds(work, box);
    update_decided(space, work, box);
  }
}

}  // namespace ltr::weight_space
