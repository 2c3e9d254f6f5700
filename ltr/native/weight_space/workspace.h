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
  std::size_t conflicts_end = 0;  // candidates of this list and those below it
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

// The sizes of a space that decide how much memory a search takes.
struct Sizes {
  std::size_t columns, pairs, conflicts, members, counts, objectives, single;
  std::size_t longest_path;  // largest count of a member, and 2 more
  std::size_t moved_rows;    // counts from 0 to the largest of the levels whose losses probing may compute exactly

  explicit Sizes(const Space& space)
      : columns(space.columns()),
        pairs(space.pairs.size),
        conflicts(space.conflicts.size),
        members(space.tables.members()),
        counts(space.tables.counts_size),
        objectives(space.tables.objectives()),
        single(space.single_size()) {
    std::int64_t most = 0, most_moved = -1;
    for (std::size_t level = 0; level < space.tables.levels(); ++level) {
      const std::int64_t own = space.tables.most[level];
      most = std::max(most, own);
      if (pairs >= tuning::kExact && shallow(space, level)) most_moved = std::max(most_moved, own);
    }
    longest_path = index(most) + 2;
    moved_rows = index(most_moved + 1);
  }

  // Whether probing may compute the losses of a level exactly.
  static bool shallow(const Space& space, std::size_t level) {
    return space.tables.counts_at[level] >= 0 && kShallow * index(space.tables.most[level]) <= space.pairs.size;
  }

  // Whether memory of these sizes suffices for a search of another space.
  bool suffice(const Sizes& other) const {
    return columns == other.columns && pairs >= other.pairs && conflicts >= other.conflicts &&
           members == other.members && counts >= other.counts && objectives == other.objectives &&
           longest_path >= other.longest_path && moved_rows >= other.moved_rows;
  }
};

class Workspace {
 public:
  explicit Workspace(const Space& space) : sizes_(space) {
    for (std::size_t t = 0; t < kDepth; ++t) {
      Box& box = boxes[t];
      box.low = low_.data() + t * padded();
      box.high = high_.data() + t * padded();
      box.point = point_.data() + t * padded();
      box.moved_low = moved_low_.data() + t * padded();
      box.moved_high = moved_high_.data() + t * padded();
      box.used = used_.data() + t * columns();
      box.counts = counts_.data() + t * sizes_.members;
      box.fewer = fewer_.data() + t * sizes_.counts;
      box.losable = losable_.data() + t * sizes_.members;
      box.room = room_.data() + t * (sizes_.objectives - 1);
    }
    for (const Buffer<double>* vectors : {&low_, &high_, &point_, &x, &g, &mixed, &best}) vectors->fill(0.0);
    for (std::size_t x = 1; x < path.size(); ++x) inverse[x] = 1.0 / static_cast<double>(x);
    in_conflict.fill(0);
    half.fill(0.0f);
    moved.fill(0);
  }

  // Whether the memory suffices for a search of the space.
  bool fits(const Space& space) const { return sizes_.suffice(Sizes(space)); }
  std::size_t columns() const { return sizes_.columns; }
  // Coordinates with the margin's, padded to a multiple of 8.
  std::size_t padded() const { return (sizes_.columns + 7) / 8 * 8; }
  PairList& list_of(const Box& box) { return lists[box.list]; }
  // Whether the interval bounds of four boxes with this many pairs each fit above those of a box.
  bool room_above(const Box& box, std::size_t size) const {
    return index(box.upper - upper.data()) + 4 * size + 8 < upper.size();
  }

  static constexpr std::size_t kDepth = 400;  // most boxes on the stack

 private:
  const Sizes sizes_;  // these first: all other sizes follow from them
  const std::size_t copied_ = 5 * sizes_.pairs + 1024, linked_ = 5 * sizes_.conflicts + 1024;  // entries of all lists
  const std::size_t scratch_ = 8 * (sizes_.pairs / 8 + 3);
  // rows of the boxes
  Buffer<double> low_{kDepth * padded()}, high_{kDepth * padded()}, point_{kDepth * padded()};
  Buffer<double> moved_low_{kDepth * padded()}, moved_high_{kDepth * padded()};
  Buffer<std::uint8_t> used_{kDepth * columns()};
  Buffer<std::int32_t> counts_{kDepth * sizes_.members}, fewer_{kDepth * sizes_.counts};
  Buffer<std::int32_t> losable_{kDepth * sizes_.members};
  Buffer<std::int64_t> room_{kDepth * (sizes_.objectives - 1)};

 public:
  std::vector<Box> boxes{kDepth};
  std::vector<PairList> lists{kDepth};
  // interval bounds of the boxes' pairs, one box after the other
  Buffer<double> upper{12 * sizes_.pairs + 100'000}, lower{upper.size()};
  Buffer<std::uint8_t> open{upper.size()};
  // the pairs of all lists, one list after the other
  Buffer<double> pair_columns{copied_ * columns()}, slack{copied_};
  Buffer<float> pair_single{copied_ * sizes_.single};
  Buffer<std::int32_t> member{copied_}, run{copied_ + kDepth};
  // candidates for conflicts of all lists
  Buffer<float> conflict_columns{linked_ * columns()}, apart{linked_};
  Buffer<std::int32_t> one{linked_}, other{linked_};
  // scratch, one entry per pair of the current list
  Buffer<double> scale{scratch_};                                 // pair losses, then slopes of the hinge bound
  Buffer<double> value{scratch_};                                 // -x.e, then the slopes that count
  Buffer<std::uint8_t> changed{scratch_}, changed_too{scratch_};  // pairs that a change decides, of either half
  Buffer<std::int32_t> gather{scratch_};                          // places of the open pairs
  Buffer<std::int32_t> place{scratch_};                           // place of each pair in the next list, -1 for none
  // scratch, one entry per candidate
  Buffer<std::int32_t> listed{sizes_.conflicts + 16};  // candidates that are in conflict
  Buffer<std::uint8_t> in_conflict{8 * (sizes_.conflicts / 8 + 3)};
  // scratch, one entry per member
  Buffer<double> unit_loss{sizes_.members};           // least loss of each lost pair
  Buffer<std::uint8_t> forced{sizes_.members};        // 1 where all open pairs have to be won
  Buffer<std::int64_t> budget{sizes_.members};        // the most that the member may lose
  Buffer<double> touched{sizes_.members};             // what conflicts took from its pairs
  Buffer<std::int64_t> path{sizes_.longest_path};     // loss from no lost pair to m of them
  Buffer<double> inverse{sizes_.longest_path};        // 1 / x
  Buffer<std::int32_t> reach{sizes_.longest_path};    // largest count that the required loss affords, from each count
  Buffer<std::int32_t> trial_counts{sizes_.members};  // counts at a candidate
  Buffer<std::int32_t> trial_fewer{sizes_.counts};
  Buffer<Move> moves{columns()};  // of the coordinates
  // scratch, one entry per objective
  Buffer<std::int64_t> required{sizes_.objectives};    // loss from which it closes a box
  Buffer<double> needed{sizes_.objectives};            // what is left of that besides conflicts
  Buffer<double> packed{sizes_.objectives};            // what these lose
  Buffer<std::size_t> segment{sizes_.objectives + 1};  // where its pairs begin in the current list, and their end
  // vectors of coordinates, padded with zeros
  Buffer<double> x{padded()}, g{padded()}, mixed{padded()}, best{padded()};
  Buffer<double> least{columns()}, largest{columns()}, score{columns()};
  Buffer<float> middle{columns()}, half_width{columns()};  // of each coordinate
  // scratch of probing
  Buffer<float> ceiling{scratch_}, ceiling_quarter{scratch_};  // upper bounds, rounded up, and the same divided by 1.5
  Buffer<float> half{sizes_.single};                           // half width of each coordinate
  Buffer<std::int64_t> loss{sizes_.objectives * 4 * sizes_.single};  // of each objective on each part
  // members that come to each count less those that leave it, by part: (counts, 4, single); zeros between probes
  Buffer<std::int32_t> moved{sizes_.moved_rows * 4 * sizes_.single};
  Buffer<std::int32_t> change{4 * sizes_.single};  // the sum of the first rows of `moved`
};

}  // namespace ltr::weight_space
