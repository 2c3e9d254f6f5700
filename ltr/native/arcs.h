// Upper bounds of the statistic over arcs of directions, for `ltr.exact.arcs`: on an arc the keys of all items,
// ``f + t g - offset``, are linear in t, so an item that is above another one at both ends is above it on the whole
// arc.
//
// *Counting without pairs.* A layer of a list divides its items into positives and negatives (`ltr.exact.levels`). Let
// A_i be the negatives that are certainly above positive i at the lower end of the arc, and B_i those at the upper end.
// Sort all items by their keys at the lower end; merging them by their keys at the upper end passes over all pairs of
// A_i without B_i, and of B_i without A_i, a whole run of negatives at a time. The numbers |A_i| - |A_i without B_i| of
// negatives that positive i certainly loses to give a bound, as in `ltr.exact.levels`.
//
// *Few pairs left.* Where few pairs are in only one of the two sets, each is counted as lost up to the lowest t, or
// from the highest t on, at which it can change, given all rounding errors. Stepping through these t gives the largest
// value that can be on the arc, and where it would be.
//
// Keys are given outwards by more than they can err: those of positives up, those of negatives down. Contributions are
// integers, rounded up, so that sums are exact in any order.
#pragma once

#include <atomic>
#include <tuple>

#include "arrays.h"
#include "key_sort.h"
#include "workers.h"

namespace ltr::arcs {

constexpr double kRounding = 0x1p-50;  // of the sum of the sizes of a key's three terms; half of this would do
constexpr double kTiny = 16 * std::numeric_limits<double>::denorm_min();
constexpr double kLargest = 0x1p60;  // integers that a perfect order adds up to, at most

// The upper class of a list is its items before `split`.
struct Layer {
  std::size_t first, split, end;
  std::size_t table;      // contribution[table + t] for the places t = 0, 1, ... from the top
  std::size_t positives;  // number of the first positive among those of all layers
  std::size_t fewer;      // start of the numbers of positives with fewer lost pairs, of which there are negatives + 2
};

struct Line {
  std::span<const double> f, g;
  double low, high;
};

// A change of the bound along an arc: positive i of all layers loses one pair less from there on, or ~i one more.
struct Change {
  double at;
  std::int32_t positive;
};

struct Found {
  double bound, pairs, at, until;  // largest value, pairs that change; from where to where it is, NaN if not known
};

// An item of a layer: its number, and what its keys at the ends are, rounded outwards.
struct Point {
  double low, high;
  std::int32_t item;
};

// The memory of one thread.
struct Scratch {
  std::vector<Key> keys, spare;
  std::vector<Point> points, merged;
  std::vector<std::int32_t> lost, fewer;
  std::vector<Change> changes;
};

// Bounds over arcs of one problem. Lists follow each other, with the items of higher gains first in each.
class Arcs {
 public:
  Arcs(std::span<const std::int32_t> row, std::span<const double> offset, std::span<const double> gain,
       std::span<const std::int64_t> start, std::span<const double> weight, std::span<const std::int64_t> weight_at,
       double shift, std::size_t threads)
      : row_(row.begin(), row.end()),
        offset_(offset.begin(), offset.end()),
        shift_(shift),
        others_(threads > 1 ? threads - 1 : 0) {
    const std::size_t n = row.size(), lists = weight_at.size();
    require(offset.size() == n && gain.size() == n && start.size() == lists + 1, "one entry per item");
    require(n < (std::size_t{1} << 31) && threads < 1024, "fewer items");
    require(lists > 0 && start[0] == 0 && start[lists] == static_cast<std::int64_t>(n), "lists of all items");
    double perfect = 0.0;
    for (std::size_t l = 0; l < lists; ++l) {
      const auto first = index(start[l]), end = index(start[l + 1]);
      for (std::size_t i = first; i < end; ++i) {
        perfect += gain[i] * weight[index(weight_at[l]) + end - 1 - i];
      }
    }
    scale_ = perfect > 0.0 ? std::exp2(std::floor(std::log2(kLargest / perfect)) - 1.0) : 1.0;
    require(std::isfinite(scale_) && scale_ > 0.0, "values in range");
    std::size_t positives = 0, fewer = 0;
    for (std::size_t l = 0; l < lists; ++l) {
      const auto first = index(start[l]), end = index(start[l + 1]);
      const double* const weights = weight.data() + weight_at[l];
      for (std::size_t split = first + 1; split <= end; ++split) {
        const double below = split < end ? gain[split] : 0.0, step = gain[split - 1] - below;
        if (!(step > 0.0)) continue;
        const std::size_t table = contribution_.size();
        for (std::size_t k = end - first; k-- > 0;)
          contribution_.push_back(rounded_up(step, gain[split - 1], weights[k]));
        contribution_.push_back(contribution_.back());
        layers_.push_back({first, split, end, table, positives, fewer});
        positives += split - first, fewer += end - split + 2;
      }
    }
    require(positives < (std::size_t{1} << 31), "fewer layers");
    positives_ = positives, fewer_ = fewer;
    places_.resize(positives_);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      for (std::size_t i = layers_[l].first; i < layers_[l].split; ++i) {
        places_[layers_[l].positives + i - layers_[l].first] = static_cast<std::int32_t>(l);
      }
    }
    for (const std::int32_t r : row_) {
      require(r >= 0, "rows");
      rows_ = std::max(rows_, index(r) + 1);
    }
    scratch_.resize(others_ + 1);
  }

  // Return, for every arc low <= t <= high of scores f + t g, an upper bound of the statistic, the number of pairs that
  // change on it, and if these are at most `most`, from where to where the largest value would be, else NaN.
  std::vector<std::tuple<double, double, double, double>> bound(std::span<const double> f, std::span<const double> g,
                                                                std::span<const double> low,
                                                                std::span<const double> high, double most) {
    require(f.size() >= rows_ && g.size() == f.size() && low.size() == high.size(), "one score per row");
    std::vector<std::tuple<double, double, double, double>> found(low.size());
    std::atomic<std::size_t> next{0}, thread{0};
    share_work(std::min(others_, found.empty() ? 0 : found.size() - 1), [&] {
      Scratch& scratch = scratch_[thread.fetch_add(1)];
      for (std::size_t arc; (arc = next.fetch_add(1)) < found.size();) {
        const Found one = bound_arc({f, g, low[arc], high[arc]}, most, scratch);
        found[arc] = {one.bound, one.pairs, one.at, one.until};
      }
    });
    return found;
  }

 private:
  // Return an integer that is at least the contribution: gains differ by `step`, up to an error of a unit of `gain`.
  std::int64_t rounded_up(double step, double gain, double weight) const {
    const double product = (step + 0x1p-52 * gain) * weight * scale_;
    return static_cast<std::int64_t>(std::ceil(product * (1.0 + 0x1p-50)));
  }

  double value_of(std::int64_t sum) const {
    const double value = static_cast<double>(sum) / scale_ + shift_;
    return value + 0x1p-50 * (std::abs(value) + std::abs(shift_));
  }

  // Return the key of an item at t, as far up or down as it can be.
  double key(const Line& line, std::size_t item, double t, double outwards) const {
    const std::size_t r = index(row_[item]);
    const double f = line.f[r], g = t * line.g[r], offset = offset_[item];
    const double key = f + g - offset, error = kRounding * (std::abs(f) + std::abs(g) + std::abs(offset)) + kTiny;
    const double moved = key + outwards * error;
    return std::isnan(moved) ? outwards * kInfinity : moved;
  }

  Found bound_arc(const Line& line, double most, Scratch& scratch) const {
    scratch.lost.assign(positives_, 0);
    scratch.changes.clear();
    double pairs = 0.0;
    bool few = true;
    std::int64_t sum = 0;
    for (const Layer& layer : layers_) {
      pairs += compare(line, layer, few ? most - pairs : -1.0, scratch);
      few = pairs <= most;
    }
    if (few) return step_through(line, pairs, scratch);
    for (const Layer& layer : layers_) sum += layer_value(layer, scratch.lost.data() + layer.positives, scratch);
    return {value_of(sum), pairs, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  }

  // Write how many pairs every positive of a layer certainly loses on the arc; return how many pairs change on it. As
  // long as these are at most `most`, their changes are added.
  double compare(const Line& line, const Layer& layer, double most, Scratch& scratch) const {
    const std::size_t n = layer.end - layer.first, split = layer.split - layer.first;
    std::vector<Key>& keys = scratch.keys;
    keys.resize(n);
    scratch.points.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
      const double outwards = k < split ? 1.0 : -1.0;
      const double low = key(line, layer.first + k, line.low, outwards);
      // of equal keys, positives are above: they come first in descending order
      keys[k] = {-low, static_cast<std::uint32_t>(k)};
      scratch.points[k] = {low, key(line, layer.first + k, line.high, outwards), static_cast<std::int32_t>(k)};
    }
    sort_keys(keys, scratch.spare);
    std::int32_t* const lost = scratch.lost.data() + layer.positives;
    std::vector<Point>& runs = scratch.merged;
    runs.resize(n);
    std::int32_t above = 0;
    for (std::size_t k = 0; k < n; ++k) {
      runs[k] = scratch.points[keys[k].item];
      if (keys[k].item < split) {
        lost[keys[k].item] = above;
      } else {
        ++above;
      }
    }
    return merge_all(line, layer, most, lost, scratch);
  }

  // Merge runs of items, which are in descending order of their keys at the lower end, by their keys at the upper end.
  double merge_all(const Line& line, const Layer& layer, double most, std::int32_t* lost, Scratch& scratch) const {
    const std::size_t n = layer.end - layer.first;
    const auto split = static_cast<std::int32_t>(layer.split - layer.first);
    std::vector<Point>&from = scratch.merged, &to = scratch.points;
    double pairs = 0.0;
    for (std::size_t width = 1; width < n; width *= 2) {
      for (std::size_t begin = 0; begin < n; begin += 2 * width) {
        const std::size_t middle = std::min(begin + width, n), end = std::min(begin + 2 * width, n);
        pairs += merge(line, layer, split, from.data() + begin, from.data() + middle, from.data() + end,
                       to.data() + begin, most - pairs, lost, scratch);
      }
      from.swap(to);
    }
    return pairs;
  }

  // Merge two runs, `upper` above `lower` at the lower end of the arc; each is in descending order at the upper end,
  // and of equal keys positives are above. Return the number of pairs of a positive and a negative that change.
  double merge(const Line& line, const Layer& layer, std::int32_t split, const Point* upper, const Point* lower,
               const Point* end, Point* to, double room, std::int32_t* lost, Scratch& scratch) const {
    const Point *const upper_end = lower, *const lower_begin = lower;
    const auto negatives = [=](const Point* begin, const Point* until) {
      return static_cast<std::int32_t>(
          std::count_if(begin, until, [=](const Point& one) { return one.item >= split; }));
    };
    std::int32_t upper_left = negatives(upper, upper_end), lower_passed = 0;
    double pairs = 0.0;
    while (upper != upper_end || lower != end) {
      bool from_upper = lower == end;
      if (upper != upper_end && lower != end) {
        const bool tied_below = upper->item >= split && lower->item < split;  // a negative tied with a positive
        from_upper = upper->high != lower->high ? upper->high > lower->high : !tied_below;
      }
      const Point& one = from_upper ? *upper++ : *lower++;
      *to++ = one;
      if (one.item >= split) {
        upper_left -= from_upper, lower_passed += !from_upper;
      } else if (from_upper) {  // negatives of the lower run come above it
        pairs += lower_passed;
        if (pairs <= room) add_changes(line, layer, split, one, lower_begin, lower, false, scratch);
      } else {  // it comes above negatives of the upper run
        pairs += upper_left;
        lost[one.item] -= upper_left;
        if (pairs <= room) add_changes(line, layer, split, one, upper, upper_end, true, scratch);
      }
    }
    return pairs;
  }

  // Add the changes of a positive with the negatives of a part of a run: it is above them from some t on, or up to
  // there.
  void add_changes(const Line& line, const Layer& layer, std::int32_t split, const Point& positive, const Point* begin,
                   const Point* end, bool rises, Scratch& scratch) const {
    const auto number = static_cast<std::int32_t>(layer.positives + index(positive.item));
    const std::size_t i = layer.first + index(positive.item);
    const double f = line.f[index(row_[i])], g = line.g[index(row_[i])], offset = offset_[i];
    for (const Point* one = begin; one != end; ++one) {
      if (one->item < split) continue;
      const std::size_t k = layer.first + index(one->item);
      const double other_f = line.f[index(row_[k])], other_g = line.g[index(row_[k])], other = offset_[k];
      const double gap = (other_f - f) + (offset - other), slope = g - other_g, at = gap / slope;
      const double size = std::abs(f) + std::abs(other_f) + std::abs(offset) + std::abs(other) + kTiny;
      const double error =
          kRounding * ((size + std::abs(at) * (std::abs(g) + std::abs(other_g))) / std::abs(slope)) + kTiny;
      const double moved = rises ? at - 2.0 * error : at + 2.0 * error;
      const double outside = rises ? line.low : line.high;
      scratch.changes.push_back(
          {std::isnan(moved) ? outside : std::clamp(moved, line.low, line.high), rises ? number : ~number});
    }
  }

  // Return the value of a layer whose positives lose these numbers of pairs.
  std::int64_t layer_value(const Layer& layer, const std::int32_t* lost, Scratch& scratch) const {
    const std::size_t negatives = layer.end - layer.split, positives = layer.split - layer.first;
    scratch.fewer.assign(negatives + 2, 0);
    for (std::size_t i = 0; i < positives; ++i) ++scratch.fewer[index(lost[i]) + 1];
    return sum_of(layer, scratch.fewer.data());
  }

  // Return the value of a layer from the numbers of positives that lose m pairs, at m + 1; make them those of positives
  // that lose fewer than m, at m.
  std::int64_t sum_of(const Layer& layer, std::int32_t* fewer) const {
    std::int64_t sum = 0;
    std::int32_t p = 0;
    for (std::size_t m = 0; m <= layer.end - layer.split; ++m) {
      const std::int32_t until = p + fewer[m + 1];
      fewer[m] = p;
      for (; p < until; ++p) sum += contribution_[layer.table + index(p) + m];
    }
    fewer[layer.end - layer.split + 1] = p;
    return sum;
  }

  // Return the largest value along the arc, given the pairs lost on all of it and all changes.
  Found step_through(const Line& line, double pairs, Scratch& scratch) const {
    for (const Change& change : scratch.changes) {
      if (change.positive >= 0) ++scratch.lost[index(change.positive)];  // lost at the lower end
    }
    scratch.fewer.assign(fewer_, 0);
    std::int64_t sum = 0;
    for (const Layer& layer : layers_) {
      std::int32_t* const fewer = scratch.fewer.data() + layer.fewer;
      for (std::size_t i = 0; i < layer.split - layer.first; ++i) ++fewer[index(scratch.lost[layer.positives + i]) + 1];
      sum += sum_of(layer, fewer);
    }
    // at the same t, pairs are won before others are lost
    std::sort(scratch.changes.begin(), scratch.changes.end(),
              [](const Change& a, const Change& b) { return a.at != b.at ? a.at < b.at : a.positive > b.positive; });
    std::int64_t best = sum;
    double at = line.low, until = line.high;
    bool open = true;  // whether the best value goes on
    for (const Change& change : scratch.changes) {
      const bool won = change.positive >= 0;
      const std::size_t i = index(won ? change.positive : ~change.positive);
      const Layer& layer = layers_[index(places_[i])];
      std::int32_t* const fewer = scratch.fewer.data() + layer.fewer;
      const std::int64_t before = sum;
      if (won) {
        const std::size_t c = index(scratch.lost[i]--);
        const std::size_t here = layer.table + c + index(fewer[c]++);
        sum += contribution_[here - 1] - contribution_[here];
      } else {
        const std::size_t c = index(++scratch.lost[i]);
        const std::size_t here = layer.table + c + index(--fewer[c]);
        sum += contribution_[here] - contribution_[here - 1];
      }
      if (open && sum < before && before == best) until = change.at, open = false;
      if (sum > best) best = sum, at = change.at, until = line.high, open = true;
    }
    return {value_of(best), pairs, at, until};
  }

  std::vector<std::int32_t> row_;  // of each item
  std::vector<double> offset_;
  double shift_, scale_ = 1.0;
  std::size_t others_, positives_ = 0, fewer_ = 0, rows_ = 0;
  std::vector<Layer> layers_;
  std::vector<std::int32_t> places_;  // layer of each positive
  std::vector<std::int64_t> contribution_;
  std::vector<Scratch> scratch_;
};

}  // namespace ltr::arcs
