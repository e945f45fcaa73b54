// Where an address leads, and the findings where it leads nowhere. All throw FindingError (block.h).
#pragma once

#include "simulator/machine/block_run.h"
#include "simulator/simulator.h"

namespace stitchwork::sim {

/// Whether a generic address is of a .const variable.
bool is_constant_memory(const Strand& s, std::uint64_t address);
/// The allocation that holds [address, address + bytes), or the finding that there is none (thrown).
void find_allocation(Strand& s, const Inst* i, AddressCache& cache, std::uint64_t address, unsigned bytes,
                     bool write, int warp, int lane);
[[noreturn]] void raise_misaligned(Strand& s, const Inst* i, std::uint64_t address, unsigned bytes, int warp,
                                   int lane);
[[noreturn]] void raise_window(Strand& s, const Inst* i, const char* space, std::uint64_t address,
                               unsigned bytes, std::uint64_t size, bool write, int warp, int lane);
[[noreturn]] void raise_finding(Strand& s, const Inst* i, FindingKind kind, const char* what, int warp,
                                int lane);
/// Lanes of a warp take more different ways than the simulator keeps: an Error, as the program may be right.
[[noreturn]] void raise_depth(const Strand& s, const Inst* i);
/// Lanes wait for others that will not come.
[[noreturn]] void raise_divergence(Strand& s, const WaitingLanes& waiting, const char* what,
                                   const char* where);

/// The byte of shared memory that a lane's access of `bytes` begins with, in the block that the address
/// names; or the finding that there is none.
std::byte* cluster_byte(Strand& s, const Inst* i, std::uint64_t address, unsigned bytes, bool write, int warp,
                        int lane);

}  // namespace stitchwork::sim
