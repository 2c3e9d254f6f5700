// Work shared among threads.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ltr {

// Call `work` on this thread and on up to `others` more at a time, and return when all calls have ended. The calls
// divide the work, which is short, among themselves and do all of it, however many there are. They must not throw.
void share_work(std::size_t others, const std::function<void()>& work);

// Call `work` with the numbers from 0 to `threads` - 1, each in a thread of its own; throw what one of them throws.
template <typename Work>
void in_threads(int threads, const Work& work) {
  std::exception_ptr error;
  std::mutex lock;
  const auto guarded = [&](std::size_t thread) {
    try {
      work(thread);
    } catch (...) {
      const std::lock_guard guard(lock);
      error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(guarded, static_cast<std::size_t>(t));
    guarded(0);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace ltr
