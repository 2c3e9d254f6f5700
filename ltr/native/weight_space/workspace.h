// The memory of one thread of a weight-space search: a stack of boxes, a stack of lists of open pairs, scratch space.
#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <new>

#include "lanes.h"
#include "space.h"

namespace ltr::weight_space {

// share of all pairs up to which a level's largest count may be for that: a bound on the memory of `Workspace::moved`
inline constexpr std::size_t kShallow = 8;

static_assert(std::endian::native == std::endian::little, "the first byte in memory is the lowest of a word");

// The first bytes of a word in memory, the others 0; `number` is 1 to 8.
inline std::uint64_t first_bytes(std::uint64_t word, std::size_t number) {
  const std::size_t others = 8 * (8 - number);
  return word << others >> others;
}

// The product of a word of 8 bytes, all 0 or 1, and this number has them as the bits of its highest byte.
inline constexpr std::uint64_t kGather = 0x0102040810204080;

// The positions of the bits of each byte that are 1.
struct Positions {
  std::uint32_t of[256][8] = {};
  constexpr Positions() {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      for (std::size_t bit = 0, found = 0; bit < 8; ++bit) {
        if ((byte >> bit & 1) != 0) of[byte][found++] = static_cast<std::uint32_t>(bit);
      }
    }
  }
};
inline constexpr Positions kPositions;

// Write the positions of the bytes that are 1 among `size` bytes, all 0 or 1, to `places`; return how many. Both arrays
// have room for 8 more.
[[gnu::always_inline]] inline std::size_t list_marked(const std::uint8_t* marks, std::size_t size,
                                                      std::int32_t* places) {
  std::size_t found = 0;
  for (std::size_t first = 0; first < size; first += 8) {
    std::uint64_t word;
    std::memcpy(&word, marks + first, 8);
    if (size - first < 8) word = first_bytes(word, size - first);
    Bits8 positions;
    load(positions, kPositions.of[(word * kGather) >> 56]);
    store(positions + static_cast<std::uint32_t>(first), places + found);
    found += index(std::popcount(word));
  }
  return found;
}

// A coordinate whose lower side has risen and whose upper side has fallen, and its entry of each pair.
struct Move {
  const double* e;
  double rise, fall;
};

// Memory that is not touched before it is used: a large stack costs only what its boxes fill.
template <typename T>
class Buffer {
 public:
  explicit Buffer(std::size_t size)
      : size_(size), data_(static_cast<T*>(::operator new(size * sizeof(T) + kAlign, std::align_val_t(kAlign)))) {}
  Buffer(Buffer&& other) = default;

  T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t at) const { return data_.get()[at]; }
  void fill(T value) const { std::fill_n(data(), size_, value); }

 private:
  static constexpr std::size_t kAlign = 64;
  struct Release {
    void operator()(T* data) const { ::operator delete(data, std::align_val_t(kAlign)); }
  };
  std::size_t size_;
  std::unique_ptr<T, Release> data_;
};

// The pairs that were open when the list was made, contiguous for the inner loops, and the candidates for conflicts
// among them. All boxes above it on the stack share a list, until one of them has few open pairs and gets its own.
struct PairList {
  Pairs pairs;
  Conflicts conflicts;
  std::size_t pairs_end = 0;      // pairs of this list and those below it
  std::size_t links_end = 0;      // candidates of this list and those below it
  std::size_t conflicts_end = 0;  // columns of these candidates, which lists may share
};

struct Box {
  double* low = nullptr;        // least value of each coordinate
  double* high = nullptr;       // largest value of each coordinate
  double* point = nullptr;      // where the last descent of the hinge bound ended
  double* moved_low = nullptr;  // sides of the box that the interval bounds are of
  double* moved_high = nullptr;
  std::uint8_t* used = nullptr;     // 1 where a weight is known not to be 0
  std::int32_t* counts = nullptr;   // lost pairs of each member
  std::int32_t* fewer = nullptr;    // members with fewer lost pairs, as in `Tables::counts_at`
  std::int64_t bound = 0;           // upper bound of the values in the box
  std::int64_t* room = nullptr;     // of each demand: what its statistic must lose at least to miss its least value
  std::size_t list = 0;             // its list of open pairs
  std::int32_t* losable = nullptr;  // open pairs of each member
  std::size_t alive = 0;            // open pairs
  int updates = 0;                  // changes since the interval bounds were computed afresh
  // interval bounds of the list's pairs, and 1 for each pair that they do not decide
  double* upper = nullptr;
  double* lower = nullptr;
  std::uint8_t* open = nullptr;
};

class Workspace {
 public:
  explicit Workspace(const Space& space, std::size_t depth = 400);

  // Whether the memory suffices for a search of the space.
  bool fits(const Space& space) const {
    return columns_ == space.columns() && pairs_ >= space.pairs.size && conflicts_ >= space.conflicts.size &&
           unit_loss.size() == space.tables.members() && trial_fewer.size() >= space.tables.counts_size &&
           path.size() >= longest_path(space) && moved.size() >= moved_rows(space) * change.size() &&
           required.size() == space.tables.objectives();
  }
  std::size_t depth() const { return boxes.size(); }
  std::size_t columns() const { return columns_; }
  // Coordinates with the margin's, padded to a multiple of 8.
  std::size_t padded() const { return x.size(); }
  PairList& list_of(const Box& box) { return lists[box.list]; }
  // Whether the interval bounds of four boxes with this many pairs each fit above those of a box.
  bool room_above(const Box& box, std::size_t size) const {
    return index(box.upper - upper.data()) + 4 * size + 8 < upper.size();
  }

  static std::size_t longest_path(const Space& space) {
    const auto& most = space.tables.most;
    return index(most.empty() ? 0 : *std::max_element(most.begin(), most.end())) + 2;
  }

  // Whether probing may compute the losses of a level exactly.
  static bool shallow(const Space& space, std::size_t level) {
    return space.tables.counts_at[level] >= 0 && kShallow * index(space.tables.most[level]) <= space.pairs.size;
  }
  // Rows of `moved`: the counts from 0 to the largest of these levels.
  static std::size_t moved_rows(const Space& space) {
    std::int64_t most = -1;
    if (space.pairs.size < tuning::kExact) return 0;
    for (std::size_t level = 0; level < space.tables.levels(); ++level) {
      if (shallow(space, level)) most = std::max(most, space.tables.most[level]);
    }
    return index(most + 1);
  }

  std::vector<Box> boxes;
  std::vector<PairList> lists;

 private:
  std::size_t columns_, pairs_, conflicts_;
  // rows of the boxes
  Buffer<double> low_, high_, point_, moved_low_, moved_high_;
  Buffer<std::uint8_t> used_;
  Buffer<std::int32_t> counts_, fewer_, losable_;
  Buffer<std::int64_t> room_;

 public:
  // interval bounds of the boxes' pairs, one box after the other
  Buffer<double> upper, lower;
  Buffer<std::uint8_t> open;
  // the pairs of all lists, one list after the other
  Buffer<double> pair_columns, slack;
  Buffer<float> pair_single;
  Buffer<std::int32_t> member, run;
  // candidates for conflicts of all lists
  Buffer<float> conflict_columns, apart;
  Buffer<std::int32_t> one, other;
  // scratch, one entry per pair of the current list
  Buffer<double> scale;                       // pair losses, then slopes of the hinge bound
  Buffer<double> value;                       // -x.e, then the slopes that count
  Buffer<std::uint8_t> changed, changed_too;  // marks of pairs that a change decides, and those of the other half
  Buffer<std::int32_t> gather;                // places of the open pairs
  Buffer<std::int32_t> place;                 // place of each pair in the next list, -1 for none
  // scratch, one entry per candidate
  Buffer<std::int32_t> listed;  // candidates that are in conflict
  std::size_t conflicts_found = 0;
  std::vector<std::pair<double, double>> across;  // what conflicts of two objectives take of either
  Buffer<std::uint8_t> in_conflict;
  // scratch, one entry per member
  Buffer<double> unit_loss;                        // least loss of each lost pair
  Buffer<std::uint8_t> forced;                     // 1 where all open pairs have to be won
  Buffer<std::int64_t> budget;                     // the most that the member may lose
  Buffer<double> touched;                          // what conflicts took from its pairs
  Buffer<std::int64_t> path;                       // loss from no lost pair to m of them
  Buffer<double> inverse;                          // 1 / x
  Buffer<std::int32_t> reach;                      // largest count that the required loss affords, from each count
  Buffer<std::int32_t> trial_counts, trial_fewer;  // counts at a candidate
  Buffer<Move> moves;                              // of the coordinates
  // scratch, one entry per objective
  Buffer<std::int64_t> required;  // loss from which it closes a box
  Buffer<double> needed, packed;  // what is left of that besides conflicts, and what these lose
  Buffer<std::size_t> segment;    // where its pairs begin in the current list, and where the last ones end
  // vectors of coordinates, padded with zeros
  Buffer<double> x, g, mixed, least, largest, best, score;
  Buffer<float> middle, half_width;  // of each coordinate
  // scratch of probing
  Buffer<float> ceiling, ceiling_quarter;  // upper interval bounds, rounded up, and the same divided by 1.5
  Buffer<float> half;                      // half width of each coordinate
  Buffer<std::int64_t> loss;               // what each objective loses on each part: (objectives, 4, single_size)
  // members that come to each count less those that leave it, by part: (counts, 4, single_size); zeros between probes
  Buffer<std::int32_t> moved;
  Buffer<std::int32_t> change;  // the sum of the first rows of `moved`: (4, single_size)
};

}  // namespace ltr::weight_space
