// The numbers that the compiled weight-space search is tuned by.
//
// They decide how long a search takes, never whether an answer is right: tolerances and allowances for rounding stand
// beside the proofs that need them. Set by trial on lists like those of `docs/exact_bench.md`; `scripts/bench_exact.py`
// measures a change. Python's are in `ltr/exact/tuning.py`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ltr::weight_space::tuning {

// --- a box (`search.cpp`, `boxes.cpp`)

inline constexpr double kDense = 0.5;         // share of open pairs below which a box gets its own list, first of all
inline constexpr double kDenseToSplit = 0.7;  // the same before it is split, so that its parts share the list
inline constexpr int kRounds = 4;             // of tightening a box
inline constexpr double kWorthwhile = 0.9;    // share of a width below which a box is updated
inline constexpr double kMarginWorthwhile = 0.95;  // the same for the coordinate of the margin
inline constexpr double kPromising = 0.3;        // share of the required loss of the halves from which bounds are tried
inline constexpr double kTrySplit = 0.3;         // share of the best score from which a split is tried out
inline constexpr std::int64_t kTrials = 63;      // boxes between two candidates, a power of two less 1
inline constexpr std::int64_t kSmallTrials = 7;  // the same for small boxes
inline constexpr double kSmall = 1e-3;           // width of a box that more candidates are taken from
inline constexpr std::size_t kFixed = 128;       // pairs that take as long as the fixed work on a box
inline constexpr int kUpdates = 100;             // changes of interval bounds until they are computed afresh
inline constexpr std::size_t kCached = 512;      // pairs that stay in the cache while all moves of a box are added

// --- halves and quarters (`probing.cpp`)

inline constexpr std::size_t kProbed = 256;  // pairs in a list from which probing pays
inline constexpr std::size_t kExact = 1500;  // pairs in a list from which probing computes losses exactly
inline constexpr double kLossOffset = 0.02;  // share of the required loss added to that of each half: one may lose none
inline constexpr double kReached = 0.75;     // share of its range below which the upper bound of a pair may be lost

// --- bounds (`bounds.cpp`)

inline constexpr int kThirds = 8;            // of an interval of shares, when two bounds are combined
inline constexpr int kSteps = 5;             // of the descent of the hinge bound
inline constexpr int kDescent = 20;          // steps of the descent to a candidate
inline constexpr double kRelaxation = 0.7;   // share of Polyak's step that the first takes
inline constexpr int kPackings = 2;          // times that unit losses are packed again, with the budgets left
inline constexpr double kPackAgain = 0.3;    // share of the required loss that conflicts must take for another packing
inline constexpr double kLeastGrowth = 1.1;  // growth of the packed losses from which another packing follows

}  // namespace ltr::weight_space::tuning
