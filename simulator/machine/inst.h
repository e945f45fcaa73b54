// Decoded instructions, and what lowering and their handlers agree on.
//
// A block's warps run in *gangs* of up to kGangWarps warps. A gang has one register file laid out
// [slot][warp][lane]; a *strand* is a run of warps of one gang that move together (the whole gang, or one
// warp once the warps of a gang have to wait for each other). A handler executes one instruction for all
// warps of a strand and returns the next instruction, or null when the strand stops (waits, yields,
// finishes).
#pragma once

#include <cstdint>

namespace stitchwork::sim {

inline constexpr int kGangWarps = 8;
inline constexpr std::uint32_t kSlot32Bytes = kGangWarps * 32 * 4;
inline constexpr std::uint32_t kSlot64Bytes = kGangWarps * 32 * 8;
inline constexpr std::uint32_t kSlotPredBytes = kGangWarps * 4;

/// The unit of an SM that an instruction runs on.
enum class Pipe : std::uint8_t {
  kOther,  ///< none of these: control flow, memory, copies
  kFp32,
  kMufu,  ///< approximate special functions
  kFp64,
  kHalf2,  ///< arithmetic of two packed f16 or bf16, or of one
  kInt32,
};
inline constexpr int kPipes = 6;

struct Strand;
struct Inst;
using Handler = const Inst* (*)(Strand&, const Inst*);

/// One decoded instruction. Operands are byte offsets into the gang's register file.
struct Inst {
  Handler fn[2];       ///< [0]: every lane of the strand active, [1]: masked
  std::uint32_t o[6];  ///< destination(s) first, then sources
  std::int64_t imm;    ///< address offset, branch target (basic block), barrier id ...
  std::uint32_t id;    ///< index of the source instruction (line tables, address caches)
  std::uint8_t count;  ///< vector elements of a memory access
  std::uint8_t flags;  ///< handler specific
  std::uint16_t aux;   ///< handler specific
};

/// Inst::flags of isspacep.const, beside windows.
inline constexpr std::uint8_t kConstantWanted = 4;
/// Inst::flags of @barrier.
inline constexpr std::uint8_t kBarrierArrives = 1, kBarrierNegated = 2, kBarrierAligned = 4;
/// Inst::flags of an access to shared memory, or 0: it finds out what a memo keeps, or uses that.
inline constexpr int kMemos = 4;
inline constexpr std::uint8_t kMemoLeads = 4, kMemoFollows = 8;  ///< | number of the memo
/// Inst::flags of cluster barriers.
inline constexpr std::uint8_t kClusterAligned = 1, kClusterRelaxed = 2;
/// Inst::flags of bulk copies (bulk_copy.h).
inline constexpr std::uint8_t kBulkRemote = 1;  ///< .shared::cluster
/// Inst::aux of @redux.
inline constexpr std::uint16_t kReduxSigned = 1, kReduxFloat = 2, kReduxAbs = 4, kReduxNan = 8;
/// Inst::aux: the address of shared memory, or of the mbarrier, has 32 bits.
inline constexpr std::uint16_t kBulkNarrowShared = 1, kBulkNarrowMbarrier = 2, kBulkNarrowSource = 4;
/// Inst::flags of st.async and red.async: bytes of an element, and whether another block's memory may be
/// named.
inline constexpr std::uint8_t kAsyncElementMask = 15, kAsyncRemote = 16;

/// Inst::flags of operations on mbarriers (mbarrier.h).
enum class MbarrierOp : std::uint8_t {
  kInit,
  kInval,
  kArrive,
  kArriveDrop,
  kExpectTx,
  kCompleteTx,
  kWait,  ///< test_wait, try_wait
};
/// Inst::aux of them, beside kAddress32.
enum MbarrierBits : std::uint16_t {
  kMbarrierGeneric = 2,  ///< a generic address
  kMbarrierRemote = 4,   ///< may be of another block of the cluster
  kMbarrierRelaxed = 8,
  kMbarrierNoComplete = 16,
  kMbarrierExpects = 64,       ///< arrive.expect_tx
  kMbarrierParity = 128,       ///< waits for a parity, not with a state
  kMbarrierNoIncrement = 256,  ///< cp.async.mbarrier.arrive.noinc
  kMbarrierOfBlock = 512,      ///< its order is of scope .cta, by name
};

}  // namespace stitchwork::sim
