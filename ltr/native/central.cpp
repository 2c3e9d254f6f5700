// Sample weights near a start by elliptical slice sampling (Murray, Adams & MacKay 2010), for `ltr.exact.central`.
//
// A walker has the weights ``origin + step``. Its log density is ``sharpness * statistic``; the prior of the step is
// normal with mean 0 and covariance spread^2 I. A move draws a second step from the prior and looks for a point
// ``step cos(angle) + drawn sin(angle)`` of the ellipse through both whose density is large enough. Scores are linear
// in the weights, so those of all points of an ellipse come from the scores of its two ends.
#include <bit>
#include <numbers>

#include "functions.h"
#include "random.h"

namespace ltr {
namespace {

constexpr int kShrinks = 40;  // times that the arc of the ellipse is shortened before a walker stays where it is

// Lists of rows, one behind the other, that are ordered by score; see `functions.h`.
struct Lists {
  std::span<const std::int64_t> start;
  std::span<const double> gains, penalty, weights;

  Lists(std::span<const std::int64_t> starts, std::span<const double> gains_of, std::span<const double> penalties,
        std::span<const double> rank_weights)
      : start(starts), gains(gains_of), penalty(penalties), weights(rank_weights) {
    const std::size_t n = gains.size();
    require(n > 0 && penalty.size() == n && weights.size() == n, "one entry per row");
    require(!start.empty() && start.front() == 0 && start.back() == static_cast<std::int64_t>(n), "lists of all rows");
    require(std::is_sorted(start.begin(), start.end()), "lists follow each other");
  }
};

LTR_MULTIVERSION std::int64_t count_up_to(const double* values, std::size_t n, double limit) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < n; ++i) count += values[i] <= limit;
  return count;
}

LTR_MULTIVERSION void add_multiple(double* sum, double factor, const double* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += factor * values[i];
}

LTR_MULTIVERSION void mix(double* mixed, double a, const double* x, double b, const double* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) mixed[i] = a * x[i] + b * y[i];
}

// Number the bucket of each value, from 0 for the smallest value to n - 1 for the largest.
LTR_MULTIVERSION void number_buckets(const double* values, std::size_t n, std::int32_t* bucket) {
  double low = values[0], high = values[0];
#pragma omp simd reduction(min : low) reduction(max : high)
  for (std::size_t i = 0; i < n; ++i) {
    low = values[i] < low ? values[i] : low;
    high = values[i] > high ? values[i] : high;
  }
  const double scale = high - low > 1e-290 ? static_cast<double>(n - 1) / (high - low) : 0.0;
  for (std::size_t i = 0; i < n; ++i) bucket[i] = static_cast<std::int32_t>((values[i] - low) * scale);
}

// Computes ``sum over lists of sum over rows of gain * rank weight``, up to a constant.
//
// Rows are ordered by their depth, penalty - score. Of rows at equal depth the one with the smaller gain is above.
class Statistic {
 public:
  explicit Statistic(const Lists& lists)
      : lists_(lists),
        depth_(lists.gains.size()),
        sorted_(depth_),
        bucket_(depth_.size()),
        start_(depth_.size() + 2),
        last_(bucket_),
        previous_(bucket_) {
    for (std::size_t list = 0; list + 1 < lists.start.size(); ++list) {
      Part part{.begin = index(lists.start[list]), .end = index(lists.start[list + 1])};
      if (part.begin == part.end) continue;
      const auto gains = lists.gains;
      part.least = *std::min_element(gains.begin() + part.begin, gains.begin() + part.end);
      for (std::size_t i = part.begin; i < part.end; ++i) {
        if (gains[i] > part.least) part.gaining.push_back(i);
      }
      std::stable_sort(part.gaining.begin(), part.gaining.end(),
                       [&](std::size_t i, std::size_t k) { return gains[i] > gains[k]; });
      if (!part.gaining.empty()) parts_.push_back(std::move(part));
    }
  }

  double operator()(const double* base, const double* moves) {
    for (std::size_t i = 0; i < depth_.size(); ++i) depth_[i] = lists_.penalty[i] - (base[i] + moves[i]);
    double total = 0.0;
    for (const Part& part : parts_) total += value(part);
    return total;
  }

 private:
  struct Part {  // a list in which some rows gain more than others
    std::size_t begin = 0, end = 0;
    double least = 0.0;                  // smallest gain
    std::vector<std::size_t> gaining{};  // rows with a larger gain, in descending order of gain
  };

  double value(const Part& part) {
    const std::size_t n = part.end - part.begin, gaining = part.gaining.size();
    const double* depth = depth_.data() + part.begin;
    const bool few = n * gaining < 32 * (n + gaining);  // then looking at all rows for each is quicker than buckets
    if (!few) fill_buckets(depth, n);
    double total = 0.0;
    for (std::size_t k = 0; k < gaining; ++k) {
      const std::size_t i = part.gaining[k];
      const double own = depth_[i];
      std::int64_t above = -1;  // the row itself is among those counted below
      if (few) {
        above += count_up_to(depth, n, own);
        for (std::size_t before = 0; before < k; ++before) above -= depth_[part.gaining[before]] == own;
      } else {
        const auto bucket = index(bucket_[i - part.begin]);
        const std::int32_t first = start_[bucket], size = start_[bucket + 1] - first;
        above += first + count_up_to(sorted_.data() + first, index(size), own);
        for (std::int32_t before = last_[bucket]; before >= 0; before = previous_[index(before)]) {
          above -= depth_[part.gaining[index(before)]] == own;
        }
        previous_[k] = last_[bucket];
        last_[bucket] = static_cast<std::int32_t>(k);
      }
      total += (lists_.gains[i] - part.least) * lists_.weights[part.begin + index(above)];
    }
    return total;
  }

  // Distribute depths among as many buckets of equal width as there are rows; bucket b has the entries of `sorted`
  // from ``start[b]`` to before ``start[b + 1]``.
  void fill_buckets(const double* depth, std::size_t n) {
    number_buckets(depth, n, bucket_.data());
    std::fill_n(start_.begin(), n + 2, 0);
    std::fill_n(last_.begin(), n, -1);
    for (std::size_t i = 0; i < n; ++i) ++start_[index(bucket_[i]) + 2];
    for (std::size_t bucket = 2; bucket < n + 2; ++bucket) start_[bucket] += start_[bucket - 1];
    for (std::size_t i = 0; i < n; ++i) {
      sorted_[index(start_[index(bucket_[i]) + 1]++)] = depth[i];
    }
  }

  Lists lists_;
  std::vector<double> depth_, sorted_;
  std::vector<std::int32_t> bucket_, start_, last_, previous_;  // last gaining row of a bucket, and the one before each
  std::vector<Part> parts_;
};

bool allowed(Matrix<const double> A, std::span<const double> b, std::span<const double> origin,
             std::span<const std::int64_t> free, const std::vector<double>& step, std::vector<double>& weights) {
  if (b.empty()) return true;
  std::copy(origin.begin(), origin.end(), weights.begin());
  for (std::size_t j = 0; j < free.size(); ++j) weights[index(free[j])] += step[j];
  double largest = 1.0;
  for (const double weight : weights) largest = std::max(largest, std::abs(weight));
  for (std::size_t row = 0; row < b.size(); ++row) {
    double sum = 0.0;
    for (std::size_t j = 0; j < weights.size(); ++j) sum += A(row, j) * (weights[j] / largest);
    if (!(sum <= b[row])) return false;
  }
  return true;
}

}  // namespace

void statistics(std::span<const std::int64_t> start, std::span<const double> gains, std::span<const double> penalty,
                std::span<const double> rank_weights, Matrix<const double> scores, std::span<double> found) {
  Statistic statistic({start, gains, penalty, rank_weights});
  require(scores.rows == found.size() && scores.columns == gains.size(), "one score per row");
  const std::vector<double> none(gains.size());
  for (std::size_t row = 0; row < scores.rows; ++row) found[row] = statistic(scores[row].data(), none.data());
}

void sample_steps(std::span<const std::int64_t> start, std::span<const double> gains, std::span<const double> penalty,
                  std::span<const double> rank_weights, Matrix<const double> A, std::span<const double> b,
                  std::span<const double> origin, std::span<const std::int64_t> free, std::span<const double> base,
                  Matrix<const double> Z, std::int64_t walkers, std::int64_t steps, std::int64_t burn_in,
                  double sharpness, double spread, std::uint64_t seed, std::span<double> mean) {
  const std::size_t n = gains.size(), d = free.size();
  Statistic statistic({start, gains, penalty, rank_weights});
  require(base.size() == n, "one score per row");
  require(Z.rows == d && Z.columns == n && mean.size() == d, "one column per free weight");
  require(A.rows == b.size() && (A.rows == 0 || A.columns == origin.size()), "one row per constraint");
  require(walkers > 0 && steps > burn_in, "steps to average");
  require_places(free, origin.size(), "columns");
  Random random(seed);
  std::vector<double> step(d), drawn(d), tried(d), weights(origin.size());
  std::vector<double> moves(n), drawn_moves(n), tried_moves(n);  // of the scores
  std::fill(mean.begin(), mean.end(), 0.0);
  for (std::int64_t walker = 0; walker < walkers; ++walker) {
    std::fill(step.begin(), step.end(), 0.0);
    std::fill(moves.begin(), moves.end(), 0.0);
    double level = sharpness * statistic(base.data(), moves.data());
    for (std::int64_t move = 0; move < steps; ++move) {
      std::fill(drawn_moves.begin(), drawn_moves.end(), 0.0);
      for (std::size_t j = 0; j < d; ++j) {
        drawn[j] = spread * random.normal();
        add_multiple(drawn_moves.data(), drawn[j], Z.data + j * n, n);
      }
      const double least = level + std::log1p(-random.uniform());
      double angle = 2.0 * std::numbers::pi * random.uniform();
      double low = angle - 2.0 * std::numbers::pi, high = angle;
      for (int shrink = 0; shrink < kShrinks; ++shrink) {
        const double old = std::cos(angle), fresh = std::sin(angle);
        mix(tried.data(), old, step.data(), fresh, drawn.data(), d);
        if (allowed(A, b, origin, free, tried, weights)) {
          mix(tried_moves.data(), old, moves.data(), fresh, drawn_moves.data(), n);
          const double found = sharpness * statistic(base.data(), tried_moves.data());
          if (found > least) {
            step.swap(tried);
            moves.swap(tried_moves);
            level = found;
            break;
          }
        }
        (angle < 0.0 ? low : high) = angle;
        angle = low + (high - low) * random.uniform();
      }
      if (move >= burn_in) {
        for (std::size_t j = 0; j < d; ++j) mean[j] += step[j];
      }
    }
  }
  for (double& sum : mean) sum /= static_cast<double>(walkers * (steps - burn_in));
}

}  // namespace ltr
