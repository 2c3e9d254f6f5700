#include "../cards.h"

#include "../bindings.h"
#include "../module.h"

namespace ltr {
namespace {

nb::tuple described(const Card& card) {
  nb::list columns, points;
  for (std::size_t j = 0; j < index(card.size); ++j) {
    columns.append(card.columns[j]);
    points.append(static_cast<int>(card.points[j]));
  }
  return nb::make_tuple(card.value, nb::tuple(columns), nb::tuple(points));
}

// The rules, a row for each: 1 for its columns in `rules` and for those on which it depends in `when`, if any.
std::vector<Rule> rules_of(const Arguments& given, std::size_t columns) {
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
std::vector<CardStatistic> statistics_of(const Arguments& given, Matrix<const std::uint8_t> X) {
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

void make(std::unique_ptr<CardSearch>* self, const nb::kwargs& fields) {
  Kept read;
  const Arguments given(fields, read);
  const auto X = given.rows<std::uint8_t>("X");
  const auto gains = given.rows<double>("gains");
  CardProblem problem{.table = CardTable(X, given.vector<std::int32_t>("level", X.rows), gains.columns),
                      .form = CardForm(given.vector<std::uint8_t>("signs", X.columns),
                                       given.vector<std::int32_t>("directions", X.columns), rules_of(given, X.columns)),
                      .statistics = statistics_of(given, X),
                      .fewest = given.get<int>("fewest"),
                      .most = given.get<int>("most"),
                      .price = given.get<double>("price")};
  const auto met = [decide = given.get<nb::object>("met")](const Card& card) {
    const nb::gil_scoped_acquire acquire;
    const nb::tuple found = described(card);
    return nb::cast<bool>(decide(found[1], found[2]));
  };
  new (self) std::unique_ptr<CardSearch>(search_cards(std::move(problem), met));
}

bool run(std::unique_ptr<CardSearch>& self, int k, int threads, const Vector<std::uint8_t>& stop, double threshold,
         std::size_t most_cards) {
  require(k >= 1 && k <= kLargest && threads >= 1, "columns and threads");
  const nb::gil_scoped_release release;
  return self->search(k, threads, Stop(view(stop)), threshold, most_cards);
}

std::int64_t find_places(std::unique_ptr<CardSearch>& self, int k, int threads, const Vector<std::uint8_t>& stop,
                         double threshold, const Vector<std::uint8_t>& tracked, const OutVector<std::int64_t>& best,
                         const OutVector<std::int64_t>& worst, const OutRows<std::int64_t>& best_points,
                         const OutRows<std::int64_t>& worst_points) {
  require(k >= 1 && k <= kLargest && threads >= 1, "columns and threads");
  const std::size_t n = tracked.shape(0);
  for (const std::size_t size : {best.shape(0), worst.shape(0), best_points.shape(0), worst_points.shape(0)}) {
    require(size == n, "one per row");
  }
  const Places found{view(best), view(worst), view(best_points), view(worst_points)};
  const nb::gil_scoped_release release;
  return self->places(k, threads, Stop(view(stop)), threshold, view(tracked), found);
}

}  // namespace

void bind_cards(nb::module_& module) {
  using Own = std::unique_ptr<CardSearch>;
  nb::class_<Own>(module, "CardSearch", "The search for scoring systems, see `ltr.exact.cards`.")
      .def("__init__", &make, nb::sig("def __init__(self, **fields: object) -> None"))
      .def("search", &run, nb::arg("k"), nb::arg("threads"), nb::arg("stop").noconvert(),
           nb::arg("threshold") = kInfinity, nb::arg("most_cards") = 0)
      .def("places", &find_places, nb::arg("k"), nb::arg("threads"), nb::arg("stop").noconvert(), nb::arg("threshold"),
           nb::arg("tracked"), nb::arg("best").noconvert(), nb::arg("worst").noconvert(),
           nb::arg("best_points").noconvert(), nb::arg("worst_points").noconvert())
      .def_prop_ro("bound", [](Own& self) { return self->bound(); })
      .def_prop_ro("best", [](Own& self) { return described(self->best()); })
      .def_prop_ro("cards",
                   [](const Own& self) {
                     nb::list all;
                     for (const Card& card : self->cards()) all.append(described(card));
                     return all;
                   })
      .def_prop_ro("full", [](const Own& self) { return self->full(); })
      .def_prop_ro("supports", [](const Own& self) { return self->supports(); });
}

}  // namespace ltr
