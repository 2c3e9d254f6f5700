// Losses of batches of lists, as `ltr.losses.native` calls them: read and check lists, call a kernel, add up values.
#include "losses.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <exception>
#include <map>
#include <type_traits>

#include "bindings.h"
#include "module.h"
#include "workers.h"

namespace ltr {
namespace {

constexpr double kExact = 1 << 24;     // all whole numbers up to here are exact in float32
constexpr double kThreadWork = 100e3;  // nanoseconds of work from which another thread pays
constexpr std::size_t kMerged = 1024;  // items of short lists that are read together where lists do not matter
constexpr std::size_t kChunks = 8;     // parts of the work of each thread

struct Named {
  Kernel* kernel;
  bool of_pairs = false;   // whether its time grows with the square of the length of a list
  bool of_items = false;   // whether it is a mean or sum of losses of single items
  bool amounts = false;    // whether labels are amounts, of which none is negative
  Kernel* both = nullptr;  // what writes slopes and curvatures together, in near-linear time; the value is 0
};

const std::map<std::string, Named>& kernels() {
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
      {"lambda", {.kernel = lambda, .of_pairs = true, .amounts = true}},
      {"smooth", {.kernel = smooth, .of_pairs = true, .amounts = true}},
  };
  return table;
}

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

LTR_MULTIVERSION void write(const double* slopes, double unit, std::size_t n, float* out) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < n; ++i) {
    const double slope = slopes[i] * unit, low = slope > -kLargest ? slope : -kLargest;
    out[i] = static_cast<float>(low < kLargest ? low : kLargest);
  }
}
LTR_MULTIVERSION void write(const double* slopes, double unit, std::size_t n, double* out) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < n; ++i) {
    const double slope = slopes[i] * unit, low = slope > -kLargest ? slope : -kLargest;
    out[i] = low < kLargest ? low : kLargest;
  }
}

// Lists as rows of arrays, or as groups of flat items.
template <class Score, class Label>
struct Batch {
  const Score* scores;
  const Label* labels;
  const std::uint8_t* mask;  // or nullptr
  const Score* weights;      // or nullptr
  const Groups* groups;      // or nullptr
  std::size_t lists, length, items;

  std::size_t begin(std::size_t list) const {
    return groups != nullptr ? groups->start(list) : std::min(list * length, items);
  }
};

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
  Named loss;
  Options options;
  double unit;  // by which slopes are multiplied
  bool curvatures;

  // Return the value of a list and write its slopes and, where they are asked for, its curvatures.
  double operator()(const List& list, Workspace& space) const {
    if (curvatures && loss.both != nullptr) return loss.both(list, options, space, true);
    const double value = loss.kernel(list, options, space, false);
    if (curvatures) {
      space.reset(list.n);
      List other = list;
      other.slopes = list.curvatures;
      loss.kernel(other, options, space, true);
    }
    return value;
  }
};

// Write the value of a list, its slopes and, where they are asked for, its curvatures; return whether the list is
// accepted.
template <class Score, class Label>
bool evaluate(const Batch<Score, Label>& batch, std::size_t list, const Task& task, Buffers& own, double* value,
              Score* slopes, Score* curvatures) {
  const std::size_t begin = batch.begin(list), length = batch.begin(list + 1) - begin;
  own.reset(length);
  const bool in_order = batch.groups == nullptr || batch.groups->order().empty();
  if (in_order && batch.mask == nullptr && batch.weights == nullptr) {
    if (read(batch.scores + begin, batch.labels + begin, length, own.scores.data(), own.labels.data(),
             task.loss.amounts))
      return false;
    const List given{length, own.scores.data(), own.labels.data(), nullptr, own.slopes.data(), own.curvatures.data()};
    *value = task(given, own.space);
    write(own.slopes.data(), task.unit, length, slopes + begin);
    if (curvatures != nullptr) write(own.curvatures.data(), task.unit, length, curvatures + begin);
    return !std::isnan(*value);
  }
  // items that count are copied one behind the other; all real ones are checked
  auto* scores = reinterpret_cast<Score*>(own.space.take(length));
  auto* labels = reinterpret_cast<Label*>(own.space.take(length));
  std::size_t n = 0;
  bool bad = false;
  for (std::size_t at = begin; at < begin + length; ++at) {
    const std::size_t item = in_order ? at : index(batch.groups->order()[at]);
    slopes[item] = 0;
    if (curvatures != nullptr) curvatures[item] = 0;
    if (batch.mask != nullptr && batch.mask[item] == 0) continue;
    scores[n] = batch.scores[item];
    labels[n] = batch.labels[item];
    own.items[n] = item;
    if (batch.weights != nullptr) {
      own.weights[n] = static_cast<double>(batch.weights[item]);
      bad |= !(own.weights[n] >= 0.0 && own.weights[n] - own.weights[n] == 0.0);
    }
    ++n;
  }
  bad |= read(scores, labels, n, own.scores.data(), own.labels.data(), task.loss.amounts);
  if (bad) return false;
  if (batch.weights != nullptr) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (!(own.weights[i] > 0.0)) continue;
      own.scores[kept] = own.scores[i];
      own.labels[kept] = own.labels[i];
      own.weights[kept] = own.weights[i];
      own.items[kept++] = own.items[i];
    }
    n = kept;
  }
  own.space.reset(length);
  const double* weights = batch.weights == nullptr ? nullptr : own.weights.data();
  const List given{n, own.scores.data(), own.labels.data(), weights, own.slopes.data(), own.curvatures.data()};
  *value = task(given, own.space);
  if (std::isnan(*value)) return false;
  const auto scatter = [&](const double* from, Score* to) {
    own.space.reset(length);
    auto* found = reinterpret_cast<Score*>(own.space.take(length));
    write(from, task.unit, n, found);
    for (std::size_t i = 0; i < n; ++i) to[own.items[i]] = found[i];
  };
  scatter(own.slopes.data(), slopes);
  if (curvatures != nullptr) scatter(own.curvatures.data(), curvatures);
  return true;
}

template <class Score, class Label>
bool evaluate_lists(const Batch<Score, Label>& batch, const Task& task, double work, std::size_t threads,
                    std::vector<double>& values, Score* slopes, Score* curvatures) {
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
          if (!evaluate(batch, list, task, buffers, &values[list], slopes, curvatures)) accepted = false;
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

// --- what Python calls -----------------------------------------------------------------------------------------------

// A tensor of torch on the CPU whose numbers lie one behind the other, as its own methods describe it: that takes less
// time than an array of NumPy made of it.
class Tensor {
 public:
  explicit Tensor(nb::handle tensor) {
    static const nb::handle is_cpu = name("is_cpu"), is_contiguous = name("is_contiguous"), numel = name("numel"),
                            data_ptr = name("data_ptr"), dtype = name("dtype");
    require(nb::hasattr(tensor, data_ptr), "tensors of torch");
    require(nb::cast<bool>(tensor.attr(is_cpu)) && nb::cast<bool>(tensor.attr(is_contiguous)()),
            "tensors on the CPU without gaps");
    size_ = nb::cast<std::size_t>(tensor.attr(numel)());
    address_ = nb::cast<std::uintptr_t>(tensor.attr(data_ptr)());
    type_ = tensor.attr(dtype);
  }

  std::size_t size() const { return size_; }

  template <class T>
  bool is() const {
    return type_.is(type_of<std::remove_const_t<T>>());
  }

  template <class T>
  T* data(std::size_t items) const {
    require(is<T>(), "one number type for scores, labels, weights and slopes");
    require(size_ == items, "one entry per item");
    return reinterpret_cast<T*>(address_);
  }

 private:
  // a string that is looked up faster than one made anew, kept as long as the process
  static nb::handle name(const char* text) { return PyUnicode_InternFromString(text); }

  // torch's object for a number type, which lives as long as the process
  template <class T>
  static nb::handle type_of() {
    constexpr const char* kName = std::is_same_v<T, float>    ? "float32"
                                  : std::is_same_v<T, double> ? "float64"
                                  : std::is_same_v<T, bool>   ? "bool"
                                                              : "int64";
    static const nb::handle type = nb::object(nb::module_::import_("torch").attr(kName)).release();
    return type;
  }

  nb::object type_;
  std::size_t size_;
  std::uintptr_t address_;
};

enum class Reduction { none, sum, mean };

class ListLoss {
 public:
  ListLoss(const std::string& name, bool mean, double power, double temperature, std::vector<double> rank_weights,
           bool by_rank, std::int64_t cutoff, bool exp2, bool hits, bool share_of_pairs)
      : rank_weights_(std::move(rank_weights)) {
    const auto found = kernels().find(name);
    require(found != kernels().end(), "the name of a loss");
    named_ = found->second;
    options_ = {.mean = mean,
                .power = power,
                .by_rank = by_rank,
                .cutoff = cutoff,
                .exp2 = exp2,
                .hits = hits,
                .share_of_pairs = share_of_pairs,
                .temperature = temperature};
    needs_weights_ = name == "lambda" || name == "smooth";
  }

  bool operator()(nb::handle scores, nb::handle labels, nb::handle mask, nb::handle weights, const Groups* groups,
                  const std::string& reduction, std::int64_t threads, nb::handle values, nb::handle slopes,
                  nb::handle curvatures) const {
    require(reduction == "none" || reduction == "sum" || reduction == "mean", "the name of a reduction");
    const Reduction how = reduction == "none" ? Reduction::none : reduction == "sum" ? Reduction::sum : Reduction::mean;
    const auto dimensions = nb::cast<std::size_t>(scores.attr("ndim"));
    require(dimensions > 0 && (groups == nullptr || dimensions == 1), "a list axis");
    const auto length = nb::cast<std::size_t>(scores.attr("size")(-1));
    const Tensor given(scores), relevance(labels), out(values), gradient(slopes);
    const auto typed = [&]<class Score>(Score) {
      if (relevance.is<std::int64_t>()) {
        return run<Score, std::int64_t>(given, relevance, mask, weights, groups, length, how, threads, out, gradient,
                                        curvatures);
      }
      return run<Score, Score>(given, relevance, mask, weights, groups, length, how, threads, out, gradient,
                               curvatures);
    };
    return given.is<float>() ? typed(float{}) : typed(double{});
  }

 private:
  template <class Score, class Label>
  bool run(const Tensor& scores, const Tensor& labels, nb::handle mask, nb::handle weights, const Groups* groups,
           std::size_t length, Reduction how, std::int64_t threads, const Tensor& values, const Tensor& slopes,
           nb::handle curvatures) const {
    const std::size_t items = scores.size();
    std::size_t lists = length > 0 ? items / length : 0;
    require(groups == nullptr || groups->items() == items, "one id per item");
    if (groups != nullptr) lists = groups->lists();
    const std::size_t longest = groups != nullptr ? groups->longest() : length;
    require(!needs_weights_ || rank_weights_.size() >= longest, "a weight per rank");
    require(longest < (std::size_t{1} << 31), "lists that are not too long");
    auto* out = values.data<Score>(how == Reduction::none ? lists : 1);
    auto* gradient = slopes.data<Score>(items);
    auto* second = curvatures.is_none() ? nullptr : Tensor(curvatures).data<Score>(items);
    Batch<Score, Label> batch{
        scores.data<const Score>(items),
        labels.data<const Label>(items),
        mask.is_none() ? nullptr : reinterpret_cast<const std::uint8_t*>(Tensor(mask).data<const bool>(items)),
        weights.is_none() ? nullptr : Tensor(weights).data<const Score>(items),
        groups,
        lists,
        length,
        items};
    Task task{named_, options_, how == Reduction::mean && lists > 0 ? 1.0 / static_cast<double>(lists) : 1.0,
              second != nullptr};
    task.options.largest = std::numeric_limits<Score>::max();
    task.options.single = std::is_same_v<Score, float>;
    task.options.rank_weights = rank_weights_;
    if (named_.of_items && how != Reduction::none && mask.is_none() && weights.is_none() && groups == nullptr &&
        length > 0 && length < kMerged) {
      // several lists at a time: the mean of means of equally many items is their sum, divided
      if (options_.mean) task.unit /= static_cast<double>(length);
      task.options.mean = false;
      batch.length = kMerged / length * length;
      batch.lists = (items + batch.length - 1) / batch.length;
    }
    const double pairs = groups != nullptr ? groups->pairs() : static_cast<double>(items) * static_cast<double>(length);
    const bool visits = named_.of_pairs && (second == nullptr || named_.both == nullptr);
    const double work = 5.0 * static_cast<double>(items) + (visits ? 0.5 * pairs : 0.0);
    const nb::gil_scoped_release release;
    std::vector<double> found(batch.lists);
    if (!evaluate_lists(batch, task, work, index(std::max<std::int64_t>(threads, 1)), found, gradient, second)) {
      return false;
    }
    if (how == Reduction::none) {
      std::transform(found.begin(), found.end(), out, [](double value) { return static_cast<Score>(value); });
      return true;
    }
    double total = 0.0;
    for (const double value : found) total += value * task.unit;
    *out = static_cast<Score>(total);
    return true;
  }

  Named named_{};
  Options options_;
  std::vector<double> rank_weights_;
  bool needs_weights_ = false;
};

// --- sums of a smooth function over long lists (`ltr.losses.transforms`) ---------------------------------------------

void check_bins(const Vector<std::int64_t>& bins, std::size_t items, std::size_t rows) {
  require(bins.shape(0) == items, "one bin per item");
  for (const std::int64_t bin : view(bins)) require(bin >= 0 && bin < static_cast<std::int64_t>(rows), "bins");
}

// Add q times each Chebyshev polynomial of an item's place to the row of its bin.
void add_moments(Vector<double> q, Vector<std::int64_t> bins, Vector<double> place, OutRows<double> total) {
  require(place.shape(0) == q.shape(0) && total.shape(1) >= 2, "one place per item");
  check_bins(bins, q.shape(0), total.shape(0));
  const nb::gil_scoped_release release;
  const auto rows = view(total);
  for (std::size_t i = 0; i < q.shape(0); ++i) {
    const auto row = rows[index(view(bins)[i])];
    const double t = view(place)[i], charge = view(q)[i];
    double before = 1.0, current = t;
    row[0] += charge;
    row[1] += charge * t;
    for (std::size_t r = 2; r < row.size(); ++r) {
      before = std::exchange(current, 2.0 * t * current - before);
      row[r] += charge * current;
    }
  }
}

// Write the Chebyshev series of each item's bin at its place (Clenshaw's recurrence).
void interpolate(Rows<double> coefficients, Vector<std::int64_t> bins, Vector<double> place, OutVector<double> out) {
  require(place.shape(0) == out.shape(0) && coefficients.shape(1) >= 1, "one place per item");
  check_bins(bins, out.shape(0), coefficients.shape(0));
  const nb::gil_scoped_release release;
  const auto rows = view(coefficients);
  for (std::size_t i = 0; i < out.shape(0); ++i) {
    const auto row = rows[index(view(bins)[i])];
    const double t = view(place)[i];
    double after = 0.0, current = 0.0;
    for (std::size_t r = row.size() - 1; r > 0; --r) after = std::exchange(current, 2.0 * t * current - after + row[r]);
    view(out)[i] = t * current - after + row[0];
  }
}

}  // namespace

void bind_losses(nb::module_& module) {
  nb::class_<Groups>(module, "Groups", "The lists of flat items with an id each.")
      .def(
          "__init__", [](Groups* self, const Vector<std::int64_t>& ids) { new (self) Groups(view(ids)); },
          nb::arg("ids"))
      .def_prop_ro("lists", &Groups::lists, "Number of lists.")
      .def_prop_ro("items", &Groups::items, "Number of items.")
      .def_prop_ro("longest", &Groups::longest, "Length of the longest list.")
      .def_prop_ro("pairs", &Groups::pairs, "Sum of the squared lengths.")
      .def(
          "write_number",
          [](const Groups& self, const OutVector<std::int64_t>& out) {
            require(out.shape(0) == self.items(), "one number per item");
            std::copy(self.number().begin(), self.number().end(), out.data());
          },
          nb::arg("out").noconvert(), "Write the number of each item's list.");
  nb::class_<ListLoss>(module, "ListLoss", "A loss of lists by name, with its options.")
      .def(nb::init<const std::string&, bool, double, double, std::vector<double>, bool, std::int64_t, bool, bool,
                    bool>(),
           nb::arg("name"), nb::arg("mean") = true, nb::arg("power") = 1.0, nb::arg("temperature") = 1.0,
           nb::arg("rank_weights") = std::vector<double>{}, nb::arg("by_rank") = false, nb::arg("cutoff") = 0,
           nb::arg("exp2") = false, nb::arg("hits") = false, nb::arg("share_of_pairs") = false)
      .def("__call__", &ListLoss::operator(), nb::arg("scores"), nb::arg("labels"), nb::arg("mask").none(),
           nb::arg("weights").none(), nb::arg("groups").none(), nb::arg("reduction"), nb::arg("threads"),
           nb::arg("values"), nb::arg("slopes"), nb::arg("curvatures") = nb::none(),
           "Write values and gradient, and where asked for the second derivative in each score or a bound above it;\n"
           "return False if Python must look at the inputs.");
  module.def("add_moments", &add_moments, nb::arg("q"), nb::arg("bins"), nb::arg("place"), nb::arg("total").noconvert(),
             "Add charges times Chebyshev polynomials of the places of items to the rows of their bins.");
  module.def("interpolate", &interpolate, nb::arg("coefficients"), nb::arg("bins"), nb::arg("place"),
             nb::arg("out").noconvert(), "Write the Chebyshev series of each item's bin at its place.");
}

}  // namespace ltr
