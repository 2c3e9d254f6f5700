// What passes over the pairs of a list begin with: the list sorted by label, and exponentials of its scores.
#pragma once

#include "losses.h"

namespace ltr {

// The items of a list sorted by label, and their shares of the total weight, which is ``heaviest * weights``. Products
// of shares, unlike those of weights, stay within the floating point range. Without weights all shares are 1.
struct Sorted {
  ByLabel by_label;
  std::size_t n;
  double *scores, *shares, *slopes;
  double heaviest = 1.0, weights = 1.0;
  bool weighted;

  std::size_t begin(std::size_t label) const { return index(by_label.begin[label]); }
};

Sorted sorted(const List& list, Workspace& space);

// Exponentials of the scores of a list around the middle c of their range, and their inverses: exp((s - c) unit), with
// zeros behind the last item, and exp((c - s) unit). If scores are at most 64 apart, exp(s_k - s_i) is a product of two
// of them, which takes two exponentials per item instead of one per pair. The exponents are then at most 32 in size, so
// that rounding them changes the result by less than 4e-15.
struct Exponentials {
  double *up, *down;
  bool close;  // whether they exist: the scores are not far apart
};

// The array has room for `padded(n)` numbers, which are filled.
Exponentials exponentials(double* scores, std::size_t n, double unit, Workspace& space);

// Write the slopes from those of a sum over pairs, and return its value: a mean, or a sum with the total weight put
// back.
double finished(const Sorted& x, double total, double pairs, const List& list, const Options& options);

}  // namespace ltr
