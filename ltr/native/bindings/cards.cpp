#include "../cards.h"

#include "found_weights.h"

namespace ltr {
namespace {

// The rules, a row for each: 1 for its columns in `rules` and for those on which it depends in `when`, if any.
std::vector<Rule> rules_of(Arguments& given, std::size_t columns) {
  const auto least = given.vector<std::int32_t>("rule_least");
  const auto most = given.vector<std::int32_t>("rule_most", least.size());
  const auto rules = given.rows<std::uint8_t>("rules", least.size(), columns);
  const auto when = given.rows<std::uint8_t>("when", least.size(), columns);
  std::vector<Rule> all;
  for (std::size_t r = 0; r < least.size(); ++r) {
    Rule& rule = all.emplace_back(Rule{{rules[r].begin(), rules[r].end()}, {}, least[r], most[r]});
    if (std::ranges::find(when[r], 1) != when[r].end()) rule.when.assign(when[r].begin(), when[r].end());
  }
  return all;
}

// The statistics, a row for each, that of the objective first: gains of each level of rows, weights of each place, the
// value of a perfect order and, of all but the first, the value asked for. Where rows have events, a statistic is the
// share of comparable pairs in order.
std::vector<CardStatistic> statistics_of(Arguments& given, Matrix<const std::uint8_t> X) {
  const auto gains = given.rows<double>("gains");
  const std::size_t count = gains.rows, n = X.rows;
  const auto rank_weights = given.rows<double>("rank_weights", count, n);
  const auto perfect = given.vector<double>("perfect", count), least = given.vector<double>("least", count - 1);
  const auto order = given.rows<std::int32_t>("order", count, n);
  const auto event = given.rows<std::uint8_t>("event", count, n);
  const auto ties_lost = given.vector<std::uint8_t>("ties_lost", count);
  std::vector<CardStatistic> all;
  for (std::size_t s = 0; s < count; ++s) {
    const double from = s > 0 ? least[s - 1] : -kInfinity;
    const bool lost = ties_lost[s] != 0;
    if (std::ranges::find(event[s], 1) != event[s].end()) {
      all.emplace_back(std::make_shared<const Comparisons>(order[s], event[s], X), gains.columns, from, lost);
    } else {
      all.emplace_back(gains[s], rank_weights[s], perfect[s], from, lost);
    }
  }
  return all;
}

CardProblem problem_of(Arguments& given) {
  const auto X = given.rows<std::uint8_t>("X");
  const auto gains = given.rows<double>("gains");
  return {.table = CardTable(X, given.vector<std::int32_t>("level", X.rows), gains.columns),
          .form = CardForm(given.vector<std::uint8_t>("signs", X.columns),
                           given.vector<std::int32_t>("directions", X.columns), rules_of(given, X.columns)),
          .statistics = statistics_of(given, X),
          .fewest = given.get<int>("fewest"),
          .most = given.get<int>("most"),
          .price = given.get<double>("price"),
          .met = met_of(given)};
}

}  // namespace

void bind_cards(nb::module_& module) {
  nb::class_<CardSearch>(module, "CardSearch", "The search for scoring systems, see `cards.h`.")
      .def("__init__", &construct<CardSearch, problem_of>, kFields)
      .def("search", &CardSearch::search, "k"_a, "threads"_a, "stop"_a, "threshold"_a = kInfinity, "most_cards"_a = 0,
           kReleased)
      .def("places", &CardSearch::places, "k"_a, "threads"_a, "stop"_a, "threshold"_a, "tracked"_a, "best"_a, "worst"_a,
           "best_points"_a, "worst_points"_a, kReleased)
      .def_prop_ro("bound", &CardSearch::bound)
      .def_prop_ro("best", [](CardSearch& self) { return described(self.best()); })
      .def_prop_ro("cards", [](CardSearch& self) { return described(self.cards()); })
      .def_prop_ro("full", &CardSearch::full)
      .def_prop_ro("supports", &CardSearch::supports);
}

}  // namespace ltr
