// Short work shared among threads.
#pragma once

#include <cstddef>
#include <functional>

namespace ltr {

// Call `work` on this thread and on up to `others` more at a time, and return when all calls have ended. The calls
// divide the work among themselves and do all of it, however many there are. They must not throw.
void share_work(std::size_t others, const std::function<void()>& work);

}  // namespace ltr
