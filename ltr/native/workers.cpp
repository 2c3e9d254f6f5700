// Short work is done by the threads of torch's own operations. They are awake: to start a thread, or to wake one that
// sleeps, takes as long as the loss of a batch of 10,000 items, and threads of our own would compete with torch's.
#include "workers.h"

#include <system_error>
#include <thread>
#include <vector>

#if !defined(_WIN32) && !defined(LTR_OWN_THREADS)
#include <dlfcn.h>
#include <unistd.h>
#define LTR_SHARES_THREADS
#endif

namespace ltr {
namespace {

#ifdef LTR_SHARES_THREADS

// How compilers start a parallel section of OpenMP: call a function, with data, on so many threads.
using Parallel = void (*)(void (*)(void*), void*, unsigned, unsigned);

const pid_t process = getpid();  // in which the module was loaded

// That of the library that torch has loaded; nullptr where torch uses another interface, and in a forked process, which
// has none of the threads that the library would wait for.
Parallel parallel_section() {
  static const auto found = reinterpret_cast<Parallel>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
  return getpid() == process ? found : nullptr;
}

bool share_with_torch(std::size_t others, const std::function<void()>& work) {
  const Parallel parallel = parallel_section();
  if (parallel == nullptr) return false;
  auto call = [&work] { work(); };
  parallel([](void* data) { (*static_cast<decltype(call)*>(data))(); }, &call, static_cast<unsigned>(others + 1), 0);
  return true;
}

#else

bool share_with_torch(std::size_t, const std::function<void()>&) { return false; }

#endif

}  // namespace

void share_work(std::size_t others, const std::function<void()>& work) {
  if (others == 0) return work();
  if (share_with_torch(others, work)) return;
  std::vector<std::thread> threads;
  try {
    while (threads.size() < others) threads.emplace_back(work);
  } catch (const std::system_error&) {  // no more threads to be had: those there are do the work
  }
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ltr
