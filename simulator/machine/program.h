// A kernel lowered for execution: decoded instructions over slots of a gang's register file.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "occupancy_model/timing.h"
#include "simulator/machine/inst.h"
#include "simulator/ptx/syntax.h"

namespace stitchwork::ptx {

enum class Special : std::uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNwarpId,
  kSmId,
  kNsmId,
  kGridId,
  kLaneMaskEq,
  kLaneMaskLe,
  kLaneMaskLt,
  kLaneMaskGe,
  kLaneMaskGt,
  kDynamicSharedSize,
  kTotalSharedSize,
  kReservedSharedBegin,
  kReservedSharedEnd,
  kReservedSharedSize,
  kReservedShared0,
  kReservedShared1,
  kGridWorkspaceHigh,  ///< %envreg1, 2: where a cooperative launch keeps its grid barrier
  kGridWorkspaceLow,
  kClusterIdX,
  kClusterIdY,
  kClusterIdZ,
  kNclusterIdX,
  kNclusterIdY,
  kNclusterIdZ,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kClusterCtarank,
  kClusterNctarank,
  kIsExplicitCluster,  ///< a predicate
};

/// A slot filled before a block runs: the same in all lanes, or a special register.
struct SlotInit {
  /// kShared: an address of the block's shared memory.
  enum class Kind : std::uint8_t { kBits, kParameter, kSpecial, kVariable, kShared };
  Kind kind = Kind::kBits;
  RegisterClass cls = RegisterClass::k32;
  std::uint32_t offset = 0;  ///< in the register file
  /// The value; kParameter: offset in the parameter block; kVariable: addend; kShared: offset.
  std::uint64_t bits = 0;
  std::uint32_t bytes = 0;  ///< of a parameter
  std::uint32_t index = 0;  ///< Special, or index into ModuleImpl::globals
};

/// Static weights of a basic block, of the original PTX: instructions removed by lowering still count.
struct BlockWeights {
  std::uint32_t instructions = 0, ldst = 0;
  std::uint32_t async_copies = 0;                            ///< of ldst
  std::array<std::uint32_t, sim::kPipes> unguarded{};        ///< instructions without a guard, by sim::Pipe
  std::uint32_t issue = 0;                                   ///< IssueSlots::all
  std::array<std::uint32_t, sim::kPipes> issue_unguarded{};  ///< parts of unguarded instructions
  std::array<std::uint32_t, kTensorTypes> multiply_adds{};   ///< of matrix instructions, by TensorType
  int loads_in_flight = 0;                                   ///< KernelInfo::loads_in_flight, of this block
};

struct SourcePosition {
  int line = 0;
  int location = -1;
  int file = 0;  ///< index into ModuleImpl::files
};

/// What an instruction of the original PTX adds to BlockWeights.
struct LineWeights {
  SourcePosition at;
  std::uint32_t issue = 0, ldst = 0;
};

/// Of an instruction on bits, how it follows from those of the sources that are set which of the result are.
struct BitRule {
  enum class Kind : std::uint8_t {
    kNone,  ///< by TrackedInst::Rule: all or none
    kAnd,   ///< a zero that is set decides
    kOr,    ///< a one that is set decides
    kBoth,
    kLeft,
    kRight,
    kRightSigned,
    kInsert,
    kExtract,
    kExtractSigned,
    kCopy,
    kNot,
    kConvert,
    kConvertSigned,
  };
  Kind kind = Kind::kNone;
  std::uint8_t from = 0, to = 0;  ///< bits of the first source and of the result
};

/// An instruction that touches registers which some path reads before it sets them, or what is computed from
/// those. Compilers compute both sides of a choice, and keep in shared memory what a last tile does not have,
/// so only a use that shows is a mistake.
struct TrackedInst {
  /// When what it defines counts as set.
  enum class Rule : std::uint8_t {
    kAll,       ///< all sources are
    kAny,       ///< any is: halves and bytes of packed values are often left open
    kExchange,  ///< shuffles: that of the lane which is read is
    kChoice,    ///< selp: the predicate and the source it chooses are
    kAnd,       ///< and.pred, or.pred: all are, or one that decides alone
    kOr,
    kUse,  ///< sources have to be set: an address, a branch, what is stored to global memory
  };
  std::uint32_t inst = 0;           ///< Inst::id
  std::uint8_t uses = 0, defs = 0;  ///< by operand; uses of untracked registers are set
  Rule rule = Rule::kUse;
  BitRule bits;
  int registers[6] = {};  ///< by operand: index into Program::tracked_names
};

/// What an instruction does to the flow of control within its strand.
enum class Flow : std::uint8_t {
  kOn,       ///< nothing
  kEnter,    ///< begins a basic block
  kGuard,    ///< sets lanes aside, which
  kUnguard,  ///< come back here
  kResume,   ///< goes on with the top of the divergence stack
};

struct Program {
  KernelInfo info;
  std::vector<sim::Inst> code;
  std::vector<std::int32_t> block_start;  ///< basic block -> index of its enter instruction
  std::int32_t resume_inst = 0;           ///< instruction that continues with the top of the divergence stack
  std::vector<BlockWeights> weights;
  std::vector<std::vector<LineWeights>> lines;  ///< by basic block: its instructions
  std::vector<SourcePosition> positions;        ///< by Inst::id
  std::vector<std::uint16_t> rows;              ///< of the instruction table, by Inst::id
  std::vector<Flow> flow;                       ///< by Inst::id
  /// By Inst::id, of loads: elements of the vector up to the last that some instruction reads. Compilers
  /// widen loads to whole aligned vectors.
  std::vector<std::uint8_t> read_elements;
  std::vector<TrackedInst> tracked;
  std::vector<std::string> tracked_names;
  bool passes_unset = false;  ///< such registers may be stored to shared or local memory
  /// Instructions that touch registers which wgmma uses: A (uses) and D (defs) of wgmma itself.
  std::vector<TrackedInst> products;
  std::vector<std::string> product_names;
  std::vector<SlotInit> inits;
  std::uint32_t register_bytes = 0;  ///< of a gang
  std::uint32_t parameter_bytes = 0;
  std::int64_t dynamic_shared_offset = 0;  ///< where extern shared memory begins
  bool communicates = false;               ///< blocks wait for each other: polling loads in a loop
  bool has_global_atomics = false;
  bool uses_reserved_shared = false;  ///< asks where shared memory of system software is
  bool prints = false;                ///< calls vprintf: blocks run in order
};

struct ModuleImpl {
  /// Keys the module's variables in device memory: unique in the process but for modules that are linked.
  std::uint64_t id = 0;
  std::string file, version, target;
  std::vector<std::string> files;  ///< by SourcePosition::file
  std::vector<KernelInfo> kernels;
  std::vector<Program> programs;
  std::vector<Variable> globals;
  std::map<int, std::string> source_files;
  std::vector<Location> locations;
};

}  // namespace stitchwork::ptx
