// Ending long work from outside: loops that may take seconds call interruption_point(); whoever started the
// work on this thread may have asked to be called there.
#pragma once

#include <functional>

namespace stitchwork {

/// While it lives, interruption points of this thread call `poll`, which ends the work by throwing. The
/// innermost one counts. `poll` is called millions of times: it has to be cheap.
class Interruptible {
 public:
  explicit Interruptible(std::function<void()> poll);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  std::function<void()> poll_;
  const std::function<void()>* outer_;
};

/// Work may end here: nothing shared may be half done. Costs a look at a thread's variable where nobody
/// polls.
void interruption_point();

}  // namespace stitchwork
