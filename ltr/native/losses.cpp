// Losses of batches of lists: read and check lists, call a kernel, add up values.
#include "losses.h"

#include <atomic>
#include <exception>
#include <map>
#include <type_traits>

#include "functions.h"
#include "workers.h"

namespace ltr {

struct ListLoss::Named {
  Kernel* kernel;
  bool of_pairs = false;   // whether its time grows with the square of the length of a list
  bool of_items = false;   // whether it is a mean or sum of losses of single items
  bool amounts = false;    // whether labels are amounts, of which none is negative
  bool ranks = false;      // whether it takes weights of ranks
  Kernel* both = nullptr;  // what writes slopes and curvatures together, in near-linear time; the value is 0
};

const ListLoss::Named& ListLoss::named(const std::string& name) {
  static const std::map<std::string, Named> table = {
      {"ranknet", {.kernel = ranknet, .of_pairs = true, .both = ranknet_derivatives}},
      {"hinge", {.kernel = hinge, .of_pairs = true}},
      {"squared_hinge", {.kernel = squared_hinge, .of_pairs = true}},
      {"exponential", {.kernel = exponential}},
      {"exponential_push", {.kernel = exponential_push}},
      {"logistic_push", {.kernel = logistic_push, .of_pairs = true}},
      {"logistic", {.kernel = logistic, .of_items = true, .amounts = true}},
      {"list_net", {.kernel = list_net}},
      {"softmax", {.kernel = softmax, .amounts = true}},
      {"list_mle", {.kernel = list_mle}},
      {"lambda", {.kernel = lambda, .of_pairs = true, .amounts = true, .ranks = true}},
      {"smooth", {.kernel = smooth, .of_pairs = true, .amounts = true, .ranks = true}},
  };
  const auto found = table.find(name);
  require(found != table.end(), "the name of a loss");
  return found->second;
}

ListLoss::ListLoss(const std::string& name, bool mean, double power, double temperature,
                   std::vector<double> rank_weights, bool by_rank, std::int64_t cutoff, bool exp2, bool hits,
                   bool share_of_pairs)
    : named_(named(name)),
      options_{.mean = mean,
               .power = power,
               .by_rank = by_rank,
               .cutoff = cutoff,
               .exp2 = exp2,
               .hits = hits,
               .share_of_pairs = share_of_pairs,
               .temperature = temperature},
      rank_weights_(std::move(rank_weights)) {}

namespace {

constexpr double kExact = 1 << 24;     // all whole numbers up to here are exact in float32
constexpr double kThreadWork = 100e3;  // nanoseconds of work from which another thread pays
constexpr std::size_t kMerged = 1024;  // items of short lists that are read together where lists do not matter
constexpr std::size_t kChunks = 8;     // parts of the work of each thread

// --- reading -------------------------------------------------------------------------------------------------------

// Convert scores and labels of successive items to float64; return whether one of them must be refused. Differences of
// a number from itself are 0 or, if it is not finite, NaN. Labels are numbers of the type of the scores, of which none
// may be negative where they are amounts, or whole numbers, of which none may ever be; if these are so large that they
// may become equal in the type of the scores, Python looks at them.
template <class Score, class Label>
[[gnu::always_inline]] inline bool convert(const Score* scores, const Label* labels, std::size_t n, double* s,
                                           double* y, bool amounts) {
  double zero = 0.0, least = 0.0, largest = 0.0;
#pragma omp simd reduction(+ : zero) reduction(min : least) reduction(max : largest)
  for (std::size_t i = 0; i < n; ++i) {
    const auto score = static_cast<double>(scores[i]), label = static_cast<double>(labels[i]);
    s[i] = score;
    y[i] = label;
    zero += score - score;
    if constexpr (!std::is_integral_v<Label>) zero += label - label;
    least = label < least ? label : least;
    largest = label > largest ? label : largest;
  }
  const bool exact = sizeof(Score) == 8 || sizeof(Label) == 4 || largest < kExact;
  return !(zero == 0.0) || (least < 0.0 && (amounts || std::is_integral_v<Label>)) || !exact;
}

LTR_MULTIVERSION bool read(const float* scores, const float* labels, std::size_t n, double* s, double* y,
                           bool amounts) {
  return convert(scores, labels, n, s, y, amounts);
}
LTR_MULTIVERSION bool read(const float* scores, const std::int64_t* labels, std::size_t n, double* s, double* y,
                           bool amounts) {
  return convert(scores, labels, n, s, y, amounts);
}
LTR_MULTIVERSION bool read(const double* scores, const double* labels, std::size_t n, double* s, double* y,
                           bool amounts) {
  return convert(scores, labels, n, s, y, amounts);
}
LTR_MULTIVERSION bool read(const double* scores, const std::int64_t* labels, std::size_t n, double* s, double* y,
                           bool amounts) {
  return convert(scores, labels, n, s, y, amounts);
}

template <class Score>
[[gnu::always_inline]] inline void write_in_range(const double* slopes, double unit, std::size_t n, Score* out) {
  constexpr double kLargest = std::numeric_limits<Score>::max();
  for (std::size_t i = 0; i < n; ++i) {
    const double slope = slopes[i] * unit, low = slope > -kLargest ? slope : -kLargest;
    out[i] = static_cast<Score>(low < kLargest ? low : kLargest);
  }
}

LTR_MULTIVERSION void write(const double* slopes, double unit, std::size_t n, float* out) {
  write_in_range(slopes, unit, n, out);
}
LTR_MULTIVERSION void write(const double* slopes, double unit, std::size_t n, double* out) {
  write_in_range(slopes, unit, n, out);
}

// The arrays of one list, which are kept from list to list.
struct Buffers {
  std::vector<double> scores, labels, weights, slopes, curvatures;
  std::vector<std::size_t> items;
  Workspace space;

  void reset(std::size_t n) {
    space.reset(n);
    if (items.size() >= n) return;
    for (auto* values : {&scores, &labels, &weights, &slopes, &curvatures}) values->resize(padded(n));
    items.resize(n);
  }
};

struct Task {
  Kernel *kernel, *both;  // `both` writes slopes and curvatures, where there is such a kernel
  bool amounts;
  Options options;
  double unit;  // by which slopes are multiplied

  // Return the value of a list and write its slopes and, where they are asked for, its curvatures.
  double operator()(const List& list, Workspace& space, bool curvatures) const {
    if (curvatures && both != nullptr) return both(list, options, space, true);
    const double value = kernel(list, options, space, false);
    if (curvatures) {
      space.reset(list.n);
      List other = list;
      other.slopes = list.curvatures;
      kernel(other, options, space, true);
    }
    return value;
  }
};

// Write the value of a list, its slopes and, where they are asked for, its curvatures; return whether the list is
// accepted.
template <class Score, class Label>
bool evaluate(const Batch<Score, Label>& batch, std::size_t list, const Task& task, Buffers& own, double* value) {
  Score *slopes = batch.slopes, *curvatures = batch.curvatures;
  const std::size_t begin = batch.begin(list), length = batch.begin(list + 1) - begin;
  own.reset(length);
  const bool in_order = batch.groups == nullptr || batch.groups->order().empty();
  const bool whole = in_order && batch.mask == nullptr && batch.weights == nullptr;
  const Score* scores = batch.scores + begin;
  const Label* labels = batch.labels + begin;
  std::size_t n = whole ? length : 0;
  if (!whole) {  // items that count are copied one behind the other; all real ones are checked
    auto* some = reinterpret_cast<Score*>(own.space.take(length));
    auto* theirs = reinterpret_cast<Label*>(own.space.take(length));
    for (std::size_t at = begin; at < begin + length; ++at) {
      const std::size_t item = in_order ? at : index(batch.groups->order()[at]);
      slopes[item] = 0;
      if (curvatures != nullptr) curvatures[item] = 0;
      if (batch.mask != nullptr && batch.mask[item] == 0) continue;
      some[n] = batch.scores[item];
      theirs[n] = batch.labels[item];
      own.items[n] = item;
      if (batch.weights != nullptr) own.weights[n] = static_cast<double>(batch.weights[item]);
      ++n;
    }
    scores = some;
    labels = theirs;
    own.space.reset(length);
  }
  if (read(scores, labels, n, own.scores.data(), own.labels.data(), task.amounts)) return false;
  if (batch.weights != nullptr) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (!(own.weights[i] >= 0.0 && own.weights[i] < kInfinity)) return false;
      if (own.weights[i] == 0.0) continue;
      own.scores[kept] = own.scores[i];
      own.labels[kept] = own.labels[i];
      own.weights[kept] = own.weights[i];
      own.items[kept++] = own.items[i];
    }
    n = kept;
  }
  const double* weights = batch.weights == nullptr ? nullptr : own.weights.data();
  const List given{n, own.scores.data(), own.labels.data(), weights, own.slopes.data(), own.curvatures.data()};
  *value = task(given, own.space, curvatures != nullptr);
  if (std::isnan(*value)) return false;
  const auto hand_over = [&](const std::vector<double>& from, Score* to) {
    if (whole) return write(from.data(), task.unit, n, to + begin);
    own.space.reset(length);
    auto* found = reinterpret_cast<Score*>(own.space.take(length));
    write(from.data(), task.unit, n, found);
    for (std::size_t i = 0; i < n; ++i) to[own.items[i]] = found[i];
  };
  hand_over(own.slopes, slopes);
  if (curvatures != nullptr) hand_over(own.curvatures, curvatures);
  return true;
}

template <class Score, class Label>
bool evaluate_lists(const Batch<Score, Label>& batch, const Task& task, double work, std::size_t threads,
                    std::vector<double>& values) {
  threads =
      std::clamp<std::size_t>(index(work / kThreadWork), 1, std::max<std::size_t>(std::min(threads, batch.lists), 1));
  const std::size_t step = threads == 1 ? batch.lists : batch.lists / (kChunks * threads) + 1;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> accepted{true};
  std::exception_ptr failure;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  const auto run = [&] {
    try {
      thread_local Buffers buffers;
      while (accepted.load(std::memory_order_relaxed)) {
        const std::size_t from = next.fetch_add(step);
        if (from >= batch.lists) break;
        for (std::size_t list = from; list < std::min(from + step, batch.lists); ++list) {
          if (!evaluate(batch, list, task, buffers, &values[list])) accepted = false;
        }
      }
    } catch (...) {
      accepted = false;
      if (!failed.test_and_set()) failure = std::current_exception();
    }
  };
  share_work(threads - 1, run);
  if (failure) std::rethrow_exception(failure);
  return accepted;
}

}  // namespace

template <class Score, class Label>
bool ListLoss::evaluate(Batch<Score, Label> batch, Reduction reduction, std::size_t threads, Score* values) const {
  const std::size_t items = batch.items, length = batch.length;
  const Groups* const groups = batch.groups;
  const std::size_t longest = groups != nullptr ? groups->longest() : length;
  require(!named_.ranks || rank_weights_.size() >= longest, "a weight per rank");
  require(longest < (std::size_t{1} << 31), "lists that are not too long");
  const bool by_mean = reduction == Reduction::mean && batch.lists > 0;
  Task task{named_.kernel, named_.both, named_.amounts, options_,
            by_mean ? 1.0 / static_cast<double>(batch.lists) : 1.0};
  task.options.largest = std::numeric_limits<Score>::max();
  task.options.single = std::is_same_v<Score, float>;
  task.options.rank_weights = rank_weights_;
  if (named_.of_items && reduction != Reduction::none && batch.mask == nullptr && batch.weights == nullptr &&
      groups == nullptr && length > 0 && length < kMerged) {
    // several lists at a time: the mean of means of equally many items is their sum, divided
    if (options_.mean) task.unit /= static_cast<double>(length);
    task.options.mean = false;
    batch.length = kMerged / length * length;
    batch.lists = (items + batch.length - 1) / batch.length;
  }
  const double pairs = groups != nullptr ? groups->pairs() : static_cast<double>(items) * static_cast<double>(length);
  const bool visits = named_.of_pairs && (batch.curvatures == nullptr || named_.both == nullptr);
  const double work = 5.0 * static_cast<double>(items) + (visits ? 0.5 * pairs : 0.0);
  std::vector<double> found(batch.lists);
  if (!evaluate_lists(batch, task, work, threads, found)) return false;
  if (reduction == Reduction::none) {
    std::transform(found.begin(), found.end(), values, [](double value) { return static_cast<Score>(value); });
    return true;
  }
  double total = 0.0;
  for (const double value : found) total += value * task.unit;
  *values = static_cast<Score>(total);
  return true;
}

template bool ListLoss::evaluate(Batch<float, float>, Reduction, std::size_t, float*) const;
template bool ListLoss::evaluate(Batch<float, std::int64_t>, Reduction, std::size_t, float*) const;
template bool ListLoss::evaluate(Batch<double, double>, Reduction, std::size_t, double*) const;
template bool ListLoss::evaluate(Batch<double, std::int64_t>, Reduction, std::size_t, double*) const;

// --- sums of a smooth function over long lists (`ltr.losses.transforms`) ---------------------------------------------

void add_moments(std::span<const double> q, std::span<const std::int64_t> bins, std::span<const double> place,
                 Matrix<double> total) {
  require(place.size() == q.size() && bins.size() == q.size() && total.columns >= 2, "one place and bin per item");
  require_places(bins, total.rows, "bins");
  for (std::size_t i = 0; i < q.size(); ++i) {
    const auto row = total[index(bins[i])];
    const double t = place[i], charge = q[i];
    double before = 1.0, current = t;
    row[0] += charge;
    row[1] += charge * t;
    for (std::size_t r = 2; r < row.size(); ++r) {
      before = std::exchange(current, 2.0 * t * current - before);
      row[r] += charge * current;
    }
  }
}

// Clenshaw's recurrence.
void interpolate(Matrix<const double> coefficients, std::span<const std::int64_t> bins, std::span<const double> place,
                 std::span<double> out) {
  require(place.size() == out.size() && bins.size() == out.size() && coefficients.columns >= 1,
          "one place and bin per item");
  require_places(bins, coefficients.rows, "bins");
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto row = coefficients[index(bins[i])];
    const double t = place[i];
    double after = 0.0, current = 0.0;
    for (std::size_t r = row.size() - 1; r > 0; --r) after = std::exchange(current, 2.0 * t * current - after + row[r]);
    out[i] = t * current - after + row[0];
  }
}

}  // namespace ltr
