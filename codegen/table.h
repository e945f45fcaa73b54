// A kernel's table: read-only device memory with what is too much for its arguments, written once by whoever
// lays out the buffers. It holds the entries of loops that share a body, and all pointers where the kernel
// has more buffers than arguments (kMostPointerArguments, analysis/schedule/launch.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/kernel.h"

namespace stitchwork {

/// A member of the struct that describes an entry.
struct EntryField {
  enum class Kind : std::uint8_t {
    kPointer,       ///< to the buffer in place of own_buffers[index]
    kSharedOffset,  ///< likewise, bytes from the start of shared memory
    kRows,          ///< of the steps whose LoopTable::rows_field it is
    kTasks,
    kBlocks,
    kFirstBlock,
  } kind = Kind::kPointer;
  int index = 0;  ///< pointers, offsets: of own_buffers; rows: the first step that has them
  bool wide = false;
  std::int64_t offset = 0;  ///< in the entry
};

/// Where the table has the entries of one loop.
struct LoopTable {
  std::vector<EntryField> fields;  ///< by offset
  std::vector<int> rows_field;     ///< by step: the field of its rows, -1: all entries have whole tasks
  std::int64_t entry_bytes = 0;
  /// Bytes from the table's start: an int a block of the grid, its first entry (the number of entries where
  /// it has none); the entries.
  std::int64_t first_entries = 0, entries = 0;
  bool one_a_block = false;  ///< no block has several entries
};

struct KernelTable {
  /// The address to be written at byte `at`: `offset` bytes into an op's buffer, or into scratch.
  struct Pointer {
    std::int64_t at = 0;
    KernelArgument::Kind kind = KernelArgument::Kind::kInput;
    NodeId op = kNoNode;
    std::int64_t offset = 0;
  };
  std::vector<std::byte> bytes;  ///< zero where pointers go; empty: the kernel has no table
  std::vector<Pointer> pointers;
  std::vector<bool> holds;       ///< by Schedule::buffers: no argument
  std::vector<LoopTable> loops;  ///< of the loops with entries, in order
  /// Where not only entries' buffers are held: the start of the pointers, and by Schedule::buffers which one
  /// of them it is, -1: none.
  std::int64_t first_pointer = -1;
  std::vector<int> pointer_of;
};

KernelTable kernel_table(const Schedule& kernel);

/// What an entry has in a field that is no pointer.
std::int64_t field_value(const Schedule& kernel, const LoopEntry& entry, const EntryField& field);

/// Whether the last task of the loop, or of an entry of it, lacks rows of this step.
bool has_partial_task(const TaskLoop& loop, std::size_t step);

/// Buffers the loop's steps name and its entries do not replace; ascending.
std::vector<int> buffers_named(const TaskLoop& loop);

}  // namespace stitchwork
