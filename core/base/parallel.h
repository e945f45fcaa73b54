// Work on independent items, over the host's cores.
#pragma once

#include <cstddef>
#include <functional>

namespace stitchwork {

/// body(i) of every i below `count`; each core takes the next. Returns when all have ended. After a failure
/// no further item is begun, and the failure of the smallest item is thrown: the one that a loop would have
/// met first. Interruption points of the bodies are the caller's (core/base/interrupt.h). Called from a body,
/// it is a loop: the cores have their work.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace stitchwork
