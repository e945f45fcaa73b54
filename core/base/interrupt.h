// Ending long work from outside: loops that may take seconds call interruption_point(); whoever started the
// work on this thread may have asked to be called there.
#pragma once

#include <functional>

namespace stitchwork {

/// While it lives, interruption points of this thread, and of those that help it (core/base/parallel.h), call
/// `poll`, which ends the work by throwing. The innermost one counts. `poll` is called millions of times, by
/// several threads at once: it has to be cheap and safe for that.
class Interruptible {
 public:
  using Poll = std::function<void()>;
  explicit Interruptible(Poll poll);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// The innermost one of this thread; empty if nobody polls.
  static Poll current();

 private:
  Poll poll_;
  const Poll* outer_;
};

/// Work may end here: nothing shared may be half done. Costs a look at a thread's variable where nobody
/// polls.
void interruption_point();

}  // namespace stitchwork
