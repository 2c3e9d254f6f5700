// Weights of few columns that a search finds: which of those of equal value it prefers, and those that it collects.
#pragma once

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>

#include "arrays.h"

namespace ltr {

constexpr std::size_t kMostColumns = 6;  // whose weights are not 0

struct FoundWeights {
  double value = -kInfinity;  // with the price
  std::size_t size = 0;
  std::array<std::int32_t, kMostColumns> columns{};  // ascending
  std::array<std::int32_t, kMostColumns> weights{};  // whole numbers

  int total() const {
    int sum = 0;
    for (const int w : weights) sum += std::abs(w);
    return sum;
  }

  // Whether these weights are to be taken before others of equal value.
  bool before(const FoundWeights& other) const {
    if (size != other.size) return size < other.size;
    if (total() != other.total()) return total() < other.total();
    if (columns != other.columns) return columns < other.columns;
    return weights > other.weights;
  }
};

// Whether weights whose statistics are so close to least values that rounding could decide meet the demands.
using Met = std::function<bool(const FoundWeights&)>;

// The best weights, and those of at least a value; the threads of a search share them.
class FoundSoFar {
 public:
  // Values closer than the tolerance count as equal.
  explicit FoundSoFar(double tolerance) : tolerance_(tolerance) {}

  // Begin to collect weights whose value is at least a threshold, up to so many; none for infinity.
  void collect(double threshold, std::size_t most) {
    const std::lock_guard guard(lock_);
    collected_.clear();
    threshold_ = threshold;
    most_ = most;
    full_ = false;
  }

  // Take note of weights; return whether they are the best now.
  bool offer(const FoundWeights& found) {
    const std::lock_guard guard(lock_);
    if (threshold_ < kInfinity && found.value >= threshold_ - tolerance_) {
      if (collected_.size() < most_) {
        collected_.push_back(found);
      } else {
        full_ = true;
      }
    }
    const double difference = found.value - best_.value;
    const bool better = difference > tolerance_ || (std::abs(difference) <= tolerance_ && found.before(best_));
    if (better) best_ = found;
    return better;
  }

  FoundWeights best() {
    const std::lock_guard guard(lock_);
    return best_;
  }
  std::vector<FoundWeights> collected() {
    const std::lock_guard guard(lock_);
    return collected_;
  }
  bool full() const { return full_; }  // whether there were more than could be collected

 private:
  double tolerance_, threshold_ = kInfinity;
  std::size_t most_ = 0;
  std::mutex lock_;
  FoundWeights best_;
  std::vector<FoundWeights> collected_;
  std::atomic<bool> full_{false};
};

}  // namespace ltr
