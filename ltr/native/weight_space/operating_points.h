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
// **Search.** For some w, let the threshold of level l be the score of the negative with exactly j_l others before it
// in the order of scores (ties in any order). The j_l negatives before it are *removed*, and the positives that lose
// to more than j_l negatives, which score less than the threshold plus the margin. All other rows are *kept*: these
// positives score at least the threshold plus the margin, these negatives at most the threshold. (Where j_l negatives
// are all there are, all rows are kept or removed with a threshold below all scores.) So w satisfies an inequality for
// every row (`subsystems.h`), and of every infeasible subsystem at least one row is on its other side: a kept one of
// the subsystem is removed, or a removed one kept. A removed positive is removed in all lower levels (smaller j), a
// removed negative in all higher ones. Conversely, a positive that is kept is kept in higher levels, a negative in
// lower levels. The search branches on whether a row is kept, and closes a node where
//   1. all rows of an infeasible subsystem are on its sides, or
//   2. the positives removed lose at least `required`, by a packing of subsystems in each level.
// If one more removed positive would lose `required`, all others are kept; and likewise for negatives. If a single row
// of a subsystem is undecided and all others are on its sides, that row is on the other one.
//
// **Packing.** In a level of a node, take subsystems whose rows are on its sides but for some *open* rows of this
// level, undecided ones that it has kept. Each of them needs the removal of an open row. Let the packing consist of
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
// The same packing tells what one more removed row costs. An open positive that is in none of A and D leaves all of the
// packing to others, so removing it makes the number above larger by 1. An open negative k that is in none of B leaves
// ``allowed - B - 1`` negatives to D - u_k subsystems: with u the last of the ``allowed - B`` largest uses, the number
// before the maximum with 0 becomes larger by u - u_k, if that is positive, and with ``allowed = B`` it cannot be
// removed at all. Rows whose removal would lose `required` are kept. This halves the nodes.
//
// Subsystems are kept in a pool: they hold at all nodes and for all targets, so that only few linear programs are
// solved after a while. One subsystem of a single level is one of every level, whose threshold is as free.
//
// Source: combinatorial Benders cuts (Codato & Fischetti 2006) for maximum feasible subsystems (Parker & Ryan 1996).
#pragma once

#include <array>
#include <map>
#include <mutex>

#include "subsystems.h"

namespace ltr::weight_space {

class OperatingPoints {
 public:
  static constexpr std::size_t kMostLevels = 8;
  static constexpr int kMostUses = 2;  // of a negative in a packing

  enum class Progress { kOpen, kProven, kFound };

  struct Clause {
    std::uint32_t at;    // in the pool
    std::int16_t open;   // rows that are undecided
    std::int16_t level;  // of all of them if none is to be removed, -2 if there are none, else -1
  };

  OperatingPoints(Matrix<const double> points, std::span<const std::uint8_t> positive, std::size_t levels,
                  double margin, double reach);

  // Begin to prove that no weights lose less than `required`, by the levels that allow `above` negatives and their
  // losses, (levels, n_pos + 1).
  void start(std::span<const std::int64_t> above, Matrix<const std::int64_t> loss, std::int64_t required);

  // Go on until the work is done, used up, or stopped; `kFound` where the levels do not suffice for the proof.
  Progress advance(std::int64_t allowance, const Stop& stop);

  // Take over the subsystems of a single level that another search has found itself; it may go on meanwhile.
  void learn_from(const OperatingPoints& other);

  std::size_t levels() const { return levels_; }
  int members() const { return members_; }
  std::int64_t spent() const { return spent_ + subsystems_.work; }
  std::int64_t nodes = 0;
  std::size_t pool() const { return pool_.size() / (2 * std::max<std::size_t>(stride_, 1)); }

 private:
  using Word = std::uint64_t;
  using Words = std::vector<Word>;
  using PerLevel = std::array<int, kMostLevels>;

  // Rows as bits, one block of words per level.
  struct Node {
    Words kept, removed;
    PerLevel positives{}, negatives{};  // removed ones
    PerLevel least{};                   // removed positives, at least
    std::vector<std::uint32_t> open;    // clauses among the first `seen` of the pool that are not known to be satisfied
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
  bool keep_needed(Node& node, std::size_t level, bool& changed) const;
  Step find_more(Node& node, bool all_levels);
  const Word* clause_at(std::size_t at) const { return pool_.data() + 2 * at * stride_; }
  void learn(const std::vector<Subsystems::Literal>& rows, bool own);
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
  Words pool_;  // of every clause the rows kept, then the rows removed
  std::vector<Node> stack_;
  bool found_ = false;
  std::size_t seen_ = 0;                // clauses of the pool that `open_` takes account of
  std::vector<std::uint64_t> numbers_;  // of the clauses found here, which ascend; 0 for others
  std::uint64_t last_number_ = 0;
  std::map<const OperatingPoints*, std::uint64_t> learned_;  // last number taken over from another search
  mutable std::mutex mutex_;                                 // held to write to the pool, and to read that of another

  // scratch
  std::vector<Clause> open_, sorted_;
  Words packed_;                  // rows that no further clause of the packing may have
  Words found_rows_, open_rows_;  // open rows of a clause, and of each clause of `sorted_`, in its level
  PerLevel by_positive_{}, by_negative_{}, by_either_{}, most_uses_{};
  std::vector<std::uint8_t> uses_of_;                              // of each row in the packing
  std::vector<std::array<int, kMostUses + 1>> negatives_by_uses_;  // of each level
  std::vector<double> score_;
  std::vector<Subsystems::State> states_;
};

}  // namespace ltr::weight_space
