#include "bounds.h"

#include "lanes.h"

namespace ltr::weight_space {
namespace {

// --- unit losses

// Write the largest count that the required loss affords, from each count from 0 to `most`; `path` is nondecreasing.
void fill_reach(const std::int64_t* path, std::int64_t most, std::int64_t required, std::int32_t* reach) {
  std::int64_t end = 0;
  for (std::int64_t count = 0; count <= most; ++count) {
    end = std::max(end, count);
    while (end < most && path[end + 1] - path[count] < required) ++end;
    reach[count] = static_cast<std::int32_t>(end);
  }
}

// Return the largest x up to `most` with ``path[x] - path[0]`` below a limit, 0 if there is none.
std::int64_t largest_within(const std::int64_t* path, std::int64_t most, std::int64_t limit) {
  std::int64_t x = 0, beyond = most + 1;
  while (beyond - x > 1) {
    const std::int64_t middle = (x + beyond) >> 1;
    if (path[middle] - path[0] < limit) {
      x = middle;
    } else {
      beyond = middle;
    }
  }
  return x;
}

// --- conflicts

// Mark which of some candidates are in conflict on a box with the given middle and half width of each coordinate.
LTR_MULTIVERSION void mark_conflicts(const Conflicts& conflicts, const float* middle, const float* half,
                                     std::size_t coordinates, std::uint8_t* __restrict marks) {
  constexpr std::uint32_t kSize = 0x7fffffff;  // the bits of a float but its sign
  const std::size_t number = conflicts.size;
  std::size_t c = 0;
  for (; c + 32 <= number; c += 32) {
    Floats16 sum{}, sum2{}, f, f2;
    const float* column = conflicts.columns + c;
    for (std::size_t j = 0; j < coordinates; ++j, column += number) {
      load(f, column);
      load(f2, column + 16);
      sum += middle[j] * f + half[j] * reinterpret_cast<Floats16>(reinterpret_cast<Bits16>(f) & kSize);
      sum2 += middle[j] * f2 + half[j] * reinterpret_cast<Floats16>(reinterpret_cast<Bits16>(f2) & kSize);
    }
    float reach[32];  // max x.f
    store(sum, reach);
    store(sum2, reach + 16);
    for (std::size_t k = 0; k < 32; ++k) marks[c + k] = reach[k] < conflicts.apart[c + k];
  }
  for (; c < number; ++c) {
    float reach = 0.0f;
    for (std::size_t j = 0; j < coordinates; ++j) {
      const float f = conflicts.columns[j * number + c];
      reach += middle[j] * f + half[j] * std::abs(f);
    }
    marks[c] = reach < conflicts.apart[c];
  }
}

// List the candidates that are in conflict on a box; return how many.
std::size_t find_conflicts(Workspace& work, const Box& box) {
  const Conflicts& conflicts = work.list_of(box).conflicts;
  const std::size_t number = conflicts.size;
  std::uint8_t* marks = work.in_conflict.data();
  for (std::size_t j = 0; j < work.columns(); ++j) {
    work.middle[j] = static_cast<float>(0.5 * (box.low[j] + box.high[j]));
    work.half_width[j] = static_cast<float>(0.5 * (box.high[j] - box.low[j]));
  }
  mark_conflicts(conflicts, work.middle.data(), work.half_width.data(), work.columns(), marks);
  return list_marked(marks, number, work.listed.data());
}

std::size_t objective_of(const Space& space, const Pairs& pairs, std::int32_t pair) {
  return space.tables.of_member[index(pairs.member[pair])].objective;
}

// Pack the pair losses in `scale` into the listed conflicts; write the loss of each objective to `packed` and leave the
// rest in `scale`.
void pack(const Space& space, Workspace& work, const Box& box, std::size_t found) {
  const PairList& list = work.list_of(box);
  double *left = work.scale.data(), *touched = work.touched.data();
  work.touched.fill(0.0);
  work.packed.fill(0.0);
  for (std::size_t k = 0; k < found; ++k) {
    const std::int32_t c = work.listed[k], q = list.conflicts.one[c], p = list.conflicts.other[c];
    if (objective_of(space, list.pairs, q) != objective_of(space, list.pairs, p)) continue;
    const double y = std::max(std::min(left[q], left[p]), 0.0);
    left[q] -= y;
    left[p] -= y;
    const std::int32_t i = list.pairs.member[q], m = list.pairs.member[p];
    work.packed[space.tables.of_member[index(i)].objective] += y;
    touched[i] += y;
    touched[m] += i != m ? y : 0.0;
  }
  for (std::size_t o = 0; o < work.packed.size(); ++o) work.packed[o] *= 1.0 - 1e-12;
}

// Lower each member's budget by what the conflicts without its pairs lose, of `packed` in all.
void lower_budgets(const Space& space, Workspace& work) {
  for (std::size_t i = 0; i < work.budget.size(); ++i) {
    const std::size_t objective = space.tables.of_member[i].objective;
    const auto required = static_cast<double>(work.required[objective]);
    const double others = std::max(0.0, work.packed[objective] - work.touched[i] * (1.0 + 1e-12));
    const auto budget = static_cast<std::int64_t>((required - others) * (1.0 + 1e-12)) + 1;
    work.budget[i] = std::min(work.budget[i], budget);
  }
}

// Return the largest share of what an objective needs that its conflicts lose.
double largest_packed_share(const Workspace& work) {
  double largest = 0.0;
  for (std::size_t o = 0; o < work.packed.size(); ++o) largest = std::max(largest, work.packed[o] / work.needed[o]);
  return largest;
}

// --- the hinge bound, branching and candidates

LTR_MULTIVERSION void gather_losses(const double* unit_loss, const std::int32_t* __restrict member,
                                    const std::uint8_t* __restrict open, double* __restrict scale, std::size_t size) {
  for (std::size_t q = 0; q < size; ++q) scale[q] = unit_loss[static_cast<std::uint32_t>(member[q])] * open[q];
}

LTR_MULTIVERSION void divide_by_lower(double* __restrict scale, const double* __restrict lower, std::size_t size) {
  for (std::size_t q = 0; q < size; ++q) scale[q] /= -lower[q] > 1e-11 ? -lower[q] : 1e-11;
}

struct Hinges {
  double h, slopes;  // h, and the sum of the slopes in it
};

// Add up the hinges of some pairs with the given -x.e, and write the slope of each pair in h, else 0, to `counting`.
[[gnu::always_inline]] inline void add_hinges(const double* values, const double* __restrict scale,
                                              double* __restrict counting, std::size_t size, double& h,
                                              double& slopes) {
  double sum = 0.0, sum_of_slopes = 0.0;
#pragma omp simd reduction(+ : sum, sum_of_slopes)
  for (std::size_t q = 0; q < size; ++q) {
    const double slope = values[q] > 0.0 ? scale[q] : 0.0;
    sum += slope * values[q];
    sum_of_slopes += slope;
    counting[q] = slope;
  }
  h += sum;
  slopes += sum_of_slopes;
}

// Write -x.e of some blocks of 8 pairs each; `columns` are those of the first pair.
template <std::size_t blocks>
[[gnu::always_inline]] inline void negate_products(const double* columns, std::size_t stride, std::size_t coordinates,
                                                   const double* x, double* values) {
  Doubles8 sums[blocks] = {}, e;
  for (std::size_t j = 0; j < coordinates; ++j, columns += stride) {
    for (std::size_t b = 0; b < blocks; ++b) {
      load(e, columns + 8 * b);
      sums[b] -= x[j] * e;
    }
  }
  for (std::size_t b = 0; b < blocks; ++b) store(sums[b], values + 8 * b);
}

// Compute h at x, and write the slope of each pair in it, else 0, to `counting`.
LTR_MULTIVERSION Hinges compute_hinges(const Pairs& pairs, std::size_t coordinates, const double* x,
                                       const double* scale, double* counting) {
  constexpr std::size_t kBlock = 256;
  double values[kBlock];
  Hinges found{0.0, 0.0};
  for (std::size_t first = 0; first < pairs.size; first += kBlock) {
    const std::size_t size = std::min(kBlock, pairs.size - first);
    const double* columns = pairs.columns + first;
    std::size_t q = 0;
    for (; q + 32 <= size; q += 32) negate_products<4>(columns + q, pairs.stride, coordinates, x, values + q);
    for (; q + 8 <= size; q += 8) negate_products<1>(columns + q, pairs.stride, coordinates, x, values + q);
    for (; q < size; ++q) {
      values[q] = 0.0;
      for (std::size_t j = 0; j < coordinates; ++j) values[q] -= x[j] * columns[j * pairs.stride + q];
    }
    add_hinges(values, scale + first, counting + first, size, found.h, found.slopes);
  }
  return found;
}

// Write x.e of each pair to `value`.
LTR_MULTIVERSION void compute_values(const double* columns, std::size_t stride, std::size_t coordinates,
                                     const double* __restrict x, double* __restrict value, std::size_t size) {
  for (std::size_t q = 0; q < size; ++q) value[q] = 0.0;
  for (std::size_t j = 0; j < coordinates; ++j) {
    const double* e = columns + j * stride;
    for (std::size_t q = 0; q < size; ++q) value[q] += x[j] * e[q];
  }
}

// Write the sum of the columns, or of the sizes of their entries, times `value` to `sums`.
template <bool sizes>
[[gnu::always_inline]] inline void sum_entries(const double* columns, std::size_t stride, std::size_t coordinates,
                                               const double* __restrict value, double* __restrict sums,
                                               std::size_t size) {
  const auto entry = [](double e) { return sizes ? std::abs(e) : e; };
  std::size_t j = 0;
  for (; j + 4 <= coordinates; j += 4) {
    const double *e0 = columns + j * stride, *e1 = e0 + stride, *e2 = e1 + stride, *e3 = e2 + stride;
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (std::size_t q = 0; q < size; ++q) {
      const double y = value[q];
      s0 += y * entry(e0[q]);
      s1 += y * entry(e1[q]);
      s2 += y * entry(e2[q]);
      s3 += y * entry(e3[q]);
    }
    sums[j] = s0;
    sums[j + 1] = s1;
    sums[j + 2] = s2;
    sums[j + 3] = s3;
  }
  for (; j < coordinates; ++j) {
    const double* e0 = columns + j * stride;
    double s0 = 0.0;
#pragma omp simd reduction(+ : s0)
    for (std::size_t q = 0; q < size; ++q) s0 += value[q] * entry(e0[q]);
    sums[j] = s0;
  }
}

LTR_MULTIVERSION void sum_columns(const double* columns, std::size_t stride, std::size_t coordinates,
                                  const double* __restrict value, double* __restrict sums, std::size_t size) {
  sum_entries<false>(columns, stride, coordinates, value, sums, size);
}

LTR_MULTIVERSION void sum_sizes(const double* columns, std::size_t stride, std::size_t coordinates,
                                const double* __restrict value, double* __restrict sums, std::size_t size) {
  sum_entries<true>(columns, stride, coordinates, value, sums, size);
}

LTR_MULTIVERSION void branching_shares(const double* unit_loss, const std::int32_t* __restrict member,
                                       const std::uint8_t* __restrict open, const double* __restrict upper,
                                       const double* __restrict lower, double* __restrict share, std::size_t size) {
  for (std::size_t q = 0; q < size; ++q) {
    const double counts = unit_loss[static_cast<std::uint32_t>(member[q])] > 0.0 ? 1.0 : 1e-6;
    share[q] = counts * open[q] / (upper[q] - lower[q] + 1e-300);
  }
}

LTR_MULTIVERSION double product_of_decided(const double* __restrict upper, const double* __restrict share,
                                           const double* __restrict e, double half, std::size_t size) {
  double below = 1.0, above = 1.0;
#pragma omp simd reduction(+ : below, above)
  for (std::size_t q = 0; q < size; ++q) {
    const double fall = half * e[q], counts = share[q] > 0.0 ? 1.0 : 0.0;
    below += upper[q] < fall ? counts : 0.0;
    above += upper[q] < -fall ? counts : 0.0;
  }
  return below * above;
}

// Return ``- max over the box of g.x``. Vectors of coordinates are padded with zeros to a multiple of 8.
LTR_MULTIVERSION double dual(const double* low, const double* high, const double* g, std::size_t padded) {
  double total = 0.0;
#pragma omp simd reduction(+ : total)
  for (std::size_t j = 0; j < padded; ++j) total += g[j] * (g[j] > 0.0 ? high[j] : low[j]);
  return -total;
}

// Move x along g so that h falls by `fall` to first order; return whether it could move.
LTR_MULTIVERSION bool step(const double* __restrict low, const double* __restrict high, double* __restrict x,
                           const double* __restrict g, double fall, std::size_t padded) {
  double norm = 0.0;
#pragma omp simd reduction(+ : norm)
  for (std::size_t j = 0; j < padded; ++j) {
    const bool blocked = ((g[j] > 0.0) & (x[j] >= high[j])) | ((g[j] < 0.0) & (x[j] <= low[j]));
    const double term = blocked ? 0.0 : g[j] * (high[j] - low[j]);
    norm += term * term;
  }
  // sides of less than 1e-150
  if (norm <= 0.0 || !(fall / norm < std::numeric_limits<double>::infinity())) return false;
  const double factor = fall / norm;
  for (std::size_t j = 0; j < padded; ++j) {
    const double width = high[j] - low[j];
    // in this order no product overflows: 0 times infinity would be no number
    double moved = x[j] + factor * (g[j] * width) * width;
    moved = moved < low[j] ? low[j] : moved;
    x[j] = moved > high[j] ? high[j] : moved;
  }
  return true;
}

struct Dual {
  double phi, slopes;
};

// Replace the best g by its combination with another one that has the largest phi. Phi is a concave function of the
// share, of which thirds of an interval are compared.
void combine(const Space& space, Workspace& work, const Box& box, Dual other, Dual& found) {
  const double *g = work.g.data(), *best = work.best.data();
  double* mixed = work.mixed.data();
  const std::size_t columns = space.columns();
  const auto slopes_at = [&](double share) { return found.slopes + share * (other.slopes - found.slopes); };
  const auto at = [&](double share) {
    for (std::size_t j = 0; j < columns; ++j) mixed[j] = best[j] + share * (g[j] - best[j]);
    return dual(box.low, box.high, mixed, work.padded()) - slopes_at(share) * space.error;
  };
  double low = 0.0, high = 1.0, share = other.phi > found.phi ? 1.0 : 0.0;
  double largest = std::max(found.phi, other.phi);
  for (int halving = 0; halving < tuning::kThirds; ++halving) {
    const double one = low + (high - low) / 3.0, two = high - (high - low) / 3.0, of_one = at(one), of_two = at(two);
    if (of_one > largest) {
      largest = of_one;
      share = one;
    }
    if (of_two > largest) {
      largest = of_two;
      share = two;
    }
    (of_one < of_two ? low : high) = of_one < of_two ? one : two;
  }
  if (share == 0.0) return;
  found = {at(share), slopes_at(share)};
  std::copy_n(mixed, columns, work.best.data());
}

void start_at_point(const Box& box, double* x, std::size_t columns) {
  for (std::size_t j = 0; j < columns; ++j) x[j] = std::min(std::max(box.point[j], box.low[j]), box.high[j]);
}

bool must_be_zero(const Space& space, const Box& box, std::size_t j) { return space.sparse && box.used[j] == 0; }

// Return what the objective of a member loses at least where the member loses one more pair.
std::int64_t loses_with_one(const Tables& tables, const Box& box, std::size_t member) {
  const auto [table, counts_at, objective] = tables.of_member[member];
  const std::int32_t count = box.counts[member];
  const std::int64_t place = counts_at < 0 ? 0 : box.fewer[counts_at + count + 1] - 1;
  const std::int64_t* contribution = tables.contribution.data() + table + place + count;
  return contribution[0] - contribution[1];
}

// Write to `Workspace::segment` where the pairs of each objective begin in the list of a box.
void find_segments(const Space& space, Workspace& work, const Box& box) {
  const Pairs& pairs = work.list_of(box).pairs;
  std::size_t objective = 0;
  work.segment[0] = 0;
  for (std::size_t run = 0; run < pairs.runs; ++run) {
    const auto begin = index(pairs.run[run]);
    const std::size_t of = space.tables.of_member[index(pairs.member[begin])].objective;
    while (objective < of) work.segment[++objective] = begin;
  }
  const std::size_t end = pairs.runs == 0 ? 0 : index(pairs.run[pairs.runs]);
  while (objective < space.tables.objectives()) work.segment[++objective] = end;
}

}  // namespace

std::size_t compute_unit_losses(const Space& space, Workspace& work, const Box& box, const std::int64_t* budget) {
  const Tables& tables = space.tables;
  const std::int64_t* path = work.path.data();
  std::size_t forced = 0;
  for (std::size_t level = 0; level < tables.levels(); ++level) {
    const bool shared = tables.counts_at[level] >= 0;
    if (tables.start[level] == tables.start[level + 1]) continue;
    const std::size_t objective = tables.of_member[index(tables.start[level])].objective;
    const std::int64_t required = work.required[objective];
    if (shared) {
      fill_level_path(tables, box, level, work.path.data());
      if (budget == nullptr) fill_reach(path, tables.most[level], required, work.reach.data());
    }
    const auto last = index(tables.start[level + 1]);
    for (auto i = index(tables.start[level]); i < last; ++i) {
      work.unit_loss[i] = 0.0;
      work.forced[i] = 0;
      const std::int64_t most = box.losable[i], count = box.counts[i];
      if (most == 0) continue;
      const std::int64_t limit = budget == nullptr ? required : budget[i];
      std::int64_t x = 0, loss = 0;  // the largest x that the budget affords
      if (!shared) {
        const std::int64_t* step = tables.step.data() + tables.table[level] + count;
        for (; x < most && loss + step[x] < limit; ++x) loss += step[x];
      } else {
        x = budget == nullptr ? std::min<std::int64_t>(most, work.reach[index(count)] - count)
                              : largest_within(path + count, most, limit);
        loss = path[count + x] - path[count];
      }
      if (x == 0 || loses_with_one(tables, box, i) >= required) {
        // no such point loses a pair of i, so its unit loss is free: two forced pairs in conflict close the box
        work.unit_loss[i] = static_cast<double>(required) * (1.0 + 1e-9);
        work.forced[i] = 1;
        ++forced;
      } else {
        work.unit_loss[i] = static_cast<double>(loss) * work.inverse[index(x)] * (1.0 - 1e-13);
      }
    }
  }
  return forced;
}

void compute_pair_losses(Workspace& work, const Box& box) {
  const Pairs& pairs = work.list_of(box).pairs;
  gather_losses(work.unit_loss.data(), pairs.member, box.open, work.scale.data(), pairs.size);
}

void compute_hinge_slopes(const Space& space, Workspace& work, const Box& box) {
  divide_by_lower(work.scale.data(), box.lower, work.list_of(box).pairs.size);
  if (space.tables.demands() == 0) return;
  find_segments(space, work, box);
  for (std::size_t o = 0; o < work.needed.size(); ++o) {
    const double share = 1.0 / work.needed[o];
    for (std::size_t q = work.segment[o]; q < work.segment[o + 1]; ++q) work.scale[q] *= share;
  }
}

bool lose_opposites(const Space& space, Workspace& work, Box& box) {
  const PairList& list = work.list_of(box);
  const std::size_t found = find_conflicts(work, box);
  const Tables& tables = space.tables;
  bool lost = false;
  for (std::size_t k = 0; k < found; ++k) {
    std::int32_t q = list.conflicts.one[work.listed[k]], p = list.conflicts.other[work.listed[k]];
    if (objective_of(space, list.pairs, q) == objective_of(space, list.pairs, p)) continue;
    if (box.open[q] == 0 || box.open[p] == 0) continue;
    if (work.forced[index(list.pairs.member[q])] == 0) std::swap(q, p);
    if (work.forced[index(list.pairs.member[q])] == 0) continue;
    const auto member = index(list.pairs.member[p]);
    bound_of(box, tables.of_member[member].objective) += raise_count(tables, box.counts, box.fewer, member, 1);
    box.open[p] = 0;
    --box.losable[member];
    --box.alive;
    lost = true;
  }
  return lost;
}

bool subtract_conflicts(const Space& space, Workspace& work, const Box& box) {
  const std::size_t found = find_conflicts(work, box);
  for (std::size_t o = 0; o < work.needed.size(); ++o) {
    work.needed[o] = static_cast<double>(work.required[o]) * (1.0 + 1e-15);
  }
  compute_pair_losses(work, box);
  pack(space, work, box, found);
  double packed = largest_packed_share(work);
  for (int again = 0; again < tuning::kPackings; ++again) {
    if (packed >= 1.0 || packed < tuning::kPackAgain) break;
    const double before = packed;
    if (again == 0) {
      for (std::size_t i = 0; i < work.budget.size(); ++i) {
        work.budget[i] = work.required[space.tables.of_member[i].objective];
      }
    }
    lower_budgets(space, work);
    compute_unit_losses(space, work, box, work.budget.data());
    compute_pair_losses(work, box);
    pack(space, work, box, found);
    packed = largest_packed_share(work);
    if (packed < tuning::kLeastGrowth * before) break;
  }
  bool closed = false;
  for (std::size_t o = 0; o < work.needed.size(); ++o) {
    work.needed[o] -= work.packed[o];
    closed = closed || work.needed[o] <= 0.0;
  }
  return closed;
}

void branching_scores(const Space& space, Workspace& work, const Box& box) {
  const Pairs& pairs = work.list_of(box).pairs;
  branching_shares(work.unit_loss.data(), pairs.member, box.open, box.upper, box.lower, work.value.data(), pairs.size);
  sum_sizes(pairs.columns, pairs.stride, space.d(), work.value.data(), work.score.data(), pairs.size);
}

double decided_by_half(Workspace& work, const Box& box, std::size_t j) {
  const Pairs& pairs = work.list_of(box).pairs;
  return product_of_decided(box.upper, work.value.data(), pairs.column(j), 0.5 * (box.high[j] - box.low[j]),
                            pairs.size);
}

HingeBound hinge_bound(const Space& space, Workspace& work, Box& box, double required) {
  const Pairs& pairs = work.list_of(box).pairs;
  const std::size_t columns = space.columns();
  double *x = work.x.data(), *g = work.g.data(), *best = work.best.data();
  start_at_point(box, x, columns);
  Dual found{-kInfinity, 0.0};  // of the best g
  Outcome outcome = Outcome::kOpen;
  for (int number = 1; number <= tuning::kSteps; ++number) {
    if (space.stop.asked()) {  // one step takes long with many pairs of many features
      outcome = Outcome::kGaveUp;
      break;
    }
    std::size_t begin = 0, size = pairs.size;  // the pairs of the objective with the largest h
    Hinges hinges{-1.0, 0.0};
    for (std::size_t o = 0; o < work.needed.size(); ++o) {
      const std::size_t first = work.needed.size() == 1 ? 0 : work.segment[o];
      const std::size_t of = work.needed.size() == 1 ? pairs.size : work.segment[o + 1] - first;
      Pairs own = pairs;
      own.columns += first;
      own.size = of;
      const Hinges these = compute_hinges(own, columns, x, work.scale.data() + first, work.value.data() + first);
      if (these.h <= hinges.h) continue;
      hinges = these;
      begin = first;
      size = of;
    }
    if (hinges.h < required) {
      outcome = Outcome::kGaveUp;
      break;
    }
    sum_columns(pairs.columns + begin, pairs.stride, columns, work.value.data() + begin, g, size);
    const double phi = dual(box.low, box.high, g, work.padded()) - hinges.slopes * space.error;
    if (number == 1) {
      found = {phi, hinges.slopes};
      std::copy_n(g, columns, best);
    } else {
      combine(space, work, box, {phi, hinges.slopes}, found);
    }
    if (found.phi >= required) {
      outcome = Outcome::kClosed;
      break;
    }
    if (!step(box.low, box.high, x, g, tuning::kRelaxation * (hinges.h - 0.9 * required), work.padded())) break;
  }
  std::copy_n(x, columns, box.point);
  return {outcome, found.phi};
}

void descend(const Space& space, Workspace& work, const Box& box) {
  const Pairs& pairs = work.list_of(box).pairs;
  const std::size_t columns = space.columns();
  double *x = work.x.data(), *g = work.g.data();
  start_at_point(box, x, columns);
  for (int number = 0; number < tuning::kDescent; ++number) {
    if (space.stop.asked()) break;
    for (std::size_t j = 0; j + 1 < columns; ++j) {
      if (must_be_zero(space, box, j)) x[j] = 0.0;
    }
    const Hinges hinges = compute_hinges(pairs, columns, x, work.scale.data(), work.value.data());
    if (hinges.h <= 0.0) break;
    sum_columns(pairs.columns, pairs.stride, columns, work.value.data(), g, pairs.size);
    for (std::size_t j = 0; j + 1 < columns; ++j) {
      if (must_be_zero(space, box, j)) g[j] = 0.0;
    }
    if (!step(box.low, box.high, x, g, 1.2 * hinges.h, work.padded())) break;
  }
  for (std::size_t j = 0; j + 1 < columns; ++j) {
    if (must_be_zero(space, box, j)) x[j] = 0.0;
    if (space.integer) x[j] = std::nearbyint(x[j]);
  }
}

std::int64_t candidate_value(const Space& space, Workspace& work, const Box& box) {
  const Pairs& pairs = work.list_of(box).pairs;
  const std::size_t d = space.d();
  double* x = work.x.data();
  if (!space.fixed) {
    x[d] = 0.0;
    for (std::size_t i = 0; i < space.T.rows; ++i) {
      double weight = 0.0;
      for (std::size_t j = 0; j < d; ++j) weight += space.T(i, j) * x[j];
      x[d] = std::max(x[d], std::abs(weight) * (1.0 + 1e-12));
    }
  }
  for (std::size_t row = 0; row < space.A.rows; ++row) {
    double activity = 0.0;
    for (std::size_t j = 0; j < d; ++j) activity += side_term(space, space.A(row, j) * x[j]);
    if (activity > space.b[row]) return kNever;
  }
  std::copy_n(box.counts, work.trial_counts.size(), work.trial_counts.data());
  std::copy_n(box.fewer, work.trial_fewer.size(), work.trial_fewer.data());
  std::int64_t value = box.bound;
  std::copy_n(box.room, work.required.size() - 1, work.required.data() + 1);
  compute_values(pairs.columns, pairs.stride, space.columns(), x, work.value.data(), pairs.size);
  for (std::size_t q = 0; q < pairs.size; ++q) {
    if (box.open[q] != 0 && work.value[q] < pairs.slack[q]) {
      const auto member = index(pairs.member[q]);
      const std::int64_t change =
          raise_count(space.tables, work.trial_counts.data(), work.trial_fewer.data(), member, 1);
      const std::size_t objective = space.tables.of_member[member].objective;
      (objective == 0 ? value : work.required[objective]) += change;
    }
  }
  for (std::size_t demand = 1; demand < work.required.size(); ++demand) {
    // the tables are rounded up, by less than 1 for each member
    if (work.required[demand] <= static_cast<std::int64_t>(space.tables.members()) + 1) return kNever;
  }
  return value;
}

}  // namespace ltr::weight_space
