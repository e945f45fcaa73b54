// How much memory there is: commands ask before they allocate what they will need. Where it ends all the
// same, operator new throws std::bad_alloc: the source has one of its own, since that of jemalloc, which is
// written in C, aborts.
#pragma once

#include <cstdint>
#include <string_view>

/// Whether AddressSanitizer is on, which GCC tells by a macro and clang by a feature.
#ifdef __SANITIZE_ADDRESS__
#define SW_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SW_ADDRESS_SANITIZER 1
#endif
#endif

namespace stitchwork {

/// Bytes this process may still allocate: what the machine has left, its control group's limit and its own
/// (`ulimit -v`), whichever is least. Pages of files that can be dropped count as left.
std::int64_t available_memory();

/// Throws Error "WHAT: N of memory needed, M available" with `hint` where `bytes` are more than there are.
void require_memory(double bytes, std::string_view what, std::string_view hint);

}  // namespace stitchwork
