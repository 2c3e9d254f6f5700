// The cards that a search finds, and the best and worst places of rows on them.
#pragma once

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>

#include "task.h"

namespace ltr {

// A card, with the points of its columns.
struct Card {
  double value = -kInfinity;  // with the price
  int size = 0;
  std::array<std::int32_t, kLargest> columns{};
  Weights points{};

  int total() const {
    int sum = 0;
    for (const auto v : points) sum += std::abs(v);
    return sum;
  }

  // Whether this card is to be taken before one of equal value.
  bool before(const Card& other) const {
    if (size != other.size) return size < other.size;
    if (total() != other.total()) return total() < other.total();
    if (columns != other.columns) return columns < other.columns;
    return points > other.points;
  }
};

// The best place of a row, or for the worst place the number of rows below it, and a card with that.
struct Extreme {
  std::int64_t place = std::numeric_limits<std::int64_t>::max();
  Card card;

  void improve(const Extreme& other) {
    if (other.place < place || (other.place == place && other.card.before(card))) *this = other;
  }
};

// Whether a card so close to a least value that rounding could decide meets the demands.
using Met = std::function<bool(const Card&)>;

// The cards that a search has found; its threads share them.
class FoundCards {
 public:
  FoundCards(CardTask& task, Met met) : task_(task), met_(std::move(met)) {}

  // Collect up to so many cards from now on.
  void collect(std::size_t most) {
    found_.clear();
    most_ = most;
    full_ = false;
  }

  // Find the places of the rows that `tracked` marks as bits.
  void track(std::vector<std::uint64_t> tracked) {
    placing = true;
    good = 0;
    this->tracked = std::move(tracked);
    extremes.assign(task_.table.n(), {});
  }

  Card best() {
    const std::lock_guard guard(lock_);
    return best_;
  }
  const std::vector<Card>& cards() const { return found_; }
  bool full() const { return full_; }

  bool decide(const Card& card) const { return met_(card); }

  void offer(const Card& card) {
    const std::lock_guard guard(lock_);
    if (task_.threshold < kInfinity && card.value >= task_.threshold - task_.tolerance()) {
      if (found_.size() < most_)
        found_.push_back(card);
      else
        full_ = true;
    }
    const double difference = card.value - best_.value;
    if (difference > task_.tolerance() || (std::abs(difference) <= task_.tolerance() && card.before(best_))) {
      best_ = card;
      task_.floor = std::max(task_.floor.load(), card.value - task_.tolerance());
    }
  }

  // Take the places that one thread has found.
  void merge(std::int64_t more, const std::vector<std::array<Extreme, 2>>& of) {
    const std::lock_guard guard(lock_);
    good += more;
    for (std::size_t i = 0; i < of.size(); ++i) {
      for (std::size_t end = 0; end < 2; ++end) extremes[i][end].improve(of[i][end]);
    }
  }

  // of places of rows
  bool placing = false;
  std::int64_t good = 0;                         // cards
  std::vector<std::uint64_t> tracked;            // bits of the rows
  std::vector<std::array<Extreme, 2>> extremes;  // of each row

 private:
  CardTask& task_;
  Met met_;
  std::mutex lock_;
  Card best_;
  std::vector<Card> found_;
  std::size_t most_ = 0;
  std::atomic<bool> full_{false};
};

}  // namespace ltr
