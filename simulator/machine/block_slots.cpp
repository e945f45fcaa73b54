// Slots of a block's registers that are filled before it runs: immediates, parameters, special registers.
#include <array>
#include <cstring>
#include <optional>

#include "simulator/machine/block.h"

namespace stitchwork::sim {
namespace {

template <class T>
void broadcast(std::byte* slot, T v) {
  std::array<T, 64 / sizeof(T)> lanes;
  lanes.fill(v);
  for (std::size_t at = 0; at < kGangWarps * 32 * sizeof(T); at += sizeof lanes)
    std::memcpy(slot + at, lanes.data(), sizeof lanes);
}
void broadcast(std::byte* slot, ptx::RegisterClass cls, std::uint64_t bits) {
  if (cls == ptx::RegisterClass::k64) {
    broadcast(slot, bits);
  } else if (cls == ptx::RegisterClass::kPred) {
    const std::uint32_t v = bits ? ~0u : 0;
    for (int w = 0; w < kGangWarps; ++w) std::memcpy(slot + w * 4, &v, 4);
  } else {
    broadcast(slot, static_cast<std::uint32_t>(bits));
  }
}

}  // namespace

/// What a special register has in thread `t` of the block, in every block; nothing for those that differ
/// otherwise.
std::optional<std::uint32_t> Block::special_of_thread(ptx::Special which, std::uint32_t t) const {
  using S = ptx::Special;
  const Dim3& b = context_.launch->block;
  const std::uint32_t lane = t % 32;
  switch (which) {
    case S::kTidX:
      return t % b.x;
    case S::kTidY:
      return t / b.x % b.y;
    case S::kTidZ:
      return t / b.x / b.y;
    case S::kLaneId:
      return lane;
    case S::kWarpId:
      return t / 32;
    case S::kLaneMaskEq:
      return 1u << lane;
    case S::kLaneMaskLt:
      return (1u << lane) - 1;
    case S::kLaneMaskLe:
      return (2u << lane) - 1;
    case S::kLaneMaskGt:
      return ~((2u << lane) - 1);
    case S::kLaneMaskGe:
      return ~((1u << lane) - 1);
    default:
      return std::nullopt;
  }
}

/// What a special register has in all threads of all blocks at the block's place in its cluster; 0 for those
/// that blocks have of their own (`fill_block_slots`).
std::uint32_t Block::special_of_launch(ptx::Special which) const {
  using S = ptx::Special;
  const Dim3& b = context_.launch->block;
  const Dim3& g = context_.launch->grid;
  const Dim3& c = context_.cluster;
  switch (which) {
    case S::kNtidX:
      return b.x;
    case S::kNtidY:
      return b.y;
    case S::kNtidZ:
      return b.z;
    case S::kNctaidX:
      return g.x;
    case S::kNctaidY:
      return g.y;
    case S::kNctaidZ:
      return g.z;
    case S::kNwarpId:
      return (threads + 31) / 32;
    case S::kNsmId:
      return static_cast<std::uint32_t>(context_.device->sms);
    case S::kDynamicSharedSize:
      return context_.launch->dynamic_shared_bytes;
    case S::kTotalSharedSize:
      return static_cast<std::uint32_t>(context_.shared_bytes);
    case S::kReservedSharedBegin:
    case S::kReservedShared0:
      return static_cast<std::uint32_t>(context_.reserved_shared_offset);
    case S::kReservedShared1:
      return static_cast<std::uint32_t>(context_.reserved_shared_offset + kReservedSharedBytes / 2);
    case S::kReservedSharedEnd:
      return static_cast<std::uint32_t>(context_.reserved_shared_offset + kReservedSharedBytes);
    case S::kReservedSharedSize:
      return kReservedSharedBytes;
    case S::kNclusterIdX:
      return g.x / c.x;
    case S::kNclusterIdY:
      return g.y / c.y;
    case S::kNclusterIdZ:
      return g.z / c.z;
    case S::kClusterCtaidX:
      return cluster_rank % c.x;
    case S::kClusterCtaidY:
      return cluster_rank / c.x % c.y;
    case S::kClusterCtaidZ:
      return cluster_rank / c.x / c.y;
    case S::kClusterNctaidX:
      return c.x;
    case S::kClusterNctaidY:
      return c.y;
    case S::kClusterNctaidZ:
      return c.z;
    case S::kClusterCtarank:
      return cluster_rank;
    case S::kClusterNctarank:
      return static_cast<std::uint32_t>(c.count());
    case S::kGridWorkspaceHigh:
      return static_cast<std::uint32_t>(context_.grid_workspace >> 32);
    case S::kGridWorkspaceLow:
      return static_cast<std::uint32_t>(context_.grid_workspace);
    default:
      return 0;
  }
}

/// Everything that is the same for all blocks of the launch.
void Block::fill_slots() {
  using Kind = ptx::SlotInit::Kind;
  for (int gang = 0; gang < gangs_; ++gang) {
    std::byte* regs =
        registers_.get() + std::size_t{context_.program->register_bytes} * static_cast<std::size_t>(gang);
    for (const ptx::SlotInit& init : context_.program->inits) {
      std::byte* slot = regs + init.offset;
      if (init.kind == Kind::kBits) {
        broadcast(slot, init.cls, init.bits);
      } else if (init.kind == Kind::kParameter) {
        std::uint64_t v = 0;
        std::memcpy(&v, context_.parameters.data() + init.bits, init.bytes);
        broadcast(slot, init.cls, v);
      } else if (init.kind == Kind::kShared) {
        broadcast(slot, init.cls, init.bits + shared_base);
      } else if (init.kind == Kind::kSpecial && init.cls == ptx::RegisterClass::kPred) {
        broadcast(slot, init.cls, context_.explicit_cluster);  // the one special register that is a predicate
      } else if (init.kind == Kind::kVariable) {
        broadcast(slot, init.cls, context_.variable_addresses[init.index] + init.bits);
      } else {
        const auto which = static_cast<ptx::Special>(init.index);
        const std::uint32_t of_launch = special_of_launch(which);
        for (std::uint32_t e = 0; e < kGangWarps * 32; ++e) {
          const std::uint32_t t = static_cast<std::uint32_t>(gang) * kGangWarps * 32 + e;
          const std::uint32_t v = special_of_thread(which, t).value_or(of_launch);
          std::memcpy(slot + e * 4, &v, 4);
        }
      }
    }
  }
}

void Block::fill_block_slots() {
  using S = ptx::Special;
  const Dim3 at = block_coordinates(context_, index);
  for (const ptx::SlotInit& init : context_.program->inits) {
    if (init.kind != ptx::SlotInit::Kind::kSpecial) continue;
    std::uint32_t v;
    switch (static_cast<S>(init.index)) {
      case S::kCtaidX:
        v = at.x;
        break;
      case S::kCtaidY:
        v = at.y;
        break;
      case S::kCtaidZ:
        v = at.z;
        break;
      case S::kClusterIdX:
        v = at.x / context_.cluster.x;
        break;
      case S::kClusterIdY:
        v = at.y / context_.cluster.y;
        break;
      case S::kClusterIdZ:
        v = at.z / context_.cluster.z;
        break;
      case S::kSmId:
        v = static_cast<std::uint32_t>(index % static_cast<std::uint64_t>(context_.device->sms));
        break;
      default:
        continue;
    }
    for (int gang = 0; gang < gangs_; ++gang) {
      broadcast(registers_.get() +
                    std::size_t{context_.program->register_bytes} * static_cast<std::size_t>(gang) +
                    init.offset,
                v);
    }
  }
}

}  // namespace stitchwork::sim
