// Machine instructions that a PTX instruction becomes: what the timing model's issue part counts. PTX is not
// what the hardware executes: a division is eleven instructions, a move none.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "simulator/isa/isa.h"

namespace stitchwork::sim {

/// Issue slots of one PTX instruction, and those among them for units of an SM.
struct IssueSlots {
  std::uint16_t all = 1, fp32 = 0, special = 0, fp64 = 0;
  std::uint16_t half2 = 0, int32 = 0;  ///< of forms of these pipes, all that no other unit takes
};

struct IssueRow {
  const char* spelling;  ///< of IsaRow, with alternatives in braces
  IssueSlots slots;
};

/// Forms that take more or fewer slots than one; all others take one, of the unit of their class.
std::span<const IssueRow> issue_rows();

/// Slots of an instruction with this opcode, of a form of the pipe.
IssueSlots issue_slots(std::string_view opcode, Pipe pipe);

}  // namespace stitchwork::sim
