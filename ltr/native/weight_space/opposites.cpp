#include "../functions.h"

namespace ltr {
namespace {

constexpr std::size_t kBlock = 128;  // directions that are passed over together

// Write the distance of every direction from the negative of one.
LTR_MULTIVERSION void measure(const Matrix<const float>& directions, std::size_t one, float* distance) {
  const std::size_t n = directions.columns;
  std::fill_n(distance, n, 0.0F);
  for (std::size_t j = 0; j < directions.rows; ++j) {
    const float* coordinates = directions[j].data();
    const float x = coordinates[one];
    for (std::size_t i = 0; i < n; ++i) distance[i] += std::fabs(x + coordinates[i]);
  }
}

LTR_MULTIVERSION bool any_below(const float* values, std::size_t n, float limit) {
  std::size_t below = 0;
  for (std::size_t i = 0; i < n; ++i) below += values[i] < limit;
  return below > 0;
}

}  // namespace

void find_opposites(Matrix<const float> directions, Matrix<std::int32_t> partner, Matrix<float> distance) {
  const std::size_t n = directions.columns;
  require(partner.rows == n && distance.rows == n && distance.columns == partner.columns, "one row per direction");
  require(0 < partner.columns && partner.columns <= n, "no more partners than directions");
  std::vector<float> all(n);
  for (std::size_t one = 0; one < n; ++one) {
    measure(directions, one, all.data());
    const std::span<float> best = distance[one];
    const std::span<std::int32_t> who = partner[one];
    std::ranges::fill(best, std::numeric_limits<float>::infinity());
    std::ranges::fill(who, static_cast<std::int32_t>(one));
    for (std::size_t begin = 0; begin < all.size(); begin += kBlock) {
      const std::size_t end = std::min(begin + kBlock, all.size());
      if (!any_below(&all[begin], end - begin, best.back())) continue;
      for (std::size_t other = begin; other < end; ++other) {
        if (!(all[other] < best.back())) continue;
        std::size_t place = best.size() - 1;
        for (; place > 0 && all[other] < best[place - 1]; --place) {
          best[place] = best[place - 1];
          who[place] = who[place - 1];
        }
        best[place] = all[other];
        who[place] = static_cast<std::int32_t>(other);
      }
    }
  }
}

}  // namespace ltr
