#include "search.h"

#include <cmath>

#include "probing.h"

namespace ltr::weight_space {
namespace {

// Share of open pairs below which a box gets its own list: before it is tightened, which often closes it, and before it
// is split, so that its parts share the list.
constexpr double kDense = 0.5, kDenseToSplit = 0.7;
constexpr int kRounds = 4;            // of tightening a box
constexpr double kTrySplit = 0.3;     // share of the best score from which a split is tried out
constexpr double kPromising = 0.3;    // share of the required loss of the halves from which bounds are tried
constexpr std::int64_t kTrials = 63;  // boxes between two candidates, a power of two less 1
constexpr std::int64_t kSmallTrials = 7;
constexpr double kSmall = 1e-3;      // width of a box that more candidates are taken from
constexpr std::size_t kFixed = 128;  // pairs that take as long as the fixed work on a box

// Update the interval of the margin's coordinate to the box.
void scale_margin(const Space& space, Workspace& work, Box& box) {
  const std::size_t d = space.d();
  const auto [low, high] = norm_interval(space, box);
  if (high >= low && high - low < 0.95 * (box.high[d] - box.low[d])) {
    box.low[d] = low;
    box.high[d] = high;
    update_decided(space, work, box);
  }
}

struct Reduced {
  Outcome outcome;  // `kGaveUp` where no hinge bound closes the box
  int coordinate;   // to split, -1 if probing does not decide
};

// Close or tighten a box.
Reduced reduce(const Space& space, Workspace& work, Box& box, std::int64_t cutoff, Found& found) {
  constexpr Reduced kClosed{Outcome::kClosed, -1};
  Reduced reduced{Outcome::kGaveUp, -1};
  double promise = 1.0;
  for (int left = kRounds - 1; left >= 0; --left) {
    if (space.stop.asked()) break;
    if (closed(space.tables, box, cutoff)) return kClosed;
    work.required[0] = box.bound - cutoff;
    std::copy_n(box.room, space.tables.demands(), work.required.data() + 1);
    if (work.list_of(box).pairs.size >= kProbed) {
      const Probed probed = probe(space, work, box);
      reduced.coordinate = probed.coordinate;
      promise = probed.promise;
      if (probed.tightened == Tightened::kEmpty) return kClosed;
      if (probed.tightened == Tightened::kYes) {
        update_decided(space, work, box);
        continue;
      }
    }
    const std::size_t forced = compute_unit_losses(space, work, box);
    if (forced == 0 && promise < kPromising) break;
    if (forced > 0 && space.tables.demands() > 0 && lose_opposites(space, work, box)) {
      if (closed(space.tables, box, cutoff)) return kClosed;
      if (left > 0) continue;
    }
    if (forced > 0 && left > 0) {  // the last round goes on to conflicts, even if this could tighten the box again
      const Tightened tightened = tighten_to_forced_pairs(space, work, box);
      if (tightened == Tightened::kEmpty) return kClosed;
      if (tightened == Tightened::kYes) {
        update_decided(space, work, box);
        continue;
      }
    }
    if (subtract_conflicts(space, work, box)) return kClosed;
    if (space.tables.demands() > 0 && close_across(space, work, box)) return kClosed;
    compute_hinge_slopes(space, work, box);
    const double needed = space.tables.demands() == 0 ? work.needed[0] : 1.0 + 1e-12;
    ++found.hinge_bounds;
    const HingeBound bound = hinge_bound(space, work, box, needed);
    reduced.outcome = bound.outcome;
    if (bound.outcome == Outcome::kClosed) {
      ++found.closed_by_hinge_bounds;
      return kClosed;
    }
    if (bound.phi == -std::numeric_limits<double>::infinity()) break;
    // points with a value above the cutoff satisfy g.x > -needed, and max g.x is at most -phi
    const double room = (needed - bound.phi) * (1.0 + 1e-12);
    if (!tighten_to_hinge_bound(space, box, work.best.data(), room)) break;
    update_decided(space, work, box);
  }
  return closed(space.tables, box, cutoff) ? kClosed : reduced;
}

// Return the coordinate with the largest part in a side constraint that some of the box violates, or -1.
int split_side(const Space& space, const Box& box) {
  int found = -1;
  double largest = 0.0;
  for (std::size_t row = 0; row < space.A.rows; ++row) {
    double most = 0.0;
    for (std::size_t j = 0; j < space.d(); ++j) {
      const double a = space.A(row, j);
      most += side_term(space, a * (a > 0.0 ? box.high[j] : box.low[j]));
    }
    if (most <= space.b[row]) continue;
    for (std::size_t j = 0; j < space.d(); ++j) {
      const double width = box.high[j] - box.low[j], part = std::abs(space.A(row, j)) * width;
      if (width > kNarrow && part > largest) {
        found = static_cast<int>(j);
        largest = part;
      }
    }
  }
  return found;
}

// Return the coordinate to split where probing does not decide, -1 if no width is left.
int branch_on(const Space& space, Workspace& work, const Box& box) {
  const std::size_t d = space.d();
  double *score = work.score.data(), widest = 0.0, largest = 0.0;
  branching_scores(space, work, box);
  for (std::size_t j = 0; j < d; ++j) {
    const double width = box.high[j] - box.low[j];
    score[j] *= width > kNarrow ? width : 0.0;
    widest = std::max(widest, score[j]);
  }
  int found = -1;
  for (std::size_t j = 0; j < d; ++j) {
    if (!(score[j] > kTrySplit * widest)) continue;
    score[j] *= decided_by_half(work, box, j);
    if (score[j] > largest) {
      found = static_cast<int>(j);
      largest = score[j];
    }
  }
  if (found < 0 && space.sparse) {
    for (std::size_t j = 0; j < d; ++j) {
      if (box.used[j] == 0 && box.high[j] > box.low[j]) return static_cast<int>(j);
    }
  }
  return found >= 0 ? found : split_side(space, box);
}

// Replace box t by its parts with weight j above, below and equal to 0; return how many boxes are on the stack.
std::size_t split_at_zero(const Space& space, Workspace& work, std::size_t t, std::size_t j) {
  Box& box = work.boxes[t];
  const double low = box.low[j], high = box.high[j];
  std::size_t top = t + 1;
  for (const bool above : {true, false}) {
    if (!(above ? high > 0.0 : low < 0.0)) continue;
    Box& part = work.boxes[top];
    copy_box(work, box, work.boxes[top - 1], part, true);
    mark_used(space, part, j);
    const double least = space.integer ? 1.0 : 0.0;  // size of the next weight to 0
    (above ? part.low[j] : part.high[j]) = above ? std::max(low, least) : std::min(high, -least);
    update_decided(space, work, part);
    ++top;
  }
  box.low[j] = box.high[j] = 0.0;
  update_decided(space, work, box);
  return top;
}

}  // namespace

Found search(const Space& space, Workspace& work, const Roots& roots, const Limits& limits) {
  const std::size_t columns = space.columns(), deepest = work.depth() - 4;
  Found found;
  found.left.columns = found.narrow.columns = columns;
  found.best.assign(columns, 0.0);
  std::int64_t cutoff = limits.cutoff, spent = 0, looks = 0;
  for (std::size_t root = 0; root < roots.bound.size(); ++root) {
    if (spent >= limits.allowance || space.stop.asked()) {
      found.left.add(roots.low[root].data(), roots.high[root].data(), roots.used[root].data(), roots.bound[root]);
      continue;
    }
    push_root(space, work, roots.low[root].data(), roots.high[root].data(), roots.used[root].data());
    spent += static_cast<std::int64_t>(space.pairs.size * columns / 2);
    ++found.boxes;
    std::size_t entries = 1;
    while (entries > 0) {
      const std::size_t t = entries - 1;
      Box& box = work.boxes[t];
      if (closed(space.tables, box, cutoff)) {
        --entries;
        continue;
      }
      settle_demands(space, work, box);
      compact_open_pairs(space, work, box, kDense);
      const std::size_t size = work.list_of(box).pairs.size;
      if (space.stop.asked()) spent = std::max(spent, limits.allowance);
      if (spent >= limits.allowance || t >= deepest || !work.room_above(box, size)) {
        for (std::size_t entry = 0; entry < entries; ++entry) {
          const Box& other = work.boxes[entry];
          found.left.add(other.low, other.high, other.used, other.bound);
        }
        spent = std::max(spent, limits.allowance);  // one stack is enough to hand back
        break;
      }
      spent += static_cast<std::int64_t>((size + kFixed) * columns / 8);
      if (!space.fixed) scale_margin(space, work, box);
      if (space.A.rows > 0 || space.support < static_cast<std::int64_t>(space.d())) {
        if (!tighten_to_constraints(space, box)) {
          --entries;
          continue;
        }
        update_decided(space, work, box);
      }
      const Reduced reduced = reduce(space, work, box, cutoff, found);
      if (reduced.outcome == Outcome::kClosed) {
        --entries;
        continue;
      }
      if (space.stop.asked()) continue;
      const std::int64_t bound = box.bound;
      const int split = reduced.coordinate >= 0 ? reduced.coordinate : branch_on(space, work, box);
      const auto j = static_cast<std::size_t>(split);
      ++looks;
      const bool small = split >= 0 && box.high[j] - box.low[j] < kSmall;
      if (split < 0 || (looks & kTrials) == 0 || (small && (looks & kSmallTrials) == 0)) {
        compute_pair_losses(work, box);
        for (std::size_t o = 0; o < work.needed.size(); ++o) work.needed[o] = static_cast<double>(work.required[o]);
        compute_hinge_slopes(space, work, box);
        descend(space, work, box);
        if (space.integer) round_candidate(space, work);
        const std::int64_t value = candidate_value(space, work, box);
        if (value > found.value) {
          found.value = value;
          std::copy_n(work.x.data(), columns, found.best.data());
          if (limits.trusted) cutoff = std::max(cutoff, value);
        }
        if (bound <= cutoff) {
          --entries;
          continue;
        }
      }
      if (split < 0) {
        found.narrow.add(box.low, box.high, box.used, bound);
        --entries;
        if (found.narrow.size() == limits.narrow) spent = std::max(spent, limits.allowance);
        continue;
      }
      compact_open_pairs(space, work, box, kDenseToSplit);
      if (space.sparse && box.used[j] == 0) {
        entries = split_at_zero(space, work, t, j);
      } else {
        copy_box(work, box, box, work.boxes[t + 1], false);
        halve(space, work, box, work.boxes[t + 1], j);
        entries = t + 2;
      }
      found.boxes += static_cast<std::int64_t>(entries - t);
    }
  }
  found.cutoff = cutoff;
  found.spent = spent;
  return found;
}

}  // namespace ltr::weight_space
