// Searches lines of scores f + t g for the best value of the statistic: the interface that ascents use.
#pragma once

#include <memory>

#include "arrays.h"
#include "random.h"

namespace ltr {

constexpr double kTie = 1e-11;     // values closer than this, relative to their size, count as equal
constexpr double kNarrow = 1e-11;  // share of a segment below which an interval is too short to step into reliably

inline double tie_at(double value) { return kTie * (1.0 + std::abs(value)); }

struct Segment {
  double low, high;
};

class LineSearch {
 public:
  struct Found {
    double value, at;
  };

  virtual ~LineSearch() = default;

  // Return the statistic of scores f, with all margins multiplied by a share.
  virtual double value(std::span<const double> f, double share) = 0;

  // Return the best value found of the statistic at scores f + t g over low < t < high, and a t that attains it.
  //
  // The answer is (-inf, low) if the segment is empty, if no value found is `least` or more, or if the search was
  // stopped. Where a search does not cover the whole line, it is around `here`; NaN tells that no t is known.
  virtual Found search(std::span<const double> f, std::span<const double> g, Segment segment, double here, double least,
                       Random& random) = 0;
};

// The best of the intervals between breakpoints, with the value of each.
//
// Of several best ones one is drawn with probability proportional to its length. Intervals shorter than a tiny share of
// the segment, and those with a value below `least`, are skipped. Where none is left, the answer is (-inf, low).
class BestInterval {
 public:
  BestInterval(Segment segment, double least, Random& random)
      : narrow_(kNarrow * (segment.high - segment.low)),
        least_(least),
        random_(random),
        best_{-kInfinity, segment.low} {}

  void consider(double value, double from, double to) {
    const double width = to - from;
    if (!(width > narrow_) || value < least_) return;
    const double tie = tie_at(value);
    if (value > best_.value + tie) {
      best_ = {value, 0.5 * (from + to)};
      room_ = width;
    } else if (value > best_.value - tie) {
      room_ += width;
      if (random_.uniform() * room_ < width) best_.at = 0.5 * (from + to);
    }
  }

  // Return the value below which an interval cannot be the answer.
  double needed() const { return std::max(least_, best_.value - tie_at(best_.value)); }

  LineSearch::Found found() const { return best_; }

 private:
  double narrow_, least_;
  Random& random_;
  LineSearch::Found best_;
  double room_ = 0.0;  // width of the best ones together
};

// --- over listed pairs, visiting every value that the statistic takes on a line (`pair_lines.cpp`)

// The pairs of a problem and its levels, see `ltr.exact.levels`. The pairs of a positive follow each other.
struct Pairs {
  std::span<const std::int32_t> above, below;  // observations of each pair
  std::span<const double> limit;               // score difference from which it is won
  std::span<const std::int32_t> positive;      // positive that counts it when it is lost
};

struct Levels {
  std::span<const std::int64_t> level;  // of each positive
  std::span<const std::int64_t> start;  // first positive of each level, and the number of positives
  std::span<const std::int64_t> most_lost, table, counts_at;  // of each level
  std::span<const double> contribution;
  std::int64_t counts_size;
  double shift;
  // of the objective and of each demand (`ltr.exact.constraints`), and the number of levels
  std::span<const std::int64_t> first_level;
  std::span<const double> least, penalty;  // of each demand: least sum of its levels, and the price of what is missing
};

// Return a search of lines, whose values are less the penalties of missed demands. The arrays of pairs must go on.
// Arrays that do not fit together are refused.
std::unique_ptr<LineSearch> search_pairs(const Pairs& pairs, const Levels& levels, std::size_t observations, Stop stop);

// --- over ranked lists, which list no pairs (`list_lines.cpp`)

// Lists of items. The score of an item is that of its row minus its offset, and of two items with equal scores the
// first one of the list is above. An item with a gain has a place, the number of items that count and are above it, one
// more if it counts itself; its gain is multiplied by the weight of that place. With ResolvedRanks every row is one
// item that counts. With Subranks there are two for a row with a gain: one that counts, and one with the gain whose
// offset is the margin.
struct Lists {
  std::span<const std::int32_t> row;  // of each item
  std::span<const double> offset, gain;
  std::span<const std::uint8_t> counts;     // 1 for items that count
  std::span<const std::int64_t> start;      // first item of each list, and the number of items
  std::span<const double> weight;           // by rank, of lists of the same length once, the lowest rank first
  std::span<const std::int64_t> weight_at;  // where the weights of each list start: as many as it has items that count
  double shift;
};

// Return a search of lines that uses up to so many threads; what it finds does not depend on their number. The arrays
// must go on, and are refused if they do not fit together.
std::unique_ptr<LineSearch> search_lists(const Lists& lists, std::size_t observations, std::size_t threads, Stop stop);

}  // namespace ltr
