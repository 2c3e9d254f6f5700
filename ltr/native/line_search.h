// Searches lines of scores f + t g for the best value of the statistic: the interface that ascents use.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "random.h"

namespace ltr {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
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

}  // namespace ltr
