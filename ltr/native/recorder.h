// Record a partition of weight space that proves a bound, for `ltr.exact.certificate`.
//
// `ltr.verify` defines partitions and shows why they prove a bound. Boxes of weights are visited depth first; those
// whose objective stays below the bound are closed, as are those where a demand is not met, the others cut, and what is
// done is recorded. There may be demands alone, to prove that no weights meet them.
//
// *Exact arithmetic closes whatever is closed here.* Interval bounds are multiples of 2^-49 in [-1, 1], or whole
// numbers, so they and their midpoints are exact. Everything that is rounded errs on the safe side:
//
// * Lost pairs. Let u = 2^-53, δ = x_i - x_k, and S = sum_j |x_ij| + |x_kj| >= sum_j |δ_j|. In the root the largest w·δ
//   is a sum of d products: computed δ_j, products and sums are within u of what they should be, relatively, so that it
//   errs by at most (d + 1) u S in the first order. A cut moves it by a product and rounds once, by u S; the products
//   on a path sum up to 2 S at most and err by 4 u S. After t cuts that is (d + t + 5) u S, and half the smallest
//   subnormal number for each product. Where weights are whole numbers from -B to B, S is B times as large. The slack
//   is 2 (d + t + 16) u S and room for underflow. Its own rounding, that of S, that of the sum with it and terms of
//   higher order take a few u S, for which there is room.
// * Side constraints. A row is summed again for each box. The error is at most (d + 4) u times |b| and the sizes of the
//   terms in the first order, and half the smallest subnormal number per product. Twice the tolerance of `ltr.verify`
//   is far more.
// * Sums of rank weights are integers: each weight times a power of 2, rounded up; their total stays below 2^62. The
//   largest sums that the bound allows are computed in fractions and rounded down. The sum from which a demand is met
//   is rounded up, and a box is closed below it.
//
// A cut by the order of two observations moves no interval bounds, but counts as one in t.
//
// Pairs won in a box are not examined again in its parts. A pair that counts as won because of rounding weakens a bound
// but cannot make it wrong.
#pragma once

#include <array>
#include <numeric>

#include "arrays.h"

namespace ltr::recorder {

// Pairs as in `ltr.verify.Problem`, one entry per pair.
struct Pairs {
  std::span<const std::int32_t> above, below, counter;
  std::span<const std::int64_t> weight;   // as an integer
  std::span<const double> required;       // w·δ from which the pair is won, rounded down
  std::span<const double> size;           // sum of |x_ij| + |x_kj|, times the largest size of a weight
  std::span<const std::int32_t> line;     // number of its two observations where other pairs ask for their opposite
                                          // order, else -1; observations with equal features are the same here
  std::span<const std::uint8_t> ascends;  // which of the two orders it asks for
  std::size_t lines = 0;
};

// A list of observations that are ranked against each other.
struct List {
  std::size_t first;          // its first counter
  std::size_t ranked;         // observations with a gain > 0
  std::size_t layers, layer;  // how many layers it has, and the first of them
  std::size_t size;
};

struct Layer {
  std::size_t members;
  std::size_t table;  // where its statistic table starts
};

// What is to be maximised, or a demand.
struct Objective {
  std::size_t begin, end;       // its lists; none where pairs have weights of their own
  std::size_t first, counters;  // its counters
};

// A problem as the recorder reads it.
struct Problem {
  Kept kept;                     // what owns the arrays
  Matrix<const double> columns;  // features, one row per feature, (d, n)
  Pairs pairs;
  double tiny;  // room for underflow
  std::vector<Objective> objectives;
  std::vector<List> lists;                     // of all objectives
  std::vector<Layer> layers;                   // of all lists
  std::span<const std::int64_t> contribution;  // statistic tables of the layers in sequence, or the total weight of
                                               // each counter; integers
  Matrix<const double> A;                      // side constraints A w <= b
  std::span<const double> b;
  double loose;                            // violation of a side constraint, relative to its terms, that closes a box
  std::span<const std::uint8_t> zeros;     // whether it matters that a weight is 0: not for free columns, nor for any
                                           // if C = 0 and `max_nonzeros` is not set
  std::span<const std::uint8_t> required;  // columns whose weights are at least `least` in size
  double least;
  std::size_t most;  // how many weights to which it matters that they are 0 may differ from it
  bool whole;        // whether weights are whole numbers
  std::size_t counters;
};

constexpr std::size_t kSample = 500;    // about how many open pairs a cut is chosen from
constexpr double kNarrowest = 0x1p-49;  // intervals of this width are not cut further
constexpr std::size_t kDepth = 51;      // cuts of a coordinate on a path, at most: 50 halvings and one at zero
constexpr std::size_t kByOrder = 64;    // room on a path for cuts by the order of two observations
constexpr std::size_t kChunk = 256;     // pairs whose interval bounds are moved at once
constexpr std::int32_t kClosed = -1;    // word of a box that is closed; others are values of `Box::cut`

// Move the interval bounds of w·δ of some pairs as those of a weight move, by `rise` and `fall`.
LTR_MULTIVERSION static void move_bounds(const std::int32_t* pair, std::size_t n, const std::int32_t* above,
                                         const std::int32_t* below, const double* column, double rise, double fall,
                                         double* largest, double* smallest) {
#pragma omp simd
  for (std::size_t k = 0; k < n; ++k) {
    const double delta = column[above[pair[k]]] - column[below[pair[k]]], one = rise * delta, other = fall * delta;
    largest[k] = largest[k] + (one < 0.0 ? one : 0.0) + (other < 0.0 ? other : 0.0);
    smallest[k] = smallest[k] + (one > 0.0 ? one : 0.0) + (other > 0.0 ? other : 0.0);
  }
}

// Add to the interval bounds of w·δ of some pairs those of the product with one weight.
LTR_MULTIVERSION static void add_bounds(const std::int32_t* pair, std::size_t n, const std::int32_t* above,
                                        const std::int32_t* below, const double* column, double low, double high,
                                        double* largest, double* smallest) {
#pragma omp simd
  for (std::size_t k = 0; k < n; ++k) {
    const double delta = column[above[pair[k]]] - column[below[pair[k]]], one = low * delta, other = high * delta;
    largest[k] += one < other ? other : one;
    smallest[k] += one < other ? one : other;
  }
}

// Find which of some pairs are lost in a box, and which are open.
LTR_MULTIVERSION static void classify(const std::int32_t* pair, std::size_t n, const double* required,
                                      const double* size, double factor, double tiny, const double* largest,
                                      const double* smallest, std::int64_t* lost, std::int64_t* open) {
#pragma omp simd
  for (std::size_t k = 0; k < n; ++k) {
    const double least = required[pair[k]];
    const std::int64_t below = largest[k] + (factor * size[pair[k]] + tiny) < least;
    const std::int64_t won = smallest[k] >= least;
    lost[k] = below;
    open[k] = (below | won) ^ 1;
  }
}

// Computes the largest total where at least some numbers of pairs are lost, as `ltr.verify` defines and proves it.
class Totals {
 public:
  explicit Totals(const Problem& problem) : problem_(problem) {
    std::size_t longest = 0;
    for (const List& list : problem.lists) longest = std::max(longest, list.size);
    for (auto* numbers : {&every_, &lower_, &lost_, &lost_to_lower_}) numbers->resize(longest);
  }

  std::size_t room() const { return every_.size() + lower_.size() + lost_.size() + lost_to_lower_.size(); }

  std::int64_t largest(const Objective& objective, std::span<const std::int64_t> counts) {
    std::int64_t total = 0;
    if (objective.begin == objective.end) {
      const auto& whole = problem_.contribution;
      for (std::size_t c = objective.first; c < objective.first + objective.counters; c += 2) {
        total += std::max(whole[c] - counts[c], whole[c + 1] - counts[c + 1]);
      }
      return total;
    }
    for (std::size_t own = objective.begin; own < objective.end; ++own) {
      const List& list = problem_.lists[own];
      std::fill_n(lower_.begin(), list.ranked, 0);
      std::fill_n(every_.begin(), list.ranked, 0);
      for (std::size_t t = 0; t <= list.layers; ++t) {
        const std::int64_t* row = counts.data() + list.first + list.ranked * t;
        for (std::size_t q = 0; q < list.ranked; ++q) every_[q] += static_cast<std::int32_t>(row[q]);
      }
      for (std::size_t t = 0; t < list.layers; ++t) {
        const std::int64_t* row = counts.data() + list.first + list.ranked * t;
        for (std::size_t q = 0; q < list.ranked; ++q) lower_[q] += static_cast<std::int32_t>(row[q]);
        total += of_layer(problem_.layers[list.layer + t], list.size);
      }
    }
    return total;
  }

 private:
  // Return the largest total of a layer of a list of n, given its members' lost pairs, all and those to lower grades.
  std::int64_t of_layer(const Layer& layer, std::size_t n) {
    std::fill_n(lost_.begin(), n, 0);
    std::fill_n(lost_to_lower_.begin(), n, 0);
    for (std::size_t q = 0; q < layer.members; ++q) {
      ++lost_to_lower_[index(lower_[q])];
      ++lost_[index(every_[q])];
    }
    const std::int64_t* contribution = problem_.contribution.data() + layer.table;
    std::int64_t total = 0;
    for (std::size_t p = 0, g = 0, c = 0; p < layer.members; ++p) {
      while (lost_to_lower_[g] == 0) ++g;
      while (lost_[c] == 0) ++c;
      --lost_to_lower_[g];
      --lost_[c];
      total += contribution[std::max(c, p + g)];
    }
    return total;
  }

  const Problem& problem_;
  std::vector<std::int32_t> every_, lower_;         // lost pairs of each observation: all, and those to lower grades
  std::vector<std::int32_t> lost_, lost_to_lower_;  // how many members lose each number of pairs
};

// A box on the path from the root to the one under examination.
struct Box {
  std::size_t cut = 0;                         // coordinate at which it is cut, d + coordinate for a cut at zero, or
                                               // 2d + pair for a cut by the order of two observations
  int part = 0;                                // its next part
  std::size_t begin = 0, middle = 0, end = 0;  // its open pairs are ``begin : middle`` of the entries; ``middle : end``
                                               // are those that are lost in it and were open in its parent
};

// Why recording stopped; limit: boxes or checks used up, or boxes too narrow.
enum class Reason { done, paused, limit };

// Records the partition of one root.
class Partition {
 public:
  // The root is given by its interval bounds. `limits` are the largest totals that close a box, for each objective
  // where 0, 1, ..., d weights are not 0; `boxes` and `checks` are how many the verifier may have to make. The problem
  // must go on.
  Partition(const Problem& problem, std::span<const double> low, std::span<const double> high,
            Matrix<const std::int64_t> limits, std::size_t boxes, std::int64_t checks)
      : problem_(problem),
        totals_(problem),
        d_(problem.columns.rows),
        few_(std::clamp<std::size_t>(d_, 3, 5) - 2),
        limits_(limits.all().begin(), limits.all().end()),
        most_words_(boxes),
        checks_(checks),
        box_(kDepth * d_ + kByOrder + 4),
        low_(box_.size() * d_),
        high_(low_.size()),
        apart_(low_.size()),
        counts_(problem.counters),
        orders_(problem.pairs.lines),
        score_(d_),
        weight_(d_) {
    require(low.size() == d_ && high.size() == d_, "one interval per feature");
    require(limits.rows == problem.objectives.size() && limits.columns == d_ + 1,
            "one limit per objective and number of weights");
    std::copy(low.begin(), low.end(), low_.begin());
    std::copy(high.begin(), high.end(), high_.begin());
    resize(2 * problem.pairs.above.size());
    std::iota(pair_.begin(), pair_.begin() + problem.pairs.above.size(), 0);
    box_[0].middle = box_[0].end = problem.pairs.above.size();
  }

  // What was done with each box: -1 if it was closed, else the coordinate at which it was cut, d + coordinate for a cut
  // at zero, or 2d + pair for a cut by the order of its two observations.
  const std::vector<std::int32_t>& words() const { return words_; }

  // The number of checks that are left.
  std::int64_t checks() const { return checks_; }

  // Continue until about `work` pairs have been examined.
  Reason advance(std::int64_t work) {
    while (true) {
      const std::size_t t = depth_;
      Box& box = box_[t];
      const int parts = t == 0 ? 1 : box.cut >= d_ && box.cut < 2 * d_ ? 3 : 2;
      if (box.part == parts) {
        if (t == 0) return Reason::done;
        restore(t);
        depth_ = t - 1;
        continue;
      }
      const std::size_t pairs = box.middle - box.begin;
      if (words_.size() == most_words_ || checks_ < 0 || t + 2 == box_.size()) return Reason::limit;
      if (work <= 0) return Reason::paused;
      if (box.end + pairs > pair_.size()) resize(2 * pair_.size());
      checks_ -= static_cast<std::int64_t>(parts == 3 && box.part == 1 ? 2 * pairs : pairs);
      work -= static_cast<std::int64_t>(pairs + counts_.size() + totals_.room()) + 1;
      narrow(t);
      examine(t);
      std::int32_t word = kClosed;
      if (closed(t + 1)) {
        restore(t + 1);
      } else {
        word = choose(t + 1);
        if (word < 0) return Reason::limit;
        box_[t + 1].cut = index(word);
        box_[t + 1].part = 0;
        depth_ = t + 1;
      }
      words_.push_back(word);
    }
  }

 private:
  void resize(std::size_t entries) {
    pair_.resize(entries);
    largest_.resize(entries);
    smallest_.resize(entries);
  }

  double* low(std::size_t t) { return low_.data() + t * d_; }
  double* high(std::size_t t) { return high_.data() + t * d_; }
  std::uint8_t* apart(std::size_t t) { return apart_.data() + t * d_; }

  // Fill row t + 1 with the next part of the box in row t.
  void narrow(std::size_t t) {
    std::copy_n(low(t), d_, low(t + 1));
    std::copy_n(high(t), d_, high(t + 1));
    std::copy_n(apart(t), d_, apart(t + 1));
    const std::size_t cut = box_[t].cut;
    const int part = box_[t].part++;
    if (t == 0 || cut >= 2 * d_) return;
    const double next = problem_.whole ? 1.0 : 0.0;  // from a weight to the next
    if (cut < d_) {
      const double middle = 0.5 * (low(t)[cut] + high(t)[cut]), below = problem_.whole ? std::floor(middle) : middle;
      (part == 0 ? high(t + 1) : low(t + 1))[cut] = part == 0 ? below : below + next;
      return;
    }
    const std::size_t j = cut - d_;
    if (part <= 1) high(t + 1)[j] = part == 0 ? -next : 0.0;
    if (part >= 1) low(t + 1)[j] = part == 2 ? next : 0.0;
    apart(t + 1)[j] = part != 1;
  }

  // Split the open pairs of row t into those open in row t + 1 and those lost there, and count the latter.
  void examine(std::size_t t) {
    const Pairs& pairs = problem_.pairs;
    if (box_[t].cut >= 2 * d_) return examine_order(t);
    const std::size_t j = box_[t].cut % d_;
    const double rise = low(t + 1)[j] - low(t)[j], fall = high(t + 1)[j] - high(t)[j];
    const double factor = static_cast<double>(t + d_ + 16) * 0x1p-52;
    const std::size_t first = box_[t].end, end = first + box_[t].middle - box_[t].begin;
    std::size_t at = first, back = end;  // open pairs from the front, lost pairs from the back
    for (std::size_t source = box_[t].begin; source < box_[t].middle; source += kChunk) {
      const std::size_t n = std::min(kChunk, box_[t].middle - source);
      const std::int32_t* pair = pair_.data() + source;
      if (t == 0) {
        std::fill_n(new_largest_.begin(), n, 0.0);
        std::fill_n(new_smallest_.begin(), n, 0.0);
        for (std::size_t f = 0; f < d_; ++f) {
          add_bounds(pair, n, pairs.above.data(), pairs.below.data(), problem_.columns[f].data(), low(1)[f], high(1)[f],
                     new_largest_.data(), new_smallest_.data());
        }
      } else {
        std::copy_n(largest_.data() + source, n, new_largest_.data());
        std::copy_n(smallest_.data() + source, n, new_smallest_.data());
        move_bounds(pair, n, pairs.above.data(), pairs.below.data(), problem_.columns[j].data(), rise, fall,
                    new_largest_.data(), new_smallest_.data());
      }
      classify(pair, n, pairs.required.data(), pairs.size.data(), factor, problem_.tiny, new_largest_.data(),
               new_smallest_.data(), lost_.data(), open_.data());
      for (std::size_t k = 0; k < n; ++k) {  // without branches: they would be mispredicted too often
        pair_[at] = pair_[back - 1] = pair[k];
        largest_[at] = new_largest_[k];
        smallest_[at] = new_smallest_[k];
        back -= index(lost_[k]);
        at += index(open_[k]);
      }
    }
    enter(t + 1, first, at, back, end);
  }

  // Split the open pairs of row t, which is cut by the order of two observations: those that ask for the order of the
  // pair by which it is cut are lost in the first part, those that ask for the other one in the second.
  void examine_order(std::size_t t) {
    const Pairs& pairs = problem_.pairs;
    const std::size_t by = box_[t].cut - 2 * d_;
    const bool second = box_[t].part == 2;
    const std::size_t first = box_[t].end, end = first + box_[t].middle - box_[t].begin;
    std::size_t at = first, back = end;
    for (std::size_t source = box_[t].begin; source < box_[t].middle; ++source) {
      const std::size_t pair = index(pair_[source]);
      if (pairs.line[pair] == pairs.line[by] && (pairs.ascends[pair] != pairs.ascends[by]) == second) {
        pair_[--back] = pair_[source];
        continue;
      }
      pair_[at] = pair_[source];
      largest_[at] = largest_[source];
      smallest_[at++] = smallest_[source];
    }
    enter(t + 1, first, at, back, end);
  }

  // Make row t of the entries ``first : middle``, its open pairs, and ``back : end``, those lost in it; count the
  // latter.
  void enter(std::size_t t, std::size_t first, std::size_t middle, std::size_t back, std::size_t end) {
    for (std::size_t source = back; source < end; ++source) count(pair_[source], 1);
    box_[t].begin = first;
    box_[t].middle = middle;
    for (std::size_t source = back; source < end; ++source) pair_[middle++] = pair_[source];  // where pairs were won
    box_[t].end = middle;
  }

  // Take the pairs lost in row t out of the counts.
  void restore(std::size_t t) {
    for (std::size_t at = box_[t].middle; at < box_[t].end; ++at) count(pair_[at], -1);
  }

  void count(std::int32_t pair, std::int64_t times) {
    counts_[index(problem_.pairs.counter[index(pair)])] += times * problem_.pairs.weight[index(pair)];
  }

  // Return whether no feasible weights of row t have an objective above the bound, because none of them meet the
  // demands or for another reason.
  bool closed(std::size_t t) {
    std::size_t nonzero = 0;
    for (std::size_t j = 0; j < d_; ++j) {
      const bool needed = problem_.required[j] != 0;
      nonzero += problem_.zeros[j] && (low(t)[j] > 0.0 || high(t)[j] < 0.0 || apart(t)[j] || needed);
      if (needed && -problem_.least < low(t)[j] && high(t)[j] < problem_.least) return true;
    }
    nonzero_ = nonzero;
    if (nonzero > problem_.most || low_enough()) return true;
    for (std::size_t row = 0; row < problem_.b.size(); ++row) {
      double least = 0.0, size = std::abs(problem_.b[row]);
      for (std::size_t j = 0; j < d_; ++j) {
        const double v = problem_.A(row, j), term = v * (v > 0.0 ? low(t)[j] : high(t)[j]);
        least += term;
        size += std::abs(term);
      }
      if (least - problem_.b[row] > problem_.loose * size + problem_.tiny) return true;
    }
    return false;
  }

  // Return whether the lost pairs that are counted close the box examined last.
  bool low_enough() {
    for (std::size_t o = 0; o < problem_.objectives.size(); ++o) {
      if (totals_.largest(problem_.objectives[o], counts_) <= limits_[o * (d_ + 1) + nonzero_]) return true;
    }
    return false;
  }

  // Return an open pair of row t by whose order to cut it; -1 for none.
  //
  // Near the weights with w·δ = 0 pairs that ask for opposite orders of two observations are both open in all boxes but
  // those of the size of the margin, which are too many. So boxes are cut by the order of two observations where such
  // pairs are open of few observations, and the box would be closed if they were all lost.
  std::int32_t choose_order(std::size_t t) {
    const Pairs& pairs = problem_.pairs;
    if (pairs.lines == 0) return -1;
    touched_.clear();
    std::size_t both = 0;
    for (std::size_t at = box_[t].begin; at < box_[t].middle; ++at) {
      const std::size_t pair = index(pair_[at]);
      if (pairs.line[pair] < 0) continue;
      std::uint8_t& orders = orders_[index(pairs.line[pair])];
      if (orders == 0) touched_.push_back(pairs.line[pair]);
      const auto more = static_cast<std::uint8_t>(orders | (pairs.ascends[pair] ? 2 : 1));
      both += more == 3 && orders != 3;
      orders = more;
    }
    std::int32_t found = -1;
    if (both > 0 && both <= few_) {
      std::int32_t pair = -1;
      const auto count_both = [&](std::int64_t times) {
        for (std::size_t at = box_[t].begin; at < box_[t].middle; ++at) {
          const std::int32_t line = pairs.line[index(pair_[at])];
          if (line < 0 || orders_[index(line)] != 3) continue;
          pair = pair_[at];
          count(pair, times);
        }
      };
      count_both(1);
      if (low_enough()) found = pair;
      count_both(-1);
    }
    for (const std::int32_t line : touched_) orders_[index(line)] = 0;
    return found;
  }

  // Return the cut of row t: the coordinate that moves open pairs and side constraints most; -1 if none does.
  //
  // Where zeros matter the first cut of a coordinate is at zero.
  std::int32_t choose(std::size_t t) {
    if (const std::int32_t pair = choose_order(t); pair >= 0) return static_cast<std::int32_t>(2 * d_) + pair;
    std::fill(score_.begin(), score_.end(), 0.0);
    std::fill(weight_.begin(), weight_.end(), 0.0);
    const std::size_t stride = 1 + (box_[t].middle - box_[t].begin) / kSample;
    for (std::size_t at = box_[t].begin; at < box_[t].middle; at += stride) {
      const std::size_t i = index(problem_.pairs.above[index(pair_[at])]);
      const std::size_t k = index(problem_.pairs.below[index(pair_[at])]);
      for (std::size_t j = 0; j < d_; ++j) weight_[j] += std::abs(problem_.columns(j, i) - problem_.columns(j, k));
    }
    double whole = 0.0;
    for (const double weight : weight_) whole += weight;
    if (whole > 0.0) {
      for (std::size_t j = 0; j < d_; ++j) score_[j] = weight_[j] / whole;
    }
    for (std::size_t row = 0; row < problem_.b.size(); ++row) {
      double largest = 0.0, sum = 0.0;
      for (std::size_t j = 0; j < d_; ++j) {
        const double v = problem_.A(row, j);
        largest += v * (v > 0.0 ? high(t)[j] : low(t)[j]);
        sum += std::abs(v);
      }
      if (!(largest > problem_.b[row] && sum > 0.0)) continue;
      for (std::size_t j = 0; j < d_; ++j) score_[j] += std::abs(problem_.A(row, j)) / sum;
    }
    double best = 0.0;
    std::int32_t cut = -1;
    for (std::size_t j = 0; j < d_; ++j) {
      const double width = high(t)[j] - low(t)[j];
      if (width > kNarrowest && width * score_[j] > best) {
        best = width * score_[j];
        cut = static_cast<std::int32_t>(j);
      }
    }
    if (cut < 0) return cut;
    const std::size_t j = index(cut);
    const bool at_zero = problem_.zeros[j] && low(t)[j] < 0.0 && 0.0 < high(t)[j];
    return at_zero ? cut + static_cast<std::int32_t>(d_) : cut;
  }

  const Problem& problem_;
  Totals totals_;
  std::size_t d_;
  std::size_t few_;  // of how many pairs of observations both orders may be open where a box is cut by one. In general
                     // no more than d - 2 planes w·δ = 0 share a line of a root, and a point takes few cuts
  std::vector<std::int64_t> limits_;
  std::size_t most_words_;
  std::int64_t checks_;    // one for each pair that is open in a box and each interval bound that moves in a part of it
  std::size_t depth_ = 0;  // row of the box whose parts are being examined; row 0 is a parent of the root
  std::vector<Box> box_;
  std::vector<double> low_, high_;          // interval bounds of each row
  std::vector<std::uint8_t> apart_;         // coordinates known not to be 0 although 0 is a bound of their interval
  std::vector<std::int64_t> counts_;        // lost pairs
  std::size_t nonzero_ = 0;                 // weights known not to be 0 in the box examined last
  std::vector<std::uint8_t> orders_;        // of each line: 1 and 2 for the orders that open pairs ask for
  std::vector<std::int32_t> touched_;       // lines with such pairs
  std::vector<std::int32_t> pair_;          // entries: open and lost pairs on the path,
  std::vector<double> largest_, smallest_;  // and the largest and smallest w·δ of open ones in the box
  std::vector<std::int32_t> words_;
  std::vector<double> score_, weight_;                     // of the coordinates
  std::array<double, kChunk> new_largest_, new_smallest_;  // of the pairs under examination
  std::array<std::int64_t, kChunk> lost_, open_;           // 1 for those pairs that are
};

}  // namespace ltr::recorder
