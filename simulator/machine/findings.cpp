// Findings: what went wrong, where, with the arithmetic.
#include <bit>
#include <string>

#include "core/base/error.h"
#include "simulator/machine/cluster.h"

namespace stitchwork::sim {

std::string_view name(FindingKind kind) {
  switch (kind) {
    case FindingKind::kOutOfBounds:
      return "out-of-bounds";
    case FindingKind::kMisaligned:
      return "misaligned";
    case FindingKind::kNullPointer:
      return "null-pointer";
    case FindingKind::kDivergentBarrier:
      return "divergent-barrier";
    case FindingKind::kBarrierMismatch:
      return "barrier-mismatch";
    case FindingKind::kGridDeadlock:
      return "grid-deadlock";
    case FindingKind::kLivelock:
      return "livelock";
    case FindingKind::kTrap:
      return "trap";
    case FindingKind::kSharedRace:
      return "shared-race";
    case FindingKind::kGlobalRace:
      return "global-race";
    case FindingKind::kNonCoherentRead:
      return "non-coherent-read";
    case FindingKind::kUninitialisedRead:
      return "uninitialised-read";
    case FindingKind::kUnsetRegister:
      return "unset-register";
    case FindingKind::kBlockLifetime:
      return "block-lifetime";
    case FindingKind::kMbarrier:
      return "mbarrier";
    case FindingKind::kMembermask:
      return "membermask";
  }
  return "unknown";
}

Dim3 block_coordinates(const LaunchContext& context, std::uint64_t linear) {
  const Dim3& g = context.launch->grid;
  return {static_cast<std::uint32_t>(linear % g.x), static_cast<std::uint32_t>(linear / g.x % g.y),
          static_cast<std::uint32_t>(linear / g.x / g.y)};
}

const std::string& ptx_file(const LaunchContext& context, std::uint32_t inst) {
  return context.module->files[static_cast<std::size_t>(context.program->positions[inst].file)];
}

std::string cuda_location(const LaunchContext& context, std::uint32_t inst) {
  const ptx::SourcePosition& at = context.program->positions[inst];
  if (at.location < 0) return {};
  const ptx::Location& l = context.module->locations[static_cast<std::size_t>(at.location)];
  const auto file = context.module->source_files.find(l.file);
  return fmt::format("{}:{}", file == context.module->source_files.end() ? "?" : file->second, l.line);
}

Finding make_finding(const BlockRun& block, const Strand& s, const Inst* i, FindingKind kind,
                     std::string message, int warp, int lane) {
  const LaunchContext& context = *block.launch;
  Finding f;
  f.kind = kind;
  f.kernel = context.launch->kernel;
  f.ptx_line = context.program->positions[i->id].line;
  f.cuda_location = cuda_location(context, i->id);
  f.block = block_coordinates(context, block.index);
  const auto t = static_cast<std::uint32_t>((s.gang * kGangWarps + warp) * 32 + lane);
  const Dim3& b = context.launch->block;
  f.thread = {t % b.x, t / b.x % b.y, t / b.x / b.y};
  f.message = std::move(message);
  if (const std::string& file = ptx_file(context, i->id); file != context.module->file)
    f.message += fmt::format(" (in {})", file);
  return f;
}

namespace {
[[noreturn]] void raise(Strand& s, const Inst* i, FindingKind kind, std::string message, int warp, int lane) {
  throw FindingError{make_finding(*s.block, s, i, kind, std::move(message), warp, lane), s.block->index};
}
}  // namespace

bool is_constant_memory(const Strand& s, std::uint64_t address) {
  const Allocation* a = s.block->launch->memory->impl().find(address);
  return a != nullptr && a->constant;
}

void find_allocation(Strand& s, const Inst* i, AddressCache& cache, std::uint64_t address, unsigned bytes,
                     bool write, int warp, int lane) {
  const char* verb = write ? "writes" : "reads";
  DeviceMemory::Impl& memory = s.block->launch->memory->impl();
  const std::uint64_t offset = address & ((std::uint64_t{1} << kAllocationShift) - 1);
  if (address >> kAllocationShift == 0) {
    const bool null = address < 65536;
    raise(s, i, null ? FindingKind::kNullPointer : FindingKind::kOutOfBounds,
          fmt::format("{} {} bytes at {:#x}: {}", verb, bytes, address,
                      null ? "a null pointer plus an offset" : "nothing is allocated there"),
          warp, lane);
  }
  Allocation* a = memory.find(address);
  if (a == nullptr) {
    const std::uint64_t below = (address >> kAllocationShift) + 1;
    if (offset >> (kAllocationShift - 1)) {  // the upper half: somebody went below the start of the next one
      if (Allocation* next = memory.find(below << kAllocationShift)) {
        raise(s, i, FindingKind::kOutOfBounds,
              fmt::format("{} {} bytes at {}-{}, before its start", verb, bytes, next->name,
                          (below << kAllocationShift) - address),
              warp, lane);
      }
    }
    raise(s, i, FindingKind::kOutOfBounds,
          fmt::format("{} {} bytes at {:#x}: nothing is allocated there", verb, bytes, address), warp, lane);
  }
  if (offset + bytes > a->bytes.size()) {
    if (offset >> (kAllocationShift - 1)) {
      if (Allocation* next = memory.find(((address >> kAllocationShift) + 1) << kAllocationShift)) {
        raise(s, i, FindingKind::kOutOfBounds,
              fmt::format("{} {} bytes at {}-{}, before its start", verb, bytes, next->name,
                          (((address >> kAllocationShift) + 1) << kAllocationShift) - address),
              warp, lane);
      }
    }
    raise(
        s, i, FindingKind::kOutOfBounds,
        fmt::format("{} {} bytes at {}+{}, past its {} bytes", verb, bytes, a->name, offset, a->bytes.size()),
        warp, lane);
  }
  cache.lo = address - offset;
  cache.hi = cache.lo + a->bytes.size();
  cache.host = a->bytes.data();
}

void raise_misaligned(Strand& s, const Inst* i, std::uint64_t address, unsigned bytes, int warp, int lane) {
  raise(s, i, FindingKind::kMisaligned,
        fmt::format("address {:#x} of an access of {} bytes is no multiple of {}", address, bytes, bytes),
        warp, lane);
}

void raise_window(Strand& s, const Inst* i, const char* space, std::uint64_t address, unsigned bytes,
                  std::uint64_t size, bool write, int warp, int lane) {
  const std::uint64_t rank =
      ((address + s.block->shared_base) & ((std::uint64_t{1} << kAllocationShift) - 1)) >> kClusterRankShift;
  if (s.block->cluster != nullptr && std::string_view(space) == "shared" && rank != s.block->cluster_rank &&
      rank < s.block->cluster->blocks.size()) {
    raise(s, i, FindingKind::kOutOfBounds,
          fmt::format(
              "{} {} bytes of shared memory of block rank {} where only that of the block itself may be "
              "(.shared::cta)",
              write ? "writes" : "reads", bytes, rank),
          warp, lane);
  }
  raise(s, i, FindingKind::kOutOfBounds,
        fmt::format("{} {} bytes at {} memory offset {}, past the {} bytes this {} has",
                    write ? "writes" : "reads", bytes, space, address, size,
                    std::string_view(space) == "local" ? "thread" : "block"),
        warp, lane);
}

void raise_finding(Strand& s, const Inst* i, FindingKind kind, const char* what, int warp, int lane) {
  std::string message = what;
  if (kind == FindingKind::kLivelock) {
    message = fmt::format("the block ran {} warp instructions without finishing",
                          s.block->launch->max_warp_instructions);
  } else if (kind == FindingKind::kDivergentBarrier) {
    const auto active = __builtin_popcount(s.mask[warp]), alive = __builtin_popcount(s.alive[warp]);
    message = fmt::format("{} reached by {} of the {} running threads of warp {}; this thread is elsewhere",
                          what, active, alive, s.gang * kGangWarps + warp);
  }
  raise(s, i, kind, std::move(message), warp, lane);
}

void raise_depth(const Strand& s, const Inst* i) {
  const LaunchContext& context = *s.block->launch;
  throw Error(
      ptx_file(context, i->id), context.program->positions[i->id].line, 0,
      fmt::format("lanes of a warp part more than {} times without meeting again, which is more than the "
                  "simulator keeps",
                  kMaxDepth),
      "have them meet between branches");
}

void raise_base_offset(const Strand& s, const Inst* i) {
  const LaunchContext& context = *s.block->launch;
  throw Error(
      ptx_file(context, i->id), context.program->positions[i->id].line, 0,
      "matrix descriptors with a base offset are not simulated",
      "align matrices in shared memory to the repeating pattern of their swizzle (256, 512 or 1024 bytes)");
}

void raise_divergence(Strand& s, const WaitingLanes& waiting, const char* what, const char* where) {
  const int w = s.first_warp;
  const std::uint32_t missing = waiting.wanted & ~waiting.lanes;
  raise(s, waiting.at, FindingKind::kDivergentBarrier,
        fmt::format(
            "{} reached by {} of the {} running threads of warp {}{}; this thread {}", what,
            __builtin_popcount(waiting.lanes), __builtin_popcount(waiting.wanted), s.gang * kGangWarps + w,
            waiting.named == ~0u ? "" : fmt::format(" that its mask {:#010x} names", waiting.named), where),
        w, missing != 0 ? __builtin_ctz(missing) : 0);
}

void Block::report_mbarrier_wait() {
  // Whoever polls memory may be what the others wait for.
  for (const Strand& s : strands)
    if (s.state == StrandState::kYielded && s.awaited == 0) return;
  for (Strand& s : strands) {
    if (s.state != StrandState::kYielded && s.state != StrandState::kRunnable) continue;
    const Mbarrier* m = s.awaited == 0 ? nullptr : mbarriers_.find(s.awaited - 1);
    if (m == nullptr) continue;
    int warp = s.first_warp;
    while (warp + 1 < s.last_warp && s.mask[warp] == 0) ++warp;
    raise(s, s.resume - 1, FindingKind::kBarrierMismatch,
          fmt::format("waits for the mbarrier at shared memory offset {}, phase {} of which {}: nothing that "
                      "runs will bring them",
                      m->offset, m->phase, m->wants()),
          warp, s.mask[warp] ? __builtin_ctz(s.mask[warp]) : 0);
  }
}

void Block::raise_waiting(FindingKind kind, std::string message) {
  for (Strand& s : strands) {
    if (s.state == StrandState::kDone) continue;
    int warp = s.first_warp;
    while (warp + 1 < s.last_warp && s.alive[warp] == 0) ++warp;
    const Inst* at = s.resume;
    if (s.state == StrandState::kBarrier) {
      std::uint64_t waiting = 0;
      for (const Strand& t : strands) {
        for (int w = t.first_warp; w < t.last_warp; ++w) {
          if (t.state == StrandState::kBarrier && t.barrier_id == s.barrier_id) {
            waiting += static_cast<std::uint64_t>(__builtin_popcount(t.alive[w]));
          }
        }
      }
      if (kind == FindingKind::kBarrierMismatch) {
        message = fmt::format(
            "barrier {} wants {} threads; {} wait there and the other {} running threads wait "
            "elsewhere or have ended",
            s.barrier_id, s.barrier_threads ? s.barrier_threads : alive_threads, waiting,
            alive_threads - waiting);
      }
      --at;  // the barrier itself
    } else if (at != &context_.program->code[static_cast<std::size_t>(context_.program->resume_inst)]) {
      --at;  // the load that polls
    }
    const int held = __builtin_popcount(s.alive[warp] & ~s.mask[warp]);
    if (kind == FindingKind::kLivelock && held > 0 && s.mask[warp] != 0 && context_.device->cc_major < 7)
      message += fmt::format(
          "; {} other threads of its warp are held back: before sm_70 the sides of a branch run one after "
          "the "
          "other, so a lock between lanes of one warp does not open",
          held);
    raise(s, at, kind, std::move(message), warp, s.alive[warp] ? __builtin_ctz(s.alive[warp]) : 0);
  }
  SW_CHECK(false, "no strand waits");
}

std::byte* cluster_byte(Strand& s, const Inst* i, std::uint64_t address, unsigned bytes, bool write, int w,
                        int l) {
  constexpr std::uint64_t kRankOffsetMask = (std::uint64_t{1} << kClusterRankShift) - 1;
  BlockRun& b = *s.block;
  if ((address & (std::bit_ceil(bytes) - 1)) != 0) raise_misaligned(s, i, address, bytes, w, l);
  const std::uint64_t rank = address >> kClusterRankShift, offset = address & kRankOffsetMask;
  const std::uint64_t blocks = b.cluster == nullptr ? 1 : b.cluster->blocks.size();
  if (rank >= blocks)
    raise_finding(s, i, FindingKind::kOutOfBounds,
                  fmt::format("{} {} bytes of shared memory of block rank {}, of a cluster of {}",
                              write ? "writes" : "reads", bytes, rank, blocks)
                      .c_str(),
                  w, l);
  BlockRun& owner = b.cluster == nullptr ? b : block_of_rank(b, rank);
  if (offset + bytes > owner.shared_bytes)
    raise_window(s, i, "shared", offset, bytes, owner.shared_bytes, write, w, l);
  if (owner.alive_threads == 0)
    raise_finding(s, i, FindingKind::kBlockLifetime,
                  fmt::format("{} {} bytes of shared memory of block rank {} of the cluster, which has ended",
                              write ? "writes" : "reads", bytes, rank)
                      .c_str(),
                  w, l);
  return owner.shared + offset;
}

}  // namespace stitchwork::sim
