// Searches lines of scores f + t g for the best value of the statistic: the interface that ascents use.
#pragma once

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

}  // namespace ltr
