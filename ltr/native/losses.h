// Losses of ranked lists: the value of one list and its gradient. `losses.cpp` reads the lists and calls these kernels.
//
// A kernel returns the value and writes the slopes, in float64. NaN instead of a value says that the inputs must be
// looked at in Python, which raises an error or takes another way. With `curvature` the value means nothing else, and
// in place of the slopes the kernel writes, for each score, the second derivative of the value in this score alone, or
// a bound above it where that is not simple (see each kernel).
#pragma once

#include "lists.h"

namespace ltr {

struct Options {
  bool mean = true;      // over pairs or items; otherwise their sum
  double largest = 0.0;  // largest number of the type of the scores: slopes do not leave its range
  bool single = false;   // whether the scores are in single precision
  double power = 1.0;    // of the P-norm push
  // rank statistics
  std::span<const double> rank_weights{};  // a_1..a_n of the longest list, without the cutoff
  bool by_rank = false;                    // whether weights depend on the rank instead of the position
  std::int64_t cutoff = 0;                 // positions from here on have weight 0
  bool exp2 = false;                       // gains are 2^label - 1, otherwise the label
  bool hits = false;                       // gains are 1 for labels above 0, whatever `exp2` says
  bool share_of_pairs = false;             // divide by the number of pairs of a positive and a negative
  double temperature = 1.0;
};

using Kernel = double(const List&, const Options&, Workspace&, bool curvature);

Kernel ranknet, hinge, squared_hinge, exponential, exponential_push, logistic_push;
Kernel logistic, list_net, softmax, list_mle;
Kernel lambda, smooth;

// RankNet's slopes and curvatures, which are written together, in near-linear time; the value is 0.
Kernel ranknet_derivatives;
// The same by all pairs, for short lists.
double ranknet_derivatives_by_pairs(const List& list, const Options& options, Workspace& space);

constexpr double kRefused = std::numeric_limits<double>::quiet_NaN();

}  // namespace ltr
