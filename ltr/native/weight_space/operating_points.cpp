#include "operating_points.h"

#include <bit>

#include "tuning.h"

namespace ltr::weight_space {
namespace {

using Clause = OperatingPoints::Clause;
using Word = std::uint64_t;

// Remove the clauses with a row on the other side from `open`, and write the number and the level of the undecided rows
// of the others; return how many there are.
template <std::size_t size>
[[gnu::always_inline]] inline std::size_t list_open_of(const Word* pool, std::size_t block, std::size_t levels,
                                                       const Word* kept, const Word* removed, Clause* open,
                                                       std::size_t number) {
  const std::size_t words = size == 0 ? block : size, stride = levels * words;
  std::size_t left = 0;
  for (std::size_t k = 0; k < number; ++k) {
    const Word *clause = pool + 2 * open[k].at * stride, *reverse = clause + stride;
    Word hit = 0;
    for (std::size_t w = 0; w < stride; ++w) hit |= (clause[w] & removed[w]) | (reverse[w] & kept[w]);
    if (hit != 0) continue;
    int rows = 0, level = -2;
    for (std::size_t l = 0; l < levels; ++l) {
      int here = 0, other = 0;
      for (std::size_t w = l * words; w < (l + 1) * words; ++w) {
        here += std::popcount(clause[w] & ~kept[w]);
        other += std::popcount(reverse[w] & ~removed[w]);
      }
      level = other > 0 ? -1 : here == 0 ? level : level == -2 ? static_cast<int>(l) : -1;
      rows += here + other;
    }
    open[left++] = {open[k].at, static_cast<std::int16_t>(rows), static_cast<std::int16_t>(level)};
  }
  return left;
}

LTR_MULTIVERSION std::size_t list_open(const Word* pool, std::size_t block, std::size_t levels, const Word* kept,
                                       const Word* removed, Clause* open, std::size_t number) {
  switch (block) {
    case 1:
      return list_open_of<1>(pool, block, levels, kept, removed, open, number);
    case 2:
      return list_open_of<2>(pool, block, levels, kept, removed, open, number);
    default:
      return list_open_of<0>(pool, block, levels, kept, removed, open, number);
  }
}

}  // namespace

OperatingPoints::OperatingPoints(Matrix<const double> points, std::span<const std::uint8_t> positive,
                                 std::size_t levels, double margin, double reach)
    : subsystems_(points, positive, levels, margin, reach),
      positive_(positive),
      levels_(levels),
      points_(points.rows),
      block_((points.rows + 63) / 64),
      stride_(block_ * levels),
      is_positive_(block_),
      all_(block_),
      packed_(stride_),
      found_rows_(block_),
      uses_of_(block_ * 64 * levels),
      negatives_by_uses_(levels),
      score_(block_ * 64 * levels),
      states_(subsystems_.rows()) {
  require(points.rows == positive.size(), "one row per point");
  require(points.rows > 0 && points.columns > 0, "some points");
  require(levels > 0 && levels <= kMostLevels, "1 to 8 levels");
  require(margin > 0.0 && reach >= 1.0, "a margin above 0, and weights of up to 1 or more");
  for (std::size_t p = 0; p < points_; ++p) {
    set(all_, p);
    if (positive_[p] == 0) continue;
    set(is_positive_, p);
    ++members_;
  }
}

void OperatingPoints::start(std::span<const std::int64_t> above, Matrix<const std::int64_t> loss,
                            std::int64_t required) {
  require(above.size() == levels_ && loss.rows == levels_, "one row per level");
  require(loss.columns == index(members_) + 1, "one loss per number of positives");
  require(required > 0, "a loss above 0");
  above_.assign(above.begin(), above.end());
  loss_.assign(loss.all().begin(), loss.all().end());
  required_ = required;
  found_ = false;
  Node root;
  root.kept.assign(stride_, 0);
  root.removed.assign(stride_, 0);
  stack_.assign(1, std::move(root));
}

OperatingPoints::Progress OperatingPoints::advance(std::int64_t allowance, const Stop& stop) {
  const std::int64_t end = spent() + allowance;
  while (!stack_.empty() && !found_) {
    if (spent() >= end || stop.asked()) return Progress::kOpen;
    Node node = std::move(stack_.back());
    stack_.pop_back();
    ++nodes;
    open_.clear();
    for (const std::uint32_t at : node.open) open_.push_back({at, 0, 0});
    seen_ = node.seen;
    Step step = Step::kAgain;
    while (step == Step::kAgain) {
      step = propagate(node);
      if (step == Step::kSettled) step = pack(node);
      if (step == Step::kSettled) step = find_more(node, false);
      if (step == Step::kSettled && !branch(node)) {
        // every level can be satisfied by itself
        step = find_more(node, true);
        found_ = step == Step::kSettled;
      }
    }
  }
  return found_ ? Progress::kFound : Progress::kProven;
}

// --- the rows of a node

bool OperatingPoints::keep(Node& node, std::size_t level, std::size_t p) const {
  const bool up = positive_[p] != 0;
  for (std::size_t l = up ? level : 0; l < (up ? levels_ : level + 1); ++l) {
    if (has(node.removed, l, p)) return false;
    set(node.kept, l * block_ * 64 + p);
  }
  return true;
}

bool OperatingPoints::remove(Node& node, std::size_t level, std::size_t p) const {
  const bool down = positive_[p] != 0;
  for (std::size_t l = down ? 0 : level; l < (down ? level + 1 : levels_); ++l) {
    if (has(node.kept, l, p)) return false;
    if (has(node.removed, l, p)) continue;
    set(node.removed, l * block_ * 64 + p);
    if (down) {
      ++node.positives[l];
    } else if (++node.negatives[l] > above_[l]) {
      return false;
    }
  }
  return true;
}

bool OperatingPoints::keep_all(Node& node, std::size_t level, bool positives, bool& changed) const {
  for (std::size_t w = 0; w < block_; ++w) {
    Word open = all_[w] & (positives ? is_positive_[w] : ~is_positive_[w]) & ~node.kept[level * block_ + w] &
                ~node.removed[level * block_ + w];
    for (; open != 0; open &= open - 1) {
      changed = true;
      if (!keep(node, level, 64 * w + index(std::countr_zero(open)))) return false;
    }
  }
  return true;
}

std::int64_t OperatingPoints::loss_of(const Node& node) const {
  std::int64_t total = 0;
  for (std::size_t l = 0; l < levels_; ++l) {
    total += loss_[l * index(members_ + 1) + index(node.least[l])];
  }
  return total;
}

// Return how many positives the packing removes at least in a level, more than there are if it needs too many
// negatives.
int OperatingPoints::covered(const Node& node, std::size_t level) const {
  int allowed = static_cast<int>(above_[level]) - node.negatives[level] - by_negative_[level];
  if (allowed < 0) return members_ + 1;
  int met = 0;  // clauses that negatives can meet
  for (int uses = most_uses_[level]; uses > 0 && allowed > 0; --uses) {
    const int here = std::min(allowed, negatives_by_uses_[level][index(uses)]);
    met += uses * here;
    allowed -= here;
  }
  return node.positives[level] + by_positive_[level] + std::max(0, by_either_[level] - met);
}

// Whatever is removed in a level is removed in all lower ones.
bool OperatingPoints::raise_least(Node& node, std::size_t level) const {
  const int least = covered(node, level);
  if (least > members_) return false;
  for (std::size_t l = 0; l <= level; ++l) node.least[l] = std::max(node.least[l], least);
  return true;
}

// --- what follows from the pool

OperatingPoints::Step OperatingPoints::propagate(Node& node) {
  for (bool again = true; again;) {
    again = false;
    for (std::size_t l = levels_; l-- > 0;) {
      node.least[l] = std::max({node.least[l], node.positives[l], l + 1 < levels_ ? node.least[l + 1] : 0});
    }
    const std::int64_t lost = loss_of(node);
    if (lost >= required_) return Step::kClosed;
    for (std::size_t l = 0; l < levels_; ++l) {
      if (node.negatives[l] == above_[l] && !keep_all(node, l, false, again)) return Step::kClosed;
      const std::int64_t* loss = loss_.data() + l * index(members_ + 1);
      const int more = node.positives[l] + 1;
      if (more > members_ || lost - loss[node.least[l]] + loss[std::max(more, node.least[l])] >= required_) {
        if (!keep_all(node, l, true, again)) return Step::kClosed;
      }
    }
    for (; seen_ < pool(); ++seen_) open_.push_back({static_cast<std::uint32_t>(seen_), 0, 0});
    const std::size_t number = open_.size();
    open_.resize(list_open(pool_.data(), block_, levels_, node.kept.data(), node.removed.data(), open_.data(), number));
    spent_ += static_cast<std::int64_t>(number * stride_ * 2);
    for (const Clause& listed : open_) {
      if (listed.open > 1) continue;
      if (listed.open == 0) return Step::kClosed;
      const Word *clause = clause_at(listed.at), *reverse = clause + stride_;
      for (std::size_t w = 0; w < stride_; ++w) {
        const Word row = clause[w] & ~node.kept[w], other = reverse[w] & ~node.removed[w];
        const auto p = [&](Word bits) { return w % block_ * 64 + index(std::countr_zero(bits)); };
        if (row != 0 && !remove(node, w / block_, p(row))) return Step::kClosed;
        if (other != 0 && !keep(node, w / block_, p(other))) return Step::kClosed;
      }
      again = true;
    }
  }
  return Step::kSettled;
}

// Add a clause with some open rows of one level to the packing if it may.
bool OperatingPoints::take(const Word* open, std::size_t level) {
  const std::size_t at = level * block_;
  Word positives = 0, negatives = 0;
  for (std::size_t w = 0; w < block_; ++w) {
    positives |= open[w] & is_positive_[w];
    negatives |= open[w] & ~is_positive_[w];
  }
  if (positives == 0) {  // its negatives are in no other clause
    for (std::size_t w = 0; w < block_; ++w) {
      for (Word rows = open[w]; rows != 0; rows &= rows - 1) {
        if (uses_of_[(at + w) * 64 + index(std::countr_zero(rows))] > 0) return false;
      }
    }
  }
  if (positives == 0 || negatives == 0) {
    for (std::size_t w = 0; w < block_; ++w) packed_[at + w] |= open[w];
    ++(positives == 0 ? by_negative_ : by_positive_)[level];
    return true;
  }
  auto& by_uses = negatives_by_uses_[level];
  for (std::size_t w = 0; w < block_; ++w) {
    packed_[at + w] |= open[w] & is_positive_[w];
    for (Word rows = open[w] & ~is_positive_[w]; rows != 0; rows &= rows - 1) {
      const auto bit = index(std::countr_zero(rows));
      std::uint8_t& uses = uses_of_[(at + w) * 64 + bit];
      --by_uses[uses];
      ++by_uses[++uses];
      if (uses == most_uses_[level]) packed_[at + w] |= Word{1} << bit;
    }
  }
  ++by_either_[level];
  return true;
}

void OperatingPoints::pack_open() {
  std::fill(packed_.begin(), packed_.end(), Word{0});
  std::fill(uses_of_.begin(), uses_of_.end(), std::uint8_t{0});
  by_positive_ = by_negative_ = by_either_ = {};
  for (auto& by_uses : negatives_by_uses_) by_uses.fill(0);
  for (std::size_t k = 0; k < sorted_.size(); ++k) {
    if (sorted_[k].level < 0) continue;
    const auto level = index(sorted_[k].level);
    const Word *open = open_rows_.data() + k * block_, *packed = packed_.data() + level * block_;
    Word common = 0;
    for (std::size_t w = 0; w < block_; ++w) common |= open[w] & packed[w];
    if (common == 0) take(open, level);
  }
}

// Keep the open rows of a level whose removal would, by the packing, lose too much.
bool OperatingPoints::keep_needed(Node& node, std::size_t level, bool& changed) const {
  const int allowed = static_cast<int>(above_[level]) - node.negatives[level] - by_negative_[level];
  const int least = covered(node, level);
  const auto too_much = [&](int more) {
    if (least + more > members_) return true;
    std::int64_t total = 0;
    for (std::size_t l = 0; l < levels_; ++l) {
      const int here = l <= level ? std::max(node.least[l], least + more) : node.least[l];
      total += loss_[l * index(members_ + 1) + index(here)];
    }
    return total >= required_;
  };
  const std::size_t at = level * block_;
  // uses of the last negative that counts as removed
  int last = 0, met = 0;
  for (int uses = most_uses_[level], left = allowed; uses > 0 && left > 0; --uses) {
    const int here = std::min(left, negatives_by_uses_[level][index(uses)]);
    left -= here;
    met += uses * here;
    if (left == 0) last = uses;
  }
  const int excess = std::max(0, met - by_either_[level]);
  const bool positives = too_much(1);
  for (std::size_t w = 0; w < block_; ++w) {
    Word open = all_[w] & ~node.kept[at + w] & ~node.removed[at + w] & ~(positives ? Word{0} : is_positive_[w]);
    for (; open != 0; open &= open - 1) {
      const auto bit = index(std::countr_zero(open));
      const bool positive = (is_positive_[w] >> bit & 1) != 0, packed = (packed_[at + w] >> bit & 1) != 0;
      const int uses = uses_of_[(at + w) * 64 + bit];
      if (positive ? packed : packed && uses == 0) continue;  // in a clause without negatives or without positives
      if (!positive && allowed > 0 && (last - uses <= excess || !too_much(last - uses - excess))) continue;
      changed = true;
      if (!keep(node, level, 64 * w + bit)) return false;
    }
  }
  return true;
}

// Pack clauses into each level, the shortest first.
OperatingPoints::Step OperatingPoints::pack(Node& node) {
  std::array<std::size_t, tuning::kLongest + 2> begin{};
  const auto length = [](const Clause& listed) { return std::min<std::size_t>(listed.open, tuning::kLongest); };
  for (const Clause& listed : open_) ++begin[length(listed) + 1];
  for (std::size_t q = 1; q < begin.size(); ++q) begin[q] += begin[q - 1];
  sorted_.resize(open_.size());
  for (const Clause& listed : open_) sorted_[begin[length(listed)]++] = listed;
  open_rows_.resize(sorted_.size() * block_);
  for (std::size_t k = 0; k < sorted_.size(); ++k) {
    if (sorted_[k].level < 0) continue;
    const std::size_t in = index(sorted_[k].level) * block_;
    const Word* clause = clause_at(sorted_[k].at) + in;
    for (std::size_t w = 0; w < block_; ++w) open_rows_[k * block_ + w] = clause[w] & ~node.kept[in + w];
  }
  const PerLevel before = node.least;
  bool again = false;
  PerLevel best{}, best_uses{};
  for (const int uses : tuning::kUses) {
    most_uses_.fill(uses);
    pack_open();
    spent_ += static_cast<std::int64_t>(sorted_.size() * block_ * 4);
    for (std::size_t l = 0; l < levels_; ++l) {
      const int least = covered(node, l);
      if (uses == tuning::kUses.front() || least > best[l]) {
        best[l] = least;
        best_uses[l] = uses;
      }
      if (!raise_least(node, l)) return Step::kClosed;
    }
    if (loss_of(node) >= required_) return Step::kClosed;
    bool kept = false;
    for (std::size_t l = 0; l < levels_; ++l) {
      if (!keep_needed(node, l, kept)) return Step::kClosed;
    }
    again = again || kept;
  }
  if (again || node.least != before) return Step::kAgain;
  if (best_uses != most_uses_) {
    most_uses_ = best_uses;
    pack_open();
  }
  return Step::kSettled;
}

// --- new clauses

void OperatingPoints::learn(const std::vector<Subsystems::Literal>& rows, bool own) {
  const std::lock_guard lock(mutex_);
  const std::size_t level = rows.front().row / points_;
  const bool single =
      std::all_of(rows.begin(), rows.end(), [&](const auto& literal) { return literal.row / points_ == level; });
  for (std::size_t l = single ? 0 : level; l < (single ? levels_ : level + 1); ++l) {
    pool_.resize(pool_.size() + 2 * stride_);
    Word* clause = pool_.data() + pool_.size() - 2 * stride_;
    for (const auto& [row, removed] : rows) {
      const std::size_t in = single ? l : row / points_, p = row % points_;
      clause[(removed ? stride_ : 0) + in * block_ + p / 64] |= Word{1} << (p % 64);
    }
    numbers_.push_back(own ? ++last_number_ : 0);
  }
}

void OperatingPoints::learn_from(const OperatingPoints& other) {
  require(points_ == other.points_, "the same points");
  if (other.levels_ != 1) return;
  std::vector<std::vector<Subsystems::Literal>> clauses;
  std::uint64_t& learned = learned_[&other];
  {
    const std::lock_guard lock(other.mutex_);
    for (std::size_t c = other.pool(); c-- > 0;) {
      if (other.numbers_[c] == 0) continue;
      if (other.numbers_[c] <= learned) break;
      auto& rows = clauses.emplace_back();
      for (const bool removed : {false, true}) {
        const Word* clause = other.clause_at(c) + (removed ? other.stride_ : 0);
        for (std::size_t p = 0; p < points_; ++p) {
          if ((clause[p / 64] >> (p % 64) & 1) != 0) rows.push_back({p, removed});
        }
      }
    }
    learned = other.last_number_;
  }
  for (const auto& rows : clauses) learn(rows, false);
}

// Forget the older half of the clauses.
void OperatingPoints::forget() {
  const std::lock_guard lock(mutex_);
  const std::size_t gone = pool() / 2;
  pool_.erase(pool_.begin(), pool_.begin() + 2 * gone * stride_);
  numbers_.erase(numbers_.begin(), numbers_.begin() + gone);
  for (Node& node : stack_) {
    std::erase_if(node.open, [=](std::uint32_t at) { return at < gone; });
    for (std::uint32_t& at : node.open) at -= static_cast<std::uint32_t>(gone);
    node.seen -= std::min(node.seen, gone);
  }
}

// Find subsystems that no clause of the packing meets, in each level by itself or in all of them together.
OperatingPoints::Step OperatingPoints::find_more(Node& node, bool all_levels) {
  const PerLevel before = node.least;
  for (std::size_t level = 0; level < (all_levels ? 1 : levels_); ++level) {
    while (true) {
      for (std::size_t row = 0; row < subsystems_.rows(); ++row) {
        const std::size_t l = row / points_, p = row % points_;
        states_[row] = has(node.kept, l, p)      ? Subsystems::kKept
                       : has(node.removed, l, p) ? (all_levels ? Subsystems::kBarred : Subsystems::kRemoved)
                       : all_levels || (l == level && !has(packed_, l, p)) ? Subsystems::kOpen
                                                                           : Subsystems::kBarred;
      }
      if (!subsystems_.find(states_)) break;
      const std::size_t at = pool(), in = subsystems_.found().front().row / points_;
      learn(subsystems_.found(), true);
      if (all_levels) return Step::kAgain;
      // of the copies of a subsystem of a single level, the one in its own
      const std::size_t learned = pool() - at > 1 ? at + in : at;
      const Word* clause = clause_at(learned);
      int open = 0;
      for (std::size_t w = 0; w < stride_; ++w) open += std::popcount(clause[w] & ~node.kept[w]);
      if (open == 0) return Step::kClosed;
      for (std::size_t w = 0; w < block_; ++w) {
        found_rows_[w] = clause[level * block_ + w] & ~node.kept[level * block_ + w];
      }
      if (!take(found_rows_.data(), level)) break;
      sorted_.push_back(
          {static_cast<std::uint32_t>(learned), static_cast<std::int16_t>(open), static_cast<std::int16_t>(level)});
      if (!raise_least(node, level) || loss_of(node) >= required_) return Step::kClosed;
    }
  }
  return node.least == before ? Step::kSettled : Step::kAgain;
}

// Branch on the row that is in most of the short clauses; return whether there is one.
bool OperatingPoints::branch(Node& node) {
  std::fill(score_.begin(), score_.end(), 0.0);
  int shortest = tuning::kLongest;
  for (const Clause& listed : sorted_) shortest = std::min<int>(shortest, listed.open);
  for (std::size_t k = 0; k < sorted_.size(); ++k) {
    const Clause& listed = sorted_[k];
    if (listed.open > shortest + tuning::kLonger) continue;  // their weights are next to nothing
    const bool single = listed.level >= 0;
    const auto level = index(single ? listed.level : 0);
    double weight = 1.0 / 16;
    if (single) {
      const std::int64_t* loss = loss_.data() + level * index(members_ + 1);
      const int least = node.least[level];
      weight = tuning::kBase +
               static_cast<double>(loss[std::min(least + 1, members_)] - loss[least]) / static_cast<double>(required_);
    }
    weight = std::ldexp(weight, -(levels_ == 1 ? tuning::kDecay : tuning::kDecayOfSeveral) *
                                    std::min<int>(listed.open, tuning::kLongest));
    const Word *clause = clause_at(listed.at), *reverse = clause + stride_;
    for (std::size_t w = level * block_; w < (single ? (level + 1) * block_ : stride_); ++w) {
      for (Word open = (clause[w] & ~node.kept[w]) | (reverse[w] & ~node.removed[w]); open != 0; open &= open - 1) {
        score_[w * 64 + index(std::countr_zero(open))] += weight;
      }
    }
  }
  const auto most = std::max_element(score_.begin(), score_.end());
  const double largest = *most;
  const auto chosen = index(most - score_.begin());
  if (largest <= 0.0) return false;
  const std::size_t level = chosen / (block_ * 64), p = chosen % (block_ * 64);
  node.open.clear();
  for (const Clause& listed : open_) node.open.push_back(listed.at);
  node.seen = seen_;
  Node without = node;
  if (remove(without, level, p)) stack_.push_back(std::move(without));
  if (keep(node, level, p)) stack_.push_back(std::move(node));
  if (pool() > tuning::kMostClauses) forget();
  return true;
}

}  // namespace ltr::weight_space
