// Exponentials and logarithms that compilers turn into vector instructions, accurate to a few units in the last place.
//
// The functions have no branches and no calls, so that loops over them vectorise on every processor. They are inlined
// into functions with `LTR_MULTIVERSION`, which gives each of those the instructions of its own processor.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace ltr {

// exp(x) for x <= 709, exactly 0 below -708.
//
// With k the integer nearest to x / log 2 and r = x - k log 2, exp(x) = 2^k exp(r), |r| <= log(2) / 2. There
// exp(r) = 1 + r + r^2 p(r), and the polynomial p of degree 9, fitted at Chebyshev nodes, is wrong by 1.3e-17 at most.
// Adding 1.5 * 2^52 rounds to an integer, which then stands in the low bits; 2^k is added to the exponent.
[[gnu::always_inline]] inline double exp_of(double x) {
  constexpr double kRound = 0x1.8p52;
  const double shifted = x * 0x1.71547652b82fep0 + kRound, k = shifted - kRound;
  const double r = (x - k * 0x1.62e42fefa0000p-1) - k * 0x1.cf79abc9e3b3ap-40;
  double p = 0x1.af38d53857513p-26;
  p = p * r + 0x1.2891a8c1d838dp-22;
  p = p * r + 0x1.71de0d9c145d0p-19;
  p = p * r + 0x1.a019b8ef67c6cp-16;
  p = p * r + 0x1.a01a01a7c8d47p-13;
  p = p * r + 0x1.6c16c17893833p-10;
  p = p * r + 0x1.11111111109adp-7;
  p = p * r + 0x1.5555555553d4fp-5;
  p = p * r + 0x1.5555555555556p-3;
  p = p * r + 0.5;
  p = p * (r * r) + r + 1.0;
  const auto exponent = std::bit_cast<std::uint64_t>(shifted) << 52;
  const double value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(p) + exponent);
  return x < -708.0 ? 0.0 : value;
}

// The same in single precision, accurate to a unit in the last place: exp(x) for x <= 88, exactly 0 below -87.3.
[[gnu::always_inline]] inline float exp_of(float x) {
  constexpr float kRound = 0x1.8p23f;
  const float shifted = x * 0x1.715476p0f + kRound, k = shifted - kRound;
  const float r = (x - k * 0x1.63p-1f) + k * 0x1.bd0106p-13f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const auto exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  const float value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
  return x < -87.3f ? 0.0f : value;
}

// 2 atanh(s) for |s| <= 3 - sqrt(8), from the series of Sun's fdlibm: log(1 + f) with s = f / (2 + f).
[[gnu::always_inline]] inline double twice_atanh(double s) {
  const double z = s * s;
  double p = 1.479819860511658591e-01;
  p = p * z + 1.531383769920937332e-01;
  p = p * z + 1.818357216161805012e-01;
  p = p * z + 2.222219843214978396e-01;
  p = p * z + 2.857142874366239149e-01;
  p = p * z + 3.999999999940941908e-01;
  p = p * z + 6.666666666666735130e-01;
  return s * (2.0 + z * p);
}

constexpr double kLog2 = 0x1.62e42fefa39efp-1;

// log(1 + x) for 0 <= x <= 1.
[[gnu::always_inline]] inline double log_of_one_plus(double x) {
  const bool large = x > 0.41421356237309503;  // then log 2 + log((1 + x) / 2)
  const double s = (large ? x - 1.0 : x) / (x + (large ? 3.0 : 2.0));
  return twice_atanh(s) + (large ? kLog2 : 0.0);
}

// log(1 + x) for any x >= 0 that is finite: log of the rounded sum, corrected for the rounding to first order.
[[gnu::always_inline]] inline double log_of_one_plus_any(double x) {
  const double sum = 1.0 + x;
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  // 2^k m with m between sqrt(1/2) and sqrt(2); k goes through the bits of 2^52 + 2^51, which vectorises everywhere
  const std::uint64_t biased = (bits + (0x3ff0000000000000ULL - 0x3fe6a09e667f3bcdULL)) >> 52;
  const double k = std::bit_cast<double>(biased + std::bit_cast<std::uint64_t>(0x1.8p52)) - (0x1.8p52 + 1023.0);
  const double m = std::bit_cast<double>(bits - ((biased - 1023) << 52));
  const double log = k * kLog2 + twice_atanh((m - 1.0) / (m + 1.0));
  const double lost = x - (sum - 1.0);
  return log + (x < 0x1p52 ? lost / sum : 0.0);
}

// Write the ratios of the exponentials of terms to that of the largest one; return their sum.
[[gnu::always_inline]] inline double ratios(const double* terms, double largest, double* out, std::size_t n) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = exp_of(terms[i] - largest);
    sum += out[i];
  }
  return sum;
}

}  // namespace ltr
