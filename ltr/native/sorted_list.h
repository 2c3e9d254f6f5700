// A list sorted by label, from which losses of pairs are computed.
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

// Write the slopes from those of a sum over pairs, and return its value: a mean, or a sum with the total weight put
// back.
double finished(const Sorted& x, double total, double pairs, const List& list, const Options& options);

}  // namespace ltr
