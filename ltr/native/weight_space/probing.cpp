#include "probing.h"

namespace ltr::weight_space {
namespace {

constexpr double kRoom = 0x1p-20;
constexpr double kTiny = 1e-30;
// there are 1.5 half widths from the better end of a coordinate to the worse quarter
constexpr auto kQuarter = static_cast<float>(1 / 1.5);
constexpr double kCutShare = 1.0 - 1e-6;  // share of a quarter that is cut off, with room for single precision

// Write upper bounds of the open pairs in single precision, and mark the pairs that some part may lose.
LTR_MULTIVERSION void round_bounds_up(const double* __restrict upper, const double* __restrict lower,
                                      const std::uint8_t* __restrict open, float* __restrict ceiling,
                                      float* __restrict quarter, std::uint8_t* __restrict marks, std::size_t size) {
  for (std::size_t q = 0; q < size; ++q) {
    const double span = upper[q] - lower[q];
    const auto rounded = static_cast<float>(upper[q] + span * kRoom);
    ceiling[q] = rounded;
    quarter[q] = rounded * kQuarter;
    const std::uint8_t reached = (span > kTiny) & (upper[q] < tuning::kReached * span);
    marks[q] = open[q] & reached;
  }
}

// What the kernel of probing reads and writes. A *column* is a part of a coordinate: ``part * single_size + j``.
struct Parts {
  const float* single;  // of each pair, one row per pair
  std::size_t single_size;
  const float *ceiling, *quarter;  // upper interval bounds of the pairs
  const float* half;               // half width of each coordinate
  std::int64_t* loss;              // of each column
  std::int32_t* moved;             // members that move to each count, less those that leave it, in each column
  const std::uint8_t* marks;       // 1 for each pair that some part may lose
  std::int32_t* listed;            // room for the positions of such pairs
};

// Count the pairs of one member, at the listed positions from `begin` on, that are lost on each part of the coordinates
// from `first` on. With x of them lost, the member loses ``path[x] - path[0]``, or moves from the count `count` to
// ``count + x`` if there is no path.
//
// *Signs.* x and z are above 0, so the sum of y and one of them is below 0, or its sign bit set, where y is below their
// negative: rounding a sum changes no sign.
template <typename Floats, typename Bits>
[[gnu::always_inline]] inline void add_lost(const Parts& parts, std::size_t first, std::size_t begin,
                                            std::size_t listed, std::size_t count, const std::int64_t* path) {
  constexpr std::size_t kLanes = sizeof(Floats) / sizeof(float);
  Floats half, e;
  load(half, parts.half + first);
  Bits upper_half{}, lower_half{}, upper_quarter{}, lower_quarter{};
  for (std::size_t k = 0; k < listed; ++k) {
    const std::size_t q = begin + static_cast<std::uint32_t>(parts.listed[k]);
    load(e, parts.single + q * parts.single_size + first);
    const float x = parts.ceiling[q], z = parts.quarter[q];
    const Floats y = half * e;
    upper_half += reinterpret_cast<Bits>(x + y) >> 31;
    lower_half += reinterpret_cast<Bits>(x - y) >> 31;
    upper_quarter += reinterpret_cast<Bits>(z + y) >> 31;
    lower_quarter += reinterpret_cast<Bits>(z - y) >> 31;
  }
  const Bits any = upper_half | lower_half | upper_quarter | lower_quarter;
  std::uint32_t lost = 0;
  for (std::size_t j = 0; j < kLanes; ++j) lost |= any[j];
  if (lost == 0) return;
  std::uint32_t counts[kParts][kLanes];
  store(upper_half, counts[0]);
  store(lower_half, counts[1]);
  store(upper_quarter, counts[2]);
  store(lower_quarter, counts[3]);
  const std::size_t columns = kParts * parts.single_size;
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::size_t column = part * parts.single_size + first;
    if (path != nullptr) {
      const std::int64_t none = path[0];
      for (std::size_t j = 0; j < kLanes; ++j) parts.loss[column + j] += path[counts[part][j]] - none;
    } else {
      std::uint32_t here = 0;
      for (std::size_t j = 0; j < kLanes; ++j) here |= counts[part][j];
      if (here == 0) continue;
      std::int32_t* moved = parts.moved + count * columns + column;
      for (std::size_t j = 0; j < kLanes; ++j) {
        moved[j] -= 1;
        moved[counts[part][j] * columns + j] += 1;
      }
    }
  }
}

LTR_MULTIVERSION void add_all_lost(const Parts& parts, std::size_t begin, std::size_t end, std::size_t count,
                                   const std::int64_t* path) {
  const std::size_t listed = list_marked(parts.marks + begin, end - begin, parts.listed);
  if (listed == 0) return;
  std::size_t first = 0;
  for (; first + 16 <= parts.single_size; first += 16) {
    add_lost<Floats16, Bits16>(parts, first, begin, listed, count, path);
  }
  if (first < parts.single_size) add_lost<Floats8, Bits8>(parts, first, begin, listed, count, path);
}

// Add what the members of a level that have moved lose in each column, and clear `moved`. `fewer` is that of the level
// from count 0 on, and all members that moved have gone from the count `first` or above it to `last` or below it.
LTR_MULTIVERSION void add_level_losses(const Parts& parts, const std::int64_t* __restrict contribution,
                                       const std::int32_t* __restrict fewer, std::size_t first, std::size_t last,
                                       std::int32_t* __restrict change) {
  const std::size_t columns = kParts * parts.single_size;
  std::int64_t* __restrict loss = parts.loss;
  std::fill_n(change, columns, 0);
  for (std::size_t m = first; m < last; ++m) {
    std::int32_t* __restrict moved = parts.moved + m * columns;
    const std::int64_t *here = contribution + fewer[m + 1] + m, kept = *here;
    for (std::size_t c = 0; c < columns; ++c) {
      change[c] += moved[c];
      moved[c] = 0;
      loss[c] += here[change[c]] - kept;
    }
  }
  std::fill_n(parts.moved + last * columns, columns, 0);
}

// Write what each part loses at least to `Workspace::loss`.
void compute_losses(const Space& space, Workspace& work, const Box& box) {
  const Pairs& pairs = work.list_of(box).pairs;
  const Tables& tables = space.tables;
  for (std::size_t j = 0; j < space.d(); ++j) work.half[j] = static_cast<float>(0.5 * (box.high[j] - box.low[j]));
  round_bounds_up(box.upper, box.lower, box.open, work.ceiling.data(), work.ceiling_quarter.data(), work.changed.data(),
                  pairs.size);
  work.loss.fill(0);
  Parts parts{pairs.single,     work.half.size(),  work.ceiling.data(), work.ceiling_quarter.data(), work.half.data(),
              work.loss.data(), work.moved.data(), work.changed.data(), work.gather.data()};
  const std::size_t none = tables.levels();
  std::size_t of = 0;                              // the objective whose members are examined
  std::size_t filled = none;                       // the level that `path` is of
  std::size_t moving = none, first = 0, last = 0;  // the level whose members move, and between which counts
  const auto finish_level = [&] {
    if (moving == none) return;
    add_level_losses(parts, tables.contribution.data() + tables.table[moving], box.fewer + tables.counts_at[moving],
                     first, last, work.change.data());
  };
  for (std::size_t run = 0; run < pairs.runs; ++run) {
    const auto begin = index(pairs.run[run]), end = index(pairs.run[run + 1]);
    const auto member = index(pairs.member[begin]);
    if (box.losable[member] == 0) continue;
    const std::size_t objective = tables.of_member[member].objective;
    if (objective != of) {
      finish_level();
      moving = none;
      of = objective;
      parts.loss = work.loss.data() + objective * kParts * work.half.size();
    }
    const auto count = index(box.counts[member]);
    const auto level = index(tables.level[member]);
    if (tables.counts_at[level] < 0) {
      fill_member_path(tables, level, box.counts[member], box.losable[member], work.path.data());
      filled = none;
      add_all_lost(parts, begin, end, count, work.path.data());
    } else if (pairs.size < tuning::kExact || !Sizes::shallow(space, level)) {
      if (level != filled) fill_level_path(tables, box, level, work.path.data());
      filled = level;
      add_all_lost(parts, begin, end, count, work.path.data() + count);
    } else {
      const std::size_t most = count + index(box.losable[member]);
      if (level != moving) {
        finish_level();
        moving = level;
        first = count;
        last = most;
      }
      first = std::min(first, count);
      last = std::max(last, most);
      add_all_lost(parts, begin, end, count, nullptr);
    }
  }
  finish_level();
}

}  // namespace

Probed probe(const Space& space, Workspace& work, Box& box) {
  compute_losses(space, work, box);
  const std::size_t d = space.d(), single_size = work.half.size(), objectives = space.tables.objectives();
  Probed found{Tightened::kNo, -1, 0.0};
  double largest = 0.0;
  for (std::size_t j = 0; j < d; ++j) {
    const double low = box.low[j], high = box.high[j];
    if (high - low <= kNarrow) continue;
    double x = 0.0, y = 0.0;  // shares of the required loss that the halves lose, of the objective that loses most
    bool cut[kParts] = {};
    for (std::size_t o = 0; o < objectives; ++o) {
      const std::int64_t *loss = work.loss.data() + o * kParts * single_size + j, required = work.required[o];
      for (std::size_t part = 0; part < kParts; ++part) cut[part] |= loss[part * single_size] >= required;
      x = std::max(x, static_cast<double>(loss[0]) / static_cast<double>(required));
      y = std::max(y, static_cast<double>(loss[single_size]) / static_cast<double>(required));
    }
    const auto [above, below, upper_quarter, lower_quarter] = cut;
    if (above && below) return {Tightened::kEmpty, -1, 1.0};
    const double middle = 0.5 * (low + high), quarter = 0.25 * (high - low) * kCutShare;
    const double to_low = below ? middle : low + (lower_quarter ? quarter : 0.0);
    const double to_high = above ? middle : high - (upper_quarter ? quarter : 0.0);
    if (to_low > low || to_high < high) {
      tighten(space, box, j, to_low, to_high);
      found.tightened = Tightened::kYes;
    }
    const double score = (x + tuning::kLossOffset) * (y + tuning::kLossOffset);
    if (x + y > 0.0 && score > largest) {
      found.coordinate = static_cast<int>(j);
      found.promise = 0.5 * (x + y);
      largest = score;
    }
  }
  return found;
}

}  // namespace ltr::weight_space
