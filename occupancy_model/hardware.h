// What all GPUs that CUDA runs on have in common, and what is assumed of a thread's registers before a
// compiler has assigned them. What differs from device to device is in device.h.
#pragma once

#include <cstdint>

namespace stitchwork {

/// Threads of a warp (CUDA C++ Programming Guide, "SIMT Architecture").
inline constexpr int kWarp = 32;
/// What global memory moves at once, from DRAM as from L2 (CUDA C++ Best Practices Guide, "Coalesced Access
/// to Global Memory": transactions of 32 bytes).
inline constexpr int kSectorBytes = 32;
/// What a thread loads or stores at a time, of shared memory at the most (PTX ISA, "Vectors": 128 bits); of
/// global memory the device says (Device::vector_bytes).
inline constexpr int kVectorBytes = 16;
inline constexpr int kRegisterBytes = 4;
/// Shared memory (CUDA C++ Programming Guide, "Compute Capabilities", shared memory): successive words are in
/// successive banks.
inline constexpr int kBanks = 32, kBankBytes = 4;

/// Where values begin in a block's shared memory: vectors, cp.async and cp.async.bulk ask for 16 bytes (PTX
/// ISA, "cp.async", "cp.async.bulk").
inline constexpr std::int64_t kSharedAlignment = 16;
/// And in device memory: as cudaMalloc aligns (CUDA C++ Programming Guide, "Device Memory Accesses").
inline constexpr std::int64_t kDeviceAlignment = 256;

/// Registers of a thread in a launch that is still to be bound: AStitch section 4.5, "a very small value",
/// what most memory-intensive kernels need.
inline constexpr int kAssumedRegisters = 32;
/// Of a launch that nothing bounds: as many as 1,024 threads an SM have of the 65,536 registers that SMs of
/// all architectures since sm_50 have.
inline constexpr int kUnboundRegisters = 64;

}  // namespace stitchwork
