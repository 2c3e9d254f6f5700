#include "cards.h"

#include <array>
#include <atomic>
#include <mutex>

#include "cards/listing.h"
#include "cards/one_support.h"
#include "workers.h"

namespace ltr {
namespace {

constexpr std::size_t kSurvivors = 4'000'000;  // supports in memory at a time
constexpr std::size_t kBatch = 20'000;         // supports to examine at a time where the best are found first

class Search : public CardSearch {
 public:
  Search(CardProblem problem, Met met) : task_(std::move(problem)), found_(task_, std::move(met)), listing_(task_) {}

  bool search(int k, int threads, const Stop& stop, double threshold, std::size_t most_cards) override {
    found_.placing = false;
    return run(k, threads, stop, threshold, most_cards);
  }

  std::int64_t places(int k, int threads, const Stop& stop, double threshold, std::span<const std::uint8_t> tracked,
                      const Places& found) override {
    const CardTable& table = task_.table;
    std::vector<std::uint64_t> marked(table.words(), 0);
    for (std::size_t bit = 0; bit < table.bits(); ++bit) {
      const std::uint64_t used = table.all()[bit / 64] >> bit % 64 & 1;
      if (used != 0 && tracked[table.row_at(bit)] != 0) marked[bit / 64] |= std::uint64_t{1} << bit % 64;
    }
    found_.track(std::move(marked));
    if (!run(k, threads, stop, threshold, 0)) return -1;
    for (std::size_t i = 0; i < table.n() && found_.good > 0; ++i) {
      if (tracked[i] == 0) continue;
      const auto& [best, worst] = found_.extremes[i];
      found.best[i] = best.place;
      found.worst[i] = static_cast<std::int64_t>(table.n()) - worst.place;
      write_points(best.card, found.best_points[i]);
      write_points(worst.card, found.worst_points[i]);
    }
    return found_.good;
  }

  double bound() override { return std::max(bound_.load(), found_.best().value); }
  Card best() override { return found_.best(); }
  const std::vector<Card>& cards() const override { return found_.cards(); }
  bool full() const override { return found_.full(); }
  std::int64_t supports() const override { return listing_.supports(); }

 private:
  static void write_points(const Card& card, std::span<std::int64_t> points) {
    for (std::size_t j = 0; j < index(card.size); ++j) points[index(card.columns[j])] = card.points[j];
  }

  bool run(int k, int threads, const Stop& asked, double threshold, std::size_t most_cards) {
    task_.threshold = threshold;
    bound_ = task_.objective().perfect;  // until it is known better
    const int most = std::min(k, static_cast<int>(task_.table.columns()));
    if (threshold < kInfinity) {
      searched_ = 0;
      found_.collect(most_cards);
    }
    if (searched_ == 0 && task_.form.complete({}, 0)) take_none();
    // bounds of the cards of each number of columns, and of larger ones
    std::vector<double> bounds(index(most) + 2, -kInfinity);
    for (int m = most; m > searched_; --m) {
      const auto size = index(m);
      bounds[size] = std::max(bounds[size + 1], listing_.ceiling(m, threads, asked));
    }
    for (int m = searched_ + 1; m <= most; ++m) {
      const auto size = index(m);
      bound_ = bounds[size];
      if (const double best = found_.best().value; best > -kInfinity) task_.floor = best + task_.tolerance();
      if (!search_size(m, bounds[size + 1], threads, asked)) return false;
      searched_ = m;
    }
    bound_ = -kInfinity;
    return true;
  }

  // The value of a statistic where all rows tie.
  double value_of_none(const CardStatistic& statistic) const {
    if (statistic.pairs) return statistic.ties_lost ? 0.0 : 0.5;
    return statistic.value_of(task_.table.block_of(statistic.gains, task_.table.all().data()), 0.0);
  }

  // Offer the card without questions.
  void take_none() {
    bool certain = true;
    for (std::size_t s = 1; s < task_.statistics.size(); ++s) {
      if (!CardTask::meets(task_.statistics[s], value_of_none(task_.statistics[s]), certain)) return;
    }
    const Card none{.value = value_of_none(task_.objective())};
    if (!certain && !found_.decide(none)) return;
    if (!found_.placing) {
      found_.offer(none);
    } else if (none.value >= task_.target()) {
      ++found_.good;
      for (std::size_t i = 0; i < task_.table.n(); ++i) found_.extremes[i] = {Extreme{1, none}, Extreme{0, none}};
    }
  }

  // Search the cards of m columns; `larger` is a bound of those with more. Return whether that was completed.
  bool search_size(int m, double larger, int threads, const Stop& stop) {
    if (m < static_cast<int>(task_.form.needed().size()) ||
        task_.objective().perfect - task_.price * m < task_.target())
      return true;
    const double all = bound_;
    task_.prepare(m);
    if (task_.threshold == kInfinity) climb(m, stop);  // it meets cards more than once
    const CardListing::Candidates firsts = listing_.first_candidates(m);
    const int prefix = listing_.prefix_of(m, firsts.columns.size());
    std::vector<Support> prefixes;
    if (const double left = listing_.list_prefixes(m, prefix, firsts, threads, stop, prefixes); stop.asked()) {
      bound_ = std::max(larger, std::min(all, left));
      return false;
    }
    std::atomic<std::size_t> next{0};
    const std::size_t batch = listing_.has_pairs() ? kBatch : kSurvivors;
    while (next < prefixes.size()) {
      std::vector<std::vector<Support>> found(index(threads));
      std::atomic<std::size_t> kept{0};
      std::mutex lock;
      double open = -kInfinity;
      in_threads(threads, [&](std::size_t thread) {
        CardListing::Enumeration work = listing_.enumeration_of(m, 0);
        while (!stop.asked() && kept < batch) {
          const std::size_t index = next++;
          if (index >= prefixes.size()) break;
          if (static_cast<double>(prefixes[index].bound) < task_.target()) continue;
          const std::size_t before = work.found.size();
          const double left = listing_.complete_prefix(m, prefix, prefixes[index], firsts.columns, stop, work);
          kept += work.found.size() - before;
          const std::lock_guard guard(lock);
          open = std::max(open, left);
        }
        found[thread] = std::move(work.found);
      });
      std::vector<Support> survivors;
      for (auto& some : found) survivors.insert(survivors.end(), some.begin(), some.end());
      CardListing::best_first(survivors);
      std::atomic<std::size_t> at{0};
      in_threads(threads, [&](std::size_t) {
        SupportSearch search(task_, found_, m);
        while (true) {
          const std::size_t index = at++;
          if (index >= survivors.size() || static_cast<double>(survivors[index].bound) < task_.target() ||
              found_.full())
            break;
          const bool done = !stop.asked() && search.examine(survivors[index], stop);
          if (!done) {
            const std::lock_guard guard(lock);
            open = std::max(open, static_cast<double>(survivors[index].bound));
            break;
          }
        }
        search.merge();
      });
      if (open > -kInfinity || stop.asked()) {
        if (next < prefixes.size()) open = std::max(open, static_cast<double>(prefixes[next].bound));
        bound_ = std::max(larger, std::min(all, open));
        if (open > -kInfinity) return false;
      }
    }
    return true;
  }

  // Look for a good card of m columns before all are searched: add columns to the best card, then exchange them one
  // at a time while that helps.
  void climb(int m, const Stop& stop) {
    SupportSearch search(task_, found_, m);
    Card best = found_.best();
    std::vector<std::uint16_t> columns;
    columns.assign(best.columns.begin(), best.columns.begin() + best.size);
    if (columns.empty()) columns = task_.form.needed();
    if (static_cast<int>(columns.size()) + 1 < m) return;
    for (bool better = true; better;) {
      const Card start = best;
      const bool exchange = static_cast<int>(columns.size()) == m;
      for (int leave = exchange ? 0 : -1; leave < (exchange ? m : 0); ++leave) {
        Support support;
        int size = 0;
        for (int i = 0; i < static_cast<int>(columns.size()); ++i) {
          if (i != leave) support.columns[index(size++)] = columns[index(i)];
        }
        const Support kept = support;
        for (std::size_t j = 0; j < task_.table.columns(); ++j) {
          if (stop.asked()) return;
          support = kept;
          const auto end = support.columns.begin() + size;
          if (!task_.form.allowed(support.columns, size, j) || std::find(support.columns.begin(), end, j) != end)
            continue;
          *end = static_cast<std::uint16_t>(j);
          std::sort(support.columns.begin(), end + 1);
          if (task_.form.complete(support, m)) search.examine(support, stop);
        }
      }
      best = found_.best();
      better = best.size == m && best.value > start.value + task_.tolerance();
      columns.assign(best.columns.begin(), best.columns.begin() + best.size);
    }
  }

  CardTask task_;
  FoundCards found_;
  CardListing listing_;
  int searched_ = 0;
  std::atomic<double> bound_{kInfinity};  // before the search begins nothing is proven
};

}  // namespace

std::unique_ptr<CardSearch> search_cards(CardProblem problem, Met met) {
  return std::make_unique<Search>(std::move(problem), std::move(met));
}

}  // namespace ltr
