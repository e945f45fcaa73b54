// The instruction table: one row a PTX form with its spelling, operand signature and handlers. Each file of
// the interpreter compiles the same rows for its own vector width; rows have the same index everywhere.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/machine/inst.h"

namespace stitchwork::sim {

struct IsaRow {
  /// PTX spelling with alternatives in braces, "add{.u32,.s32}"; internal rows begin with '@'.
  const char* spelling;
  /// One letter an operand, destination first: r/f 32-bit, d/e 64-bit, h/x 16-bit (x: f16), p predicate;
  /// f, e and x take floating-point immediates.
  const char* signature;
  Handler full, masked;
  Pipe pipe;  ///< what it counts as (Counters), and what of an SM it keeps busy
};

/// The table for the widest vectors this processor has.
std::span<const IsaRow> isa_rows();

/// The row of a PTX spelling or of an internal name ("@bra"), or -1.
int find_row(std::string_view spelling);

// One per instruction set; null where the build or the processor does not have it.
std::span<const IsaRow> isa_rows_base();
/// Rows that all tables end with, compiled once.
std::span<const IsaRow> isa_rows_any();
std::span<const IsaRow> isa_rows_avx2();
std::span<const IsaRow> isa_rows_avx512();
// Their rows of control flow and memory, in files of their own.
std::span<const IsaRow> isa_memory_rows_base();
std::span<const IsaRow> isa_memory_rows_avx2();
std::span<const IsaRow> isa_memory_rows_avx512();

/// "add{.u32,.s32}" -> add.u32, add.s32.
std::vector<std::string> expand_spelling(std::string_view pattern);

}  // namespace stitchwork::sim
