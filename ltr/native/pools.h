// A bound of orders in which the rows of a block stay as they are; `supports.cpp` has the proof.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace ltr {

class BlockBound {
 public:
  // Begin anew with so many blocks.
  void clear(std::size_t blocks) {
    if (pools_.size() < blocks) pools_.resize(blocks);
    blocks_ = blocks;
    last_.assign(blocks, std::numeric_limits<double>::quiet_NaN());
    for (std::size_t b = 0; b < blocks; ++b) pools_[b].clear();
  }

  // Add a row at the end of a block; it is tied with the row before if the keys of both are equal.
  void add(std::size_t block, double gain, double key) {
    std::vector<Pool>& own = pools_[block];
    if (key == last_[block]) {
      own.back().gain += gain;
      own.back().rows += 1.0;
      return;
    }
    pool(own);  // the rows before are complete
    own.push_back({gain, 1.0});
    last_[block] = key;
  }

  // Return the largest value of any order, given the sums of the first so many rank weights.
  template <class Sum>
  Sum value(const Sum* sums) {
    all_.clear();
    for (std::size_t b = 0; b < blocks_; ++b) {
      pool(pools_[b]);
      all_.insert(all_.end(), pools_[b].begin(), pools_[b].end());
    }
    std::sort(all_.begin(), all_.end(), [](const Pool& a, const Pool& b) { return a.mean() > b.mean(); });
    Sum total = 0;
    std::size_t place = 0;
    for (const Pool& one : all_) {
      const std::size_t end = place + static_cast<std::size_t>(one.rows);
      total += one.gain * (sums[end] - sums[place]) / one.rows;
      place = end;
    }
    return total;
  }

 private:
  // Rows with their mean gain.
  struct Pool {
    double gain, rows;

    double mean() const { return gain / rows; }
  };

  // Pool the last rows of a block with those before as long as means rise.
  static void pool(std::vector<Pool>& block) {
    while (block.size() > 1 && block.back().mean() >= block[block.size() - 2].mean()) {
      const Pool lower = block.back();
      block.pop_back();
      block.back().gain += lower.gain;
      block.back().rows += lower.rows;
    }
  }

  std::size_t blocks_ = 0;
  std::vector<std::vector<Pool>> pools_;  // of each block, from the top
  std::vector<double> last_;              // key of the last row of each block
  std::vector<Pool> all_;
};

}  // namespace ltr
