// The cards that a search finds, and the best and worst places of rows on them.
#pragma once

#include <array>

#include "task.h"

namespace ltr {

// The best place of a row, or for the worst place the number of rows below it, and a card with that.
struct Extreme {
  std::int64_t place = std::numeric_limits<std::int64_t>::max();
  FoundWeights card;

  void improve(const Extreme& other) {
    if (other.place < place || (other.place == place && other.card.before(card))) *this = other;
  }
};

// The cards that a search has found; its threads share them.
class FoundCards : public FoundSoFar {
 public:
  explicit FoundCards(CardTask& task) : FoundSoFar(task.tolerance()), task_(task) {}

  // Find the places of the rows that `tracked` marks as bits.
  void track(std::vector<std::uint64_t> tracked) {
    placing = true;
    good = 0;
    this->tracked = std::move(tracked);
    extremes.assign(task_.table.n(), {});
  }

  void offer(const FoundWeights& card) {
    if (FoundSoFar::offer(card)) task_.raise(card.value - task_.tolerance());
  }

  // Take the places that one thread has found.
  void merge(std::int64_t more, const std::vector<std::array<Extreme, 2>>& of) {
    const std::lock_guard guard(places_lock_);
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
  std::mutex places_lock_;
};

}  // namespace ltr
