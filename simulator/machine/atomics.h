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
  kNarrower = 4096,      ///< two bits: by how much the scope of a strong access is narrower than the device
  kLaterPart = 16384,    ///< of such a vector, behind the part that is checked and counted for all of it
};
inline constexpr int kNarrowerShift = 12;

/// Whom a strong access or a fence reaches; the system is the one device.
enum class Scope : std::uint8_t { kBlock, kCluster, kDevice };
inline constexpr int kScopes = 3;
/// Of Inst::aux of memory instructions.
constexpr Scope scope_of(std::uint16_t aux) {
  return static_cast<Scope>(kScopes - 1 - (aux >> kNarrowerShift & 3));
}
/// The bits of it.
constexpr std::uint16_t scope_bits(Scope scope) {
  return static_cast<std::uint16_t>((kScopes - 1 - static_cast<int>(scope)) << kNarrowerShift);
}

/// How an arrival at an mbarrier, or a wait there, orders what is around it.
struct SyncOrder {
  bool relaxed = false;
  Scope scope = Scope::kCluster;  ///< where none is named, too: CUTLASS' pipelines arrive so at other blocks
};

/// Inst::flags of fences, beside the Scope.
inline constexpr std::uint8_t kFenceScope = 3, kFenceAcquires = 4, kFenceReleases = 8;
/// Inst::flags of proxy fences: which memory's writes they make visible to bulk copies.
inline constexpr std::uint8_t kProxyShared = 1, kProxyOtherShared = 2, kProxyGlobal = 4, kProxyAll = 7;
inline constexpr int kProxyPlaces = 3;

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
