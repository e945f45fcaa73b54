// How much memory there is: commands ask before they allocate what they will need.
#pragma once

#include <cstdint>
#include <string_view>

namespace stitchwork {

/// Bytes this process may still allocate: what the machine has left, its control group's limit and its own
/// (`ulimit -v`), whichever is least. Pages of files that can be dropped count as left.
std::int64_t available_memory();

/// Throws Error "WHAT needs N, M available" with `hint` where `bytes` are more than there are.
void require_memory(double bytes, std::string_view what, std::string_view hint);

/// Makes operator new throw std::bad_alloc where memory ends; without it the allocator of the programs
/// (mimalloc, written in C) aborts. Once, at the start.
void throw_where_memory_ends();

}  // namespace stitchwork
