#include "core/interrupt.h"

#include <utility>

namespace stitchwork {
namespace {

thread_local const std::function<void()>* polled = nullptr;

}  // namespace

Interruptible::Interruptible(std::function<void()> poll) : poll_(std::move(poll)), outer_(polled) {
  polled = &poll_;
}

Interruptible::~Interruptible() { polled = outer_; }

void interruption_point() {
  if (polled != nullptr) (*polled)();
}

}  // namespace stitchwork
