#include "search.h"

#include "probing.h"

namespace ltr::weight_space {
namespace {

// Update the interval of the margin's coordinate to the box.
void scale_margin(const Space& space, Workspace& work, Box& box) {
  const std::size_t d = space.d();
  const auto [low, high] = norm_interval(space, box);
  if (high >= low && high - low < tuning::kMarginWorthwhile * (box.high[d] - box.low[d])) {
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
Reduced reduce(const Space& space, Workspace& work, Box& box, std::int64_t target) {
  constexpr Reduced kClosed{Outcome::kClosed, -1};
  Reduced reduced{Outcome::kGaveUp, -1};
  double promise = 1.0;
  for (int left = tuning::kRounds - 1; left >= 0; --left) {
    if (space.stop.asked()) break;
    if (closed(space.tables, box, target)) return kClosed;
    work.required[0] = box.bound - target;
    std::copy_n(box.room, space.tables.demands(), work.required.data() + 1);
    if (work.list_of(box).pairs.size >= tuning::kProbed) {
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
    if (forced == 0 && promise < tuning::kPromising) break;
    if (forced > 0 && space.tables.demands() > 0 && lose_opposites(space, work, box)) {
      if (closed(space.tables, box, target)) return kClosed;
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
    compute_hinge_slopes(space, work, box);
    const double needed = space.tables.demands() == 0 ? work.needed[0] : 1.0 + 1e-12;
    const HingeBound bound = hinge_bound(space, work, box, needed);
    reduced.outcome = bound.outcome;
    if (bound.outcome == Outcome::kClosed) return kClosed;
    if (bound.phi == -kInfinity) break;
    // points with a value above the target satisfy g.x > -needed, and max g.x is at most -phi
    const double room = (needed - bound.phi) * (1.0 + 1e-12);
    if (!tighten_to_hinge_bound(space, box, work.best.data(), room)) break;
    update_decided(space, work, box);
  }
  return closed(space.tables, box, target) ? kClosed : reduced;
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
    if (!(score[j] > tuning::kTrySplit * widest)) continue;
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

// The search of one thread: boxes below one root after the other, on one stack.
class Search {
 public:
  Search(const Space& space, Workspace& work, const Limits& limits)
      : space_(space), work_(work), limits_(limits), deepest_(Workspace::kDepth - 4) {
    found_.target = limits.target;
    found_.left.columns = found_.narrow.columns = space.columns();
    found_.best.assign(space.columns(), 0.0);
  }

  Found run(const Roots& roots) {
    for (std::size_t root = 0; root < roots.bound.size(); ++root) {
      const double *low = roots.low[root].data(), *high = roots.high[root].data();
      const std::uint8_t* used = roots.used[root].data();
      if (ends()) {
        found_.left.add(low, high, used, roots.bound[root]);
        continue;
      }
      push_root(space_, work_, low, high, used);
      found_.spent += static_cast<std::int64_t>(space_.pairs.size * space_.columns() / 2);
      ++found_.boxes;
      for (stack_ = 1; stack_ > 0;) look();
    }
    if (ended_) found_.spent = std::max(found_.spent, limits_.allowance);  // what is handed back counts as all of it
    return std::move(found_);
  }

 private:
  bool ends() {
    ended_ = ended_ || space_.stop.asked();
    return ended_ || found_.spent >= limits_.allowance;
  }

  // Look at the box on top of the stack: close it, split it, keep it as too narrow, or hand the stack back.
  void look() {
    const std::size_t top = stack_ - 1;
    Box& box = work_.boxes[top];
    if (closed(space_.tables, box, found_.target)) return pop();
    compact_open_pairs(space_, work_, box, tuning::kDense);
    const std::size_t size = work_.list_of(box).pairs.size;
    if (ends() || top >= deepest_ || !work_.room_above(box, size)) return hand_back();
    found_.spent += static_cast<std::int64_t>((size + tuning::kFixed) * space_.columns() / 8);
    if (!tighten(box)) return pop();
    const Reduced reduced = reduce(space_, work_, box, found_.target);
    if (reduced.outcome == Outcome::kClosed) return pop();
    if (space_.stop.asked()) return;  // the next look hands back
    const std::int64_t bound = box.bound;
    const int split = reduced.coordinate >= 0 ? reduced.coordinate : branch_on(space_, work_, box);
    if (tries_candidate(box, split)) {
      try_candidate(box);
      if (bound <= found_.target) return pop();
    }
    if (split < 0) return keep_narrow(box, bound);
    branch(box, top, index(split));
  }

  void pop() { --stack_; }

  void hand_back() {
    for (std::size_t entry = 0; entry < stack_; ++entry) {
      const Box& box = work_.boxes[entry];
      found_.left.add(box.low, box.high, box.used, box.bound);
    }
    stack_ = 0;
    ended_ = true;  // one stack is enough to hand back
  }

  // Tighten a box to the margin and the side constraints; return whether a point is left.
  bool tighten(Box& box) {
    if (!space_.fixed) scale_margin(space_, work_, box);
    if (space_.A.rows == 0 && space_.support >= static_cast<std::int64_t>(space_.d())) return true;
    if (!tighten_to_constraints(space_, box)) return false;
    update_decided(space_, work_, box);
    return true;
  }

  // Return whether to evaluate a candidate: in every so manieth box, and in those that are not split.
  bool tries_candidate(const Box& box, int split) {
    ++looks_;
    if (split < 0 || (looks_ & tuning::kTrials) == 0) return true;
    return box.high[split] - box.low[split] < tuning::kSmall && (looks_ & tuning::kSmallTrials) == 0;
  }

  void try_candidate(const Box& box) {
    compute_pair_losses(work_, box);
    for (std::size_t o = 0; o < work_.needed.size(); ++o) work_.needed[o] = static_cast<double>(work_.required[o]);
    compute_hinge_slopes(space_, work_, box);
    descend(space_, work_, box);
    const std::int64_t value = candidate_value(space_, work_, box);
    if (value <= found_.value) return;
    found_.value = value;
    std::copy_n(work_.x.data(), space_.columns(), found_.best.data());
    if (limits_.trusted) found_.target = std::max(found_.target, value);
  }

  void keep_narrow(const Box& box, std::int64_t bound) {
    found_.narrow.add(box.low, box.high, box.used, bound);
    pop();
    if (found_.narrow.size() == limits_.narrow) ended_ = true;
  }

  void branch(Box& box, std::size_t top, std::size_t j) {
    compact_open_pairs(space_, work_, box, tuning::kDenseToSplit);
    if (space_.sparse && box.used[j] == 0) {
      stack_ = split_at_zero(space_, work_, top, j);
    } else {
      copy_box(work_, box, box, work_.boxes[top + 1], false);
      halve(space_, work_, box, work_.boxes[top + 1], j);
      stack_ = top + 2;
    }
    found_.boxes += static_cast<std::int64_t>(stack_ - top);
  }

  const Space& space_;
  Workspace& work_;
  const Limits& limits_;
  const std::size_t deepest_;
  Found found_;
  std::size_t stack_ = 0;  // boxes on the stack
  std::int64_t looks_ = 0;
  bool ended_ = false;  // whether boxes are handed back though the allowance is not used up
};

}  // namespace

Found search(const Space& space, Workspace& work, const Roots& roots, const Limits& limits) {
  return Search(space, work, limits).run(roots);
}

}  // namespace ltr::weight_space
