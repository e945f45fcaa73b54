// Slots of a block's registers that are filled before it runs: immediates, parameters, special registers.
#include <array>
#include <cstring>

#include "simulator/block.h"

namespace stitchwork::sim {
namespace {

template <class T>
void broadcast(std::byte* slot, T v) {
  std::array<T, kGangWarps * 32> lanes;
  lanes.fill(v);
  std::memcpy(slot, lanes.data(), sizeof lanes);
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

/// Everything that is the same for all blocks of the launch.
void Block::fill_slots() {
  using Kind = ptx::SlotInit::Kind;
  using S = ptx::Special;
  const Dim3& b = context_.launch->block;
  const Dim3& g = context_.launch->grid;
  const Dim3& c = context_.cluster;
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
        for (std::uint32_t e = 0; e < kGangWarps * 32; ++e) {
          const std::uint32_t t = static_cast<std::uint32_t>(gang) * kGangWarps * 32 + e, lane = e % 32;
          std::uint32_t v = 0;
          switch (static_cast<S>(init.index)) {
            case S::kTidX:
              v = t % b.x;
              break;
            case S::kTidY:
              v = t / b.x % b.y;
              break;
            case S::kTidZ:
              v = t / b.x / b.y;
              break;
            case S::kNtidX:
              v = b.x;
              break;
            case S::kNtidY:
              v = b.y;
              break;
            case S::kNtidZ:
              v = b.z;
              break;
            case S::kNctaidX:
              v = g.x;
              break;
            case S::kNctaidY:
              v = g.y;
              break;
            case S::kNctaidZ:
              v = g.z;
              break;
            case S::kLaneId:
              v = lane;
              break;
            case S::kWarpId:
              v = t / 32;
              break;
            case S::kNwarpId:
              v = (threads + 31) / 32;
              break;
            case S::kNsmId:
              v = static_cast<std::uint32_t>(context_.device->sms);
              break;
            case S::kLaneMaskEq:
              v = 1u << lane;
              break;
            case S::kLaneMaskLt:
              v = (1u << lane) - 1;
              break;
            case S::kLaneMaskLe:
              v = (2u << lane) - 1;
              break;
            case S::kLaneMaskGt:
              v = ~((2u << lane) - 1);
              break;
            case S::kLaneMaskGe:
              v = ~((1u << lane) - 1);
              break;
            case S::kDynamicSharedSize:
              v = context_.launch->dynamic_shared_bytes;
              break;
            case S::kTotalSharedSize:
              v = static_cast<std::uint32_t>(context_.shared_bytes);
              break;
            case S::kReservedSharedBegin:
            case S::kReservedShared0:
              v = static_cast<std::uint32_t>(context_.reserved_shared_offset);
              break;
            case S::kReservedShared1:
              v = static_cast<std::uint32_t>(context_.reserved_shared_offset + kReservedSharedBytes / 2);
              break;
            case S::kReservedSharedEnd:
              v = static_cast<std::uint32_t>(context_.reserved_shared_offset + kReservedSharedBytes);
              break;
            case S::kReservedSharedSize:
              v = kReservedSharedBytes;
              break;
            case S::kNclusterIdX:
              v = g.x / c.x;
              break;
            case S::kNclusterIdY:
              v = g.y / c.y;
              break;
            case S::kNclusterIdZ:
              v = g.z / c.z;
              break;
            case S::kClusterCtaidX:
              v = cluster_rank % c.x;
              break;
            case S::kClusterCtaidY:
              v = cluster_rank / c.x % c.y;
              break;
            case S::kClusterCtaidZ:
              v = cluster_rank / c.x / c.y;
              break;
            case S::kClusterNctaidX:
              v = c.x;
              break;
            case S::kClusterNctaidY:
              v = c.y;
              break;
            case S::kClusterNctaidZ:
              v = c.z;
              break;
            case S::kClusterCtarank:
              v = cluster_rank;
              break;
            case S::kClusterNctarank:
              v = static_cast<std::uint32_t>(c.count());
              break;
            case S::kGridWorkspaceHigh:
              v = static_cast<std::uint32_t>(context_.grid_workspace >> 32);
              break;
            case S::kGridWorkspaceLow:
              v = static_cast<std::uint32_t>(context_.grid_workspace);
              break;
            default:
              break;  // by block
          }
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
