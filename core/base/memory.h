// How much memory there is: commands ask before they allocate what they will need. Where it ends all the
// same, operator new throws std::bad_alloc: the source has one of its own, since that of mimalloc, which is
// written in C, aborts.
#pragma once

#include <cstdint>
#include <string_view>

namespace stitchwork {

/// Bytes this process may still allocate: what the machine has left, its control group's limit and its own
/// (`ulimit -v`), whichever is least. Pages of files that can be dropped count as left.
std::int64_t available_memory();

/// Throws Error "WHAT: N of memory needed, M available" with `hint` where `bytes` are more than there are.
void require_memory(double bytes, std::string_view what, std::string_view hint);

}  // namespace stitchwork
