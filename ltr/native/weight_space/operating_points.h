// Upper bounds from operating points: how many positives can stand above all but j negatives, for several j at once.
//
// Let N_j(w) be the number of positives that lose to at most j negatives. With the statistic table `contribution`,
// n_pos positives and counts c_(0) <= c_(1) <= ... of lost pairs, the value is
//
//     sum over p of contribution[p + c_(p)]  =  sum over p of contribution[p]  -  sum over j of loss_j(N_j),
//     loss_j(N) = sum over p = N .. n_pos - 1 of (contribution[p + j] - contribution[p + j + 1])
//               = contribution[N + j] - contribution[n_pos + j],
//
// because positive p has passed the levels j < c_(p), those with N_j <= p. No weights have a value above
// ``perfect - required`` if none lose less than `required`. loss_j does not increase with N and N_j <= N_j' for
// j <= j', so a few *levels* j_0 < j_1 < ... suffice: the losses of all j from j_(l-1) + 1 to j_l are at least those at
// N_(j_l). `loss[l][r]`, nondecreasing in r, is their sum where r positives lose to more than j_l negatives; whoever
// makes the table may use known bounds of single N_j in it.
//
// **Search.** In a level some positives are *removed*, those that lose to more than j_l negatives, and some negatives,
// the j_l highest. The remaining positives beat the remaining negatives: rows that some weights satisfy
// (`subsystems.h`), so at least one row of every infeasible subsystem is removed. A removed positive is removed in all
// lower levels (smaller j), a removed negative in all higher ones. Conversely, a row that is *kept* is kept in higher
// levels if it is a positive's, in lower levels if it is a negative's. The search branches on whether a row is kept,
// and closes a node where
//   1. the rows of an infeasible subsystem are all kept, or
//   2. the positives removed lose at least `required`, by a packing of subsystems in each level.
// If one more removed positive would lose `required`, all others are kept; and likewise for negatives. A subsystem of
// which a single row is neither kept nor removed removes that row.
//
// **Packing.** In a level of a node, take subsystems whose rows are kept but for some *open* rows of this level. Each
// of them needs the removal of an open row. Let the packing consist of
//   * A subsystems whose open rows are positives,
//   * B subsystems whose open rows are negatives,
//   * D subsystems with open rows of both kinds,
// so that no two of them share an open positive, and those of B share no open row with any other. Of the `allowed`
// negatives that may still be removed, B are spent on those of the second kind, and on no others. Let u_k be the number
// of the D subsystems that negative k is in. The ``allowed - B`` negatives that are left meet at most as many of the D
// as the largest of these u_k add up to, and every other one needs a positive of its own. So in this level there are
//
//     at least  A + max(0, D - sum of the ``allowed - B`` largest u_k)
//
// more positives to be removed, and the node is closed where ``allowed < B``. With u_k <= 1 the subsystems are
// disjoint. Where few negatives may be removed, packings that use each of them twice are larger by more than they lose.
//
// Subsystems are kept in a pool: they hold at all nodes and for all cutoffs, so that only few linear programs are
// solved after a while. One subsystem of a single level is one of every level, as thresholds cancel.
//
// Source: combinatorial Benders cuts (Codato & Fischetti 2006) for maximum feasible subsystems (Parker & Ryan 1996).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "subsystems.h"

namespace ltr::weight_space {

class OperatingPoints {
 public:
  static constexpr std::size_t kMostLevels = 8;
  static constexpr int kMostUses = 2;  // of a negative in a packing

  enum class Progress { kOpen, kProven, kFound };

  struct Clause {
    std::uint32_t at;    // in the pool
    std::int16_t open;   // rows that are neither kept nor removed
    std::int16_t level;  // of all of them, -1 if there are several, -2 if there are none
  };

  OperatingPoints(Matrix<const double> points, std::span<const std::uint8_t> positive, std::size_t levels,
                  double margin);

  // Begin to prove that no weights lose less than `required`, by the levels that allow `above` negatives and their
  // losses, (levels, n_pos + 1).
  void start(std::span<const std::int64_t> above, Matrix<const std::int64_t> loss, std::int64_t required);

  // Go on until the work is done, used up, or stopped; `kFound` where the levels do not suffice for the proof.
  Progress advance(std::int64_t allowance, const Stop& stop);

  // Take over the subsystems of a single level that another search has found.
  void learn_from(const OperatingPoints& other);

  std::size_t levels() const { return levels_; }
  int members() const { return members_; }
  std::int64_t spent() const { return spent_ + subsystems_.work; }
  std::int64_t nodes = 0;
  std::size_t pool() const { return pool_.size() / std::max<std::size_t>(stride_, 1); }

 private:
  using Word = std::uint64_t;
  using Words = std::vector<Word>;
  using PerLevel = std::array<int, kMostLevels>;

  // Rows as bits, one block of words per level.
  struct Node {
    Words kept, removed;
    PerLevel positives{}, negatives{};  // removed ones
    PerLevel least{};                   // removed positives, at least
    std::vector<std::uint32_t> open;    // clauses among the first `seen` of the pool that may have no removed row
    std::size_t seen = 0;
  };
  enum class Step { kClosed, kAgain, kSettled };

  bool has(const Words& of, std::size_t level, std::size_t p) const {
    return (of[level * block_ + p / 64] >> (p % 64) & 1) != 0;
  }
  static void set(Words& of, std::size_t bit) { of[bit / 64] |= Word{1} << (bit % 64); }
  bool keep(Node& node, std::size_t level, std::size_t p) const;
  bool remove(Node& node, std::size_t level, std::size_t p) const;
  bool keep_all(Node& node, std::size_t level, bool positives, bool& changed) const;
  std::int64_t loss_of(const Node& node) const;
  bool raise_least(Node& node, std::size_t level) const;
  Step propagate(Node& node);
  Step pack(Node& node);
  void pack_open();
  int covered(const Node& node, std::size_t level) const;
  Step find_more(Node& node, bool all_levels);
  void learn(const std::vector<std::size_t>& rows);
  void forget();
  bool take(const Word* open, std::size_t level);
  bool branch(Node& node);

  Subsystems subsystems_;
  std::span<const std::uint8_t> positive_;
  std::size_t levels_, points_, block_, stride_;  // words of a level and of all
  int members_ = 0;                               // positives
  Words is_positive_, all_;                       // one block of words each
  std::vector<std::int64_t> above_, loss_;
  std::int64_t required_ = 0, spent_ = 0;
  Words pool_;
  std::vector<std::uint32_t> uses_;
  std::vector<Node> stack_;
  bool found_ = false;
  std::size_t seen_ = 0;     // clauses of the pool that `open_` takes account of
  std::size_t learned_ = 0;  // clauses taken over from another search

  // scratch
  std::vector<Clause> open_, sorted_;
  Words packed_;                  // rows that no further clause of the packing may have
  Words found_rows_, open_rows_;  // open rows of a clause, and of each clause of `sorted_`, in its level
  PerLevel by_positive_{}, by_negative_{}, by_either_{}, most_uses_{};
  std::vector<std::uint8_t> uses_of_;                              // of each row in the packing
  std::vector<std::array<int, kMostUses + 1>> negatives_by_uses_;  // of each level
  std::vector<double> score_;
  std::vector<std::uint8_t> allowed_, free_;
};

}  // namespace ltr::weight_space
