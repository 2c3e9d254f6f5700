// Sample weights near a start by elliptical slice sampling (Murray, Adams & MacKay 2010), for `ltr.exact.central`.
//
// A walker has the weights ``origin + step``. Its log density is ``sharpness * statistic``; the prior of the step is
// normal with mean 0 and covariance spread^2 I. A move draws a second step from the prior and looks for a point
// ``step cos(angle) + drawn sin(angle)`` of the ellipse through both whose density is large enough. Scores are linear
// in the weights, so those of all points of an ellipse come from the scores of its two ends.
#include <bit>
#include <numbers>

#include "bindings.h"
#include "module.h"
#include "random.h"

namespace ltr {
namespace {

constexpr int kShrinks = 40;  // times that the arc of the ellipse is shortened before a walker stays where it is

// Lists of rows, one behind the other, that are ordered by score.
struct Lists {
  std::span<const std::int64_t> start;  // first row of each list, and the number of rows, (lists + 1,)
  std::span<const double> gains;        // of each row
  std::span<const double> penalty;      // what is taken from the score of each row before scores are compared
  std::span<const double> weights;      // rank weights of each list, from the top
};

// Linear side constraints ``A w <= b`` on weights scaled into the box [-1, 1]^d.
struct Sides {
  Matrix<const double> A;
  std::span<const double> b;
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

bool allowed(const Sides& sides, std::span<const double> origin, std::span<const std::int64_t> free,
             const std::vector<double>& step, std::vector<double>& weights) {
  if (sides.b.empty()) return true;
  std::copy(origin.begin(), origin.end(), weights.begin());
  for (std::size_t j = 0; j < free.size(); ++j) weights[index(free[j])] += step[j];
  double largest = 1.0;
  for (const double weight : weights) largest = std::max(largest, std::abs(weight));
  for (std::size_t row = 0; row < sides.b.size(); ++row) {
    double sum = 0.0;
    for (std::size_t j = 0; j < weights.size(); ++j) sum += sides.A(row, j) * (weights[j] / largest);
    if (!(sum <= sides.b[row])) return false;
  }
  return true;
}

struct Plan {
  std::int64_t walkers, steps, burn_in;  // the first steps, which are not averaged
  double sharpness, spread;
};

// Write the mean step of the walkers to `mean`; each walker starts at 0.
void sample(const Lists& lists, const Sides& sides, std::span<const double> origin, std::span<const std::int64_t> free,
            std::span<const double> base, Matrix<const double> Z, const Plan& plan, Random random,
            std::span<double> mean) {
  const std::size_t n = base.size(), d = free.size();
  Statistic statistic(lists);
  std::vector<double> step(d), drawn(d), tried(d), weights(origin.size());
  std::vector<double> moves(n), drawn_moves(n), tried_moves(n);  // of the scores
  std::fill(mean.begin(), mean.end(), 0.0);
  for (std::int64_t walker = 0; walker < plan.walkers; ++walker) {
    std::fill(step.begin(), step.end(), 0.0);
    std::fill(moves.begin(), moves.end(), 0.0);
    double level = plan.sharpness * statistic(base.data(), moves.data());
    for (std::int64_t index = 0; index < plan.steps; ++index) {
      std::fill(drawn_moves.begin(), drawn_moves.end(), 0.0);
      for (std::size_t j = 0; j < d; ++j) {
        drawn[j] = plan.spread * random.normal();
        add_multiple(drawn_moves.data(), drawn[j], Z.data + j * n, n);
      }
      const double least = level + std::log1p(-random.uniform());
      double angle = 2.0 * std::numbers::pi * random.uniform();
      double low = angle - 2.0 * std::numbers::pi, high = angle;
      for (int shrink = 0; shrink < kShrinks; ++shrink) {
        const double a = std::cos(angle), b = std::sin(angle);
        mix(tried.data(), a, step.data(), b, drawn.data(), d);
        if (allowed(sides, origin, free, tried, weights)) {
          mix(tried_moves.data(), a, moves.data(), b, drawn_moves.data(), n);
          const double found = plan.sharpness * statistic(base.data(), tried_moves.data());
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
      if (index >= plan.burn_in) {
        for (std::size_t j = 0; j < d; ++j) mean[j] += step[j];
      }
    }
  }
  for (double& sum : mean) sum /= static_cast<double>(plan.walkers * (plan.steps - plan.burn_in));
}

Lists checked(const Vector<std::int64_t>& start, const Vector<double>& gains, const Vector<double>& penalty,
              const Vector<double>& rank_weights) {
  const std::size_t n = gains.shape(0), lists = start.shape(0);
  require(n > 0 && penalty.shape(0) == n && rank_weights.shape(0) == n, "one entry per row");
  require(lists > 0 && start(0) == 0 && start(lists - 1) == static_cast<std::int64_t>(n), "lists of all rows");
  require(std::is_sorted(start.data(), start.data() + lists), "lists follow each other");
  return {view(start), view(gains), view(penalty), view(rank_weights)};
}

void sample_steps(Vector<std::int64_t> start, Vector<double> gains, Vector<double> penalty, Vector<double> rank_weights,
                  Rows<double> A, Vector<double> b, Vector<double> origin, Vector<std::int64_t> free,
                  Vector<double> base, Rows<double> Z, std::int64_t walkers, std::int64_t steps, std::int64_t burn_in,
                  double sharpness, double spread, std::uint64_t seed, OutVector<double> mean) {
  const std::size_t n = gains.shape(0), d = free.shape(0);
  const Lists lists = checked(start, gains, penalty, rank_weights);
  require(base.shape(0) == n, "one score per row");
  require(Z.shape(0) == d && Z.shape(1) == n && mean.shape(0) == d, "one column per free weight");
  require(A.shape(0) == b.shape(0) && (A.shape(0) == 0 || A.shape(1) == origin.shape(0)), "one row per constraint");
  require(walkers > 0 && steps > burn_in, "steps to average");
  for (const std::int64_t j : view(free)) require(j >= 0 && j < static_cast<std::int64_t>(origin.shape(0)), "columns");
  const nb::gil_scoped_release release;
  sample(lists, {view(A), view(b)}, view(origin), view(free), view(base), view(Z),
         {walkers, steps, burn_in, sharpness, spread}, Random(seed), view(mean));
}

void statistics(Vector<std::int64_t> start, Vector<double> gains, Vector<double> penalty, Vector<double> rank_weights,
                Rows<double> scores, OutVector<double> found) {
  const Lists lists = checked(start, gains, penalty, rank_weights);
  require(scores.shape(0) == found.shape(0) && scores.shape(1) == lists.gains.size(), "one score per row");
  const nb::gil_scoped_release release;
  Statistic statistic(lists);
  const std::vector<double> none(lists.gains.size());
  for (std::size_t row = 0; row < scores.shape(0); ++row)
    view(found)[row] = statistic(view(scores)[row].data(), none.data());
}

}  // namespace

void bind_central(nb::module_& module) {
  module.def("statistics", &statistics, nb::arg("start"), nb::arg("gains"), nb::arg("penalty"), nb::arg("rank_weights"),
             nb::arg("scores"), nb::arg("found").noconvert(),
             "Write the statistic of each row of scores, up to a constant, to `found`.");
  module.def("sample_steps", &sample_steps, nb::arg("start"), nb::arg("gains"), nb::arg("penalty"),
             nb::arg("rank_weights"), nb::arg("A"), nb::arg("b"), nb::arg("origin"), nb::arg("free"), nb::arg("base"),
             nb::arg("Z"), nb::arg("walkers"), nb::arg("steps"), nb::arg("burn_in"), nb::arg("sharpness"),
             nb::arg("spread"), nb::arg("seed"), nb::arg("mean").noconvert(),
             "Write the mean step of walkers by elliptical slice sampling to `mean`, see `ltr.exact.central`.");
}

}  // namespace ltr
