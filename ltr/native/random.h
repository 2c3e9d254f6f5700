// Random numbers by splitmix64 (Steele, Lea & Flood 2014): small, fast, and the same on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace ltr {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // A number uniform on [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // A standard normal number, by the transform of Box & Muller (1958).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace ltr
