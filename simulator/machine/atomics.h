// Atomic read-modify-write on host memory, and the bits a memory instruction carries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stitchwork::sim {

/// Inst::aux of memory instructions.
enum AccessBits : std::uint16_t {
  kAddress32 = 1,     ///< the address register has 32 bits
  kWideRegister = 2,  ///< data registers have 64 bits
  kSigned = 4,
  kRegister16 = 8,  ///< data registers have 16 bits (kept zero-extended)
  kUncounted = 16,  ///< constant memory: checked, but no global traffic
  kPolls = 32,      ///< a load in a spin loop: the strand yields after it
  kNonCoherent = 64,
  kStrong = 128,  ///< atomic, volatile, relaxed, acquire or release: makes no race with another strong one
  kAcquire = 256,
  kRelease = 512,
  kPastL1 = 1024,        ///< a load that looks in L2 at once: .cg, .cv, volatile, relaxed, acquire
  kPartOfVector = 2048,  ///< a vector of more elements than one instruction moves
};

enum class AtomicOp : std::uint8_t {
  kAdd32,
  kAdd64,
  kAddF32,
  kAddF32Flush,  ///< kAddF32 in global memory: subnormal operands and sums become zero (PTX ISA, atom)
  kAddF64,
  kAddF16,
  kAddF16x2,
  kAddBF16,
  kAddBF16x2,
  kMinF16,
  kMinF16x2,
  kMinBF16,
  kMinBF16x2,
  kMaxF16,
  kMaxF16x2,
  kMaxBF16,
  kMaxBF16x2,
  kExch32,
  kExch64,
  kCas16,
  kCas32,
  kCas64,
  kMinU32,
  kMinS32,
  kMinU64,
  kMinS64,
  kMaxU32,
  kMaxS32,
  kMaxU64,
  kMaxS64,
  kAnd32,
  kAnd64,
  kOr32,
  kOr64,
  kXor32,
  kXor64,
  kInc32,
  kDec32,
};

/// atom.exch.b128 and atom.cas.b128.
inline constexpr std::uint8_t kWideAtomicBytes = 16;

struct AtomicForm {
  std::string_view name;  ///< "add.u32"
  AtomicOp op;
  int bytes;
};

/// By operation and type as PTX spells them; empty where there is no such form.
std::optional<AtomicForm> find_atomic(std::string_view operation, std::string_view type);

/// Performs `op` at `p` with operands x (and y for cas) and returns the old value.
std::uint64_t apply_atomic(AtomicOp op, std::byte* p, std::uint64_t x, std::uint64_t y, bool& changed);

}  // namespace stitchwork::sim
