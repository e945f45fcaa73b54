#include "core/base/interrupt.h"

#include <utility>

namespace stitchwork {
namespace {

thread_local const Interruptible::Poll* polled = nullptr;

}  // namespace

Interruptible::Interruptible(Poll poll) : poll_(std::move(poll)), outer_(polled) {
  polled = poll_ ? &poll_ : nullptr;
}

Interruptible::~Interruptible() { polled = outer_; }

Interruptible::Poll Interruptible::current() { return polled != nullptr ? *polled : Poll(); }

void interruption_point() {
  if (polled != nullptr) (*polled)();
}

}  // namespace stitchwork
