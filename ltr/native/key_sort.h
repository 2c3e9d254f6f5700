// Sorts items by numbers, long lists by their digits.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ltr {

struct Key {
  double key;
  std::uint32_t item;

  bool operator<(const Key& other) const { return key != other.key ? key < other.key : item < other.item; }
};

// Sort by key, and items with equal keys, which come in ascending order, by item. No key is NaN.
//
// Many keys are sorted by their place among 2^22 cells between the smallest and the largest, in two passes, which
// leaves little to sort in each cell.
inline void sort_keys(std::vector<Key>& keys, std::vector<Key>& spare) {
  constexpr std::size_t kMany = 4096;
  constexpr unsigned kBits = 11;
  constexpr std::uint32_t kSize = 1u << kBits;
  if (keys.size() < kMany) return std::sort(keys.begin(), keys.end());
  const auto [least, most] = std::minmax_element(keys.begin(), keys.end());
  const double low = least->key, scale = (kSize * kSize - 1) / (most->key - low);
  if (!std::isfinite(low) || !std::isfinite(most->key - low) || !std::isfinite(scale)) {
    return std::sort(keys.begin(), keys.end());
  }
  const auto cell = [=](const Key& key) { return static_cast<std::uint32_t>((key.key - low) * scale); };
  std::array<std::vector<std::uint32_t>, 2> next{std::vector<std::uint32_t>(kSize), std::vector<std::uint32_t>(kSize)};
  for (const Key& key : keys) ++next[0][cell(key) % kSize], ++next[1][std::min(cell(key) / kSize, kSize - 1)];
  spare.resize(keys.size());
  for (unsigned pass = 0; pass < 2; ++pass) {
    std::uint32_t before = 0;
    for (std::uint32_t& one : next[pass]) before += std::exchange(one, before);
    for (const Key& key : keys) {
      spare[next[pass][pass == 0 ? cell(key) % kSize : std::min(cell(key) / kSize, kSize - 1)]++] = key;
    }
    keys.swap(spare);
  }
  for (std::size_t first = 0, end = 0; first < keys.size(); first = end) {
    const std::uint32_t own = cell(keys[first]);
    for (end = first + 1; end < keys.size() && cell(keys[end]) == own; ++end) continue;
    if (end - first > 1) {
      std::sort(keys.begin() + first, keys.begin() + end);
    }
  }
}

}  // namespace ltr
