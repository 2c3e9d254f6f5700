// Slopes and curvatures of RankNet on long lists, without visiting pairs, to about 1e-12 of their sums.
//
// For an item i with the weight q_i, all sums over pairs are of one form. With f(d) = 1 / (1 + exp(-d)), the slope is
//
//     q_i (sum over k above of q_k - sum over k of another label of q_k f(s_k - s_i)),
//
// because f(s_k - s_i) is what a pair with a lower item takes from it, and 1 - f(s_k - s_i) what one with an upper item
// adds; the curvature is ``q_i sum over k of another label of q_k f'(s_k - s_i)``. Scores are put into bins of width 1.
// A bin is summed up by its weights times Chebyshev polynomials of the places in it, and acts on the items of another
// bin by a polynomial in their place: a small matrix for each distance of bins. Beyond `kReach` bins f is 0 or 1.
// `ltr.losses.transforms` has the same method for any smooth function, in torch.
#include <array>
#include <numbers>

#include "losses.h"

namespace ltr {
namespace {

constexpr std::size_t kNodes = 12;
constexpr int kReach = 32;
constexpr std::size_t kShort = 400;  // lists up to here are faster by all their pairs

using Series = std::array<double, kNodes>;
using Matrix12 = std::array<Series, kNodes>;  // [Chebyshev polynomial of the source][power of the target's place]

// The matrices of f (order 0) or f' for distances of -kReach to kReach bins from target to source.
std::vector<Matrix12> matrices(int order) {
  Matrix12 fit{}, powers{};  // from values at the nodes to Chebyshev coefficients, and from these to powers
  Series nodes{};
  for (std::size_t m = 0; m < kNodes; ++m) {
    const double angle = (static_cast<double>(m) + 0.5) * std::numbers::pi / kNodes;
    nodes[m] = std::cos(angle);
    for (std::size_t a = 0; a < kNodes; ++a) {
      fit[a][m] = std::cos(static_cast<double>(a) * angle) * (a == 0 ? 1.0 : 2.0) / kNodes;
    }
  }
  powers[0][0] = powers[1][1] = 1.0;  // [polynomial][power]
  for (std::size_t a = 2; a < kNodes; ++a) {
    for (std::size_t j = 0; j < kNodes; ++j) {
      powers[a][j] = (j > 0 ? 2.0 * powers[a - 1][j - 1] : 0.0) - powers[a - 2][j];
    }
  }
  std::vector<Matrix12> found;
  for (int distance = -kReach; distance <= kReach; ++distance) {
    Matrix12 values{}, half{}, matrix{};
    for (std::size_t m = 0; m < kNodes; ++m) {
      for (std::size_t l = 0; l < kNodes; ++l) {
        const double e = std::exp(-std::abs(distance + 0.5 * (nodes[l] - nodes[m])));
        const bool above = distance + 0.5 * (nodes[l] - nodes[m]) > 0.0;
        values[m][l] = order == 0 ? (above ? 1.0 : e) / (1.0 + e) : e / ((1.0 + e) * (1.0 + e));
      }
    }
    for (std::size_t q = 0; q < kNodes; ++q) {
      for (std::size_t m = 0; m < kNodes; ++m) {
        for (std::size_t l = 0; l < kNodes; ++l) half[q][m] += fit[q][l] * values[m][l];
      }
      for (std::size_t a = 0; a < kNodes; ++a) {
        double coefficient = 0.0;
        for (std::size_t m = 0; m < kNodes; ++m) coefficient += fit[a][m] * half[q][m];
        for (std::size_t j = 0; j < kNodes; ++j) matrix[q][j] += coefficient * powers[a][j];
      }
    }
    found.push_back(matrix);
  }
  return found;
}

// The bins of a list that contain items, ascending, and the bin and place of each item.
struct Bins {
  std::vector<double> floors;  // of each bin
  std::vector<std::uint32_t> bin;
  std::vector<double> place;  // from -1 to 1

  explicit Bins(const Sorted& x) : bin(x.n), place(x.n) {
    std::vector<double> floor(x.n);
    for (std::size_t i = 0; i < x.n; ++i) {
      floor[i] = std::floor(x.scores[i]);
      place[i] = 2.0 * (x.scores[i] - floor[i]) - 1.0;
    }
    const auto [low, high] = std::minmax_element(floor.begin(), floor.end());
    const double first = *low, width = *high - first;
    if (width < 4.0 * static_cast<double>(x.n)) {
      std::vector<std::uint32_t> number(index(width) + 1);
      for (const double value : floor) number[index(value - first)] = 1;
      for (std::size_t at = 0; at < number.size(); ++at) {
        if (number[at] == 0) continue;
        number[at] = static_cast<std::uint32_t>(floors.size());
        floors.push_back(first + static_cast<double>(at));
      }
      for (std::size_t i = 0; i < x.n; ++i) bin[i] = number[index(floor[i] - first)];
      return;
    }
    floors = floor;
    std::sort(floors.begin(), floors.end());
    floors.erase(std::unique(floors.begin(), floors.end()), floors.end());
    for (std::size_t i = 0; i < x.n; ++i) {
      bin[i] = static_cast<std::uint32_t>(std::lower_bound(floors.begin(), floors.end(), floor[i]) - floors.begin());
    }
  }
};

LTR_MULTIVERSION void add_moments(double charge, double t, double* row) {
  double before = 1.0, current = t;
  row[0] += charge;
  row[1] += charge * t;
  for (std::size_t r = 2; r < kNodes; ++r) {
    const double next = 2.0 * t * current - before;
    before = current;
    current = next;
    row[r] += charge * current;
  }
}

// Add the effect of the sources of one bin, which are all items but those of the target's own label.
LTR_MULTIVERSION void add_effect(const Matrix12& matrix, const double* all, const double* own, double* effect) {
  for (std::size_t q = 0; q < kNodes; ++q) {
    const double source = all[q] - own[q];
    for (std::size_t j = 0; j < kNodes; ++j) effect[j] += matrix[q][j] * source;
  }
}

void binned(const List& list, const Options& options, Workspace& space, bool curvature) {
  static const std::vector<Matrix12> tables[] = {matrices(0), matrices(1)};
  const std::vector<Matrix12>& table = tables[curvature ? 1 : 0];
  const Sorted x = sorted(list, space);
  const Bins bins(x);
  const std::size_t count = bins.floors.size();
  std::vector<double> all(count * kNodes), own(count * kNodes), effects(count * kNodes), beyond(count + 1);
  for (std::size_t i = 0; i < x.n; ++i) add_moments(x.shares[i], bins.place[i], &all[bins.bin[i] * kNodes]);
  for (std::size_t b = count; b-- > 0;) beyond[b] = beyond[b + 1] + all[b * kNodes];
  std::vector<std::uint32_t> touched;
  std::vector<std::uint8_t> seen(count);
  double pairs = 0.0, above = 0.0;  // the share of the items of higher labels
  for (std::size_t label = 0; label < x.by_label.labels(); ++label) {
    const std::size_t from = x.begin(label), to = x.begin(label + 1);
    double share = 0.0;
    touched.clear();
    for (std::size_t i = from; i < to; ++i) {
      share += x.shares[i];
      const std::uint32_t b = bins.bin[i];
      if (seen[b] == 0) touched.push_back(b);
      seen[b] = 1;
      add_moments(x.shares[i], bins.place[i], &own[b * kNodes]);
    }
    std::sort(touched.begin(), touched.end());
    double own_beyond = 0.0;  // the share of this label's items beyond reach above
    std::size_t next = touched.size();
    for (std::size_t at = touched.size(); at-- > 0;) {
      const std::uint32_t b = touched[at];
      const double floor = bins.floors[b];
      double* effect = &effects[b * kNodes];
      std::fill_n(effect, kNodes, 0.0);
      const auto end = std::upper_bound(bins.floors.begin(), bins.floors.end(), floor + kReach);
      auto source =
          index(std::lower_bound(bins.floors.begin(), bins.floors.end(), floor - kReach) - bins.floors.begin());
      const auto last = index(end - bins.floors.begin());
      for (; source < last; ++source) {
        const auto distance = index(bins.floors[source] - floor + kReach);
        add_effect(table[distance], &all[source * kNodes], &own[source * kNodes], effect);
      }
      while (next > 0 && touched[next - 1] >= last) own_beyond += own[touched[--next] * kNodes];
      if (!curvature) effect[0] += beyond[last] - own_beyond;
    }
    for (std::size_t i = from; i < to; ++i) {
      const double *effect = &effects[bins.bin[i] * kNodes], t = bins.place[i];
      double sum = effect[kNodes - 1];
      for (std::size_t j = kNodes - 1; j-- > 0;) sum = sum * t + effect[j];
      x.slopes[i] = x.shares[i] * (curvature ? std::max(sum, 0.0) : above - sum);
    }
    for (const std::uint32_t b : touched) {
      std::fill_n(&own[b * kNodes], kNodes, 0.0);
      seen[b] = 0;
    }
    pairs += above * share;
    above += share;
  }
  finished(x, 0.0, pairs, list, options);
}

}  // namespace

double ranknet_derivatives(const List& list, const Options& options, Workspace& space, bool) {
  if (list.n <= kShort) return ranknet_derivatives_by_pairs(list, options, space);
  binned(list, options, space, false);
  space.reset(list.n);
  List other = list;
  other.slopes = list.curvatures;
  binned(other, options, space, true);
  return 0.0;
}

}  // namespace ltr
