// The form between syntax and decoded instructions: operands are values, not yet slots.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/isa/isa.h"
#include "simulator/machine/program.h"

namespace stitchwork::ptx {

inline constexpr std::uint32_t kNone = ~0u;

/// A register, or something every block knows before it starts.
struct Value {
  enum class Kind : std::uint8_t { kRegister, kBits, kParameter, kSpecial, kVariable, kShared };
  Kind kind = Kind::kRegister;
  RegisterClass cls = RegisterClass::k32;
  std::uint64_t bits = 0;
  std::uint32_t bytes = 0, index = 0;
  auto operator<=>(const Value&) const = default;
};

/// An instruction; `o` holds value numbers where `defs` or `uses` has the bit, else raw data.
struct IrInst {
  std::uint16_t row = 0;
  std::uint8_t defs = 0, uses = 0;
  std::uint32_t o[6] = {kNone, kNone, kNone, kNone, kNone, kNone};
  std::int64_t imm = 0;
  std::uint32_t statement = 0;
  std::uint8_t count = 0, flags = 0;
  std::uint16_t aux = 0;
  bool pure = false;     ///< may go if its result is unused
  bool copy = false;     ///< o[0] = o[1]
  bool guarded = false;  ///< runs under a guard: its write is partial
  bool polls = false;    ///< a load that may wait for another block
};

struct IrBlock {
  std::vector<IrInst> insts;
  std::vector<int> successors;
  BlockWeights weights;
  std::vector<LineWeights> lines;
};

struct IrFunction {
  std::vector<Value> values;
  std::vector<IrBlock> blocks;
};

/// Immediate post-dominator of every block, -1 where only the end of the kernel is.
std::vector<int> immediate_postdominators(const std::vector<IrBlock>& blocks);
/// Immediate dominator of every block (block 0 is the entry); -1 for the entry and unreachable blocks.
std::vector<int> immediate_dominators(const std::vector<IrBlock>& blocks);
/// True for blocks that lie on a cycle.
std::vector<bool> blocks_in_loops(const std::vector<IrBlock>& blocks);

/// By block that loads from global memory: the most 128-byte requests of a warp that machine code has in
/// flight at once there. Those are what the PTX asks for before a result is needed, or what ptxas issues
/// together of loads that do not hang on each other, whatever stands between them in the PTX, short branches
/// included.
std::vector<int> loads_in_flight(const std::vector<IrBlock>& blocks);

/// Replaces uses of copies by their source and drops what becomes dead.
void propagate_copies(IrFunction& f);

/// How unset values pass through an instruction, and unset bits.
TrackedInst::Rule unset_rule(const IrInst& i);
BitRule bit_rule(const IrInst& i);
/// To the values that are live where the kernel begins, adds all others that may be unset (SlotAssignment).
/// Returns whether some are stored to shared or local memory.
bool find_unset(const IrFunction& f, std::vector<bool>& unset);

/// Slots of the register file, by liveness: byte offset of each value.
struct SlotAssignment {
  std::vector<std::uint32_t> offset;  ///< by value
  std::uint32_t register_bytes = 0;
  int pressure = 0;  ///< most 32-bit registers live at once
  /// Values that some path from the start reads before it sets them, elements of vectors that are loaded with
  /// others and may not be used, words of bit fields, and what is computed from all these. Where such values
  /// are stored to shared or local memory, what is loaded from there as well.
  std::vector<bool> unset;
  bool passes_unset = false;  ///< Program::passes_unset
};
SlotAssignment assign_slots(const IrFunction& f);

}  // namespace stitchwork::ptx
