// Rows that follow each other in the order of a block, pooled as in isotonic regression; `supports.cpp` has the proof.
#pragma once

#include <vector>

namespace ltr {

// Rows with their mean gain.
struct Pool {
  double gain;
  double rows;

  double mean() const { return gain / rows; }
};

// Pool the last rows of a block with those before as long as means rise.
inline void pool(std::vector<Pool>& block) {
  while (block.size() > 1 && block.back().mean() >= block[block.size() - 2].mean()) {
    const Pool lower = block.back();
    block.pop_back();
    block.back().gain += lower.gain;
    block.back().rows += lower.rows;
  }
}

}  // namespace ltr
