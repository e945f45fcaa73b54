// Programs that show what an instruction does: each gives one opcode operands that bring out its modifiers,
// and stores what comes of it. The opcode's place is free, so that another spelling can be put there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/simulator.h"

namespace stitchwork::sim {

/// A module with a kernel k(in, out), where OPCODE stands for the instruction.
struct ModifierProgram {
  std::string text;
  Dim3 grid, block;
  bool accesses = false;  ///< what the memory system counts is looked at, too, and races are looked for
};

struct ModifierForm {
  std::string opcode;
  std::vector<ModifierProgram> programs;  ///< that take it
};

/// Rows of 80 bytes a thread: five operands of 8, 4 and 2 bytes of their own. Behind them elements of
/// matrices, of moderate size in every type, and accumulators.
std::vector<std::byte> modifier_inputs();
constexpr std::size_t kModifierOutputs = 32 * 8192;  ///< bytes

// By family. Together they hold every form of the instruction table, and of what is built from several rows.
std::vector<ModifierForm>
row_forms();  ///< of the instruction table; set, setp, carry chains, mixed precision
std::vector<ModifierForm> memory_forms();     ///< ld, st, atom, red, cp.async, fence, membar
std::vector<ModifierForm> warp_forms();       ///< exchanges and barriers
std::vector<ModifierForm> product_forms();    ///< mma
std::vector<ModifierForm> warpgroup_forms();  ///< wgmma.mma_async
std::vector<ModifierForm> matrix_moves();     ///< ldmatrix, stmatrix, movmatrix, wmma
std::vector<ModifierForm> async_forms();      ///< mbarriers, bulk copies, clusters; tensor copies apart

/// A kernel of such a body, which finds its row of `in` at %d30, of `out` (32 bytes) at %d31, its number in
/// %r31 and %tid.x in %r30.
ModifierProgram modifier_program(const std::string& body, std::uint32_t blocks, std::uint32_t threads,
                                 bool accesses, const std::string& target = "sm_90a");

}  // namespace stitchwork::sim
