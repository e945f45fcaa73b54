// Thread block clusters: barriers, and addresses of shared memory of other blocks.
#include "core/base/error.h"
#include "simulator/lower/lower.h"

namespace stitchwork::ptx {

/// barrier.cluster.arrive{.release,.relaxed}{.aligned} and .wait{.acquire}{.aligned}.
void Lowering::lower_cluster_barrier(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (!s.operands.empty()) fail(fmt::format("{} takes no operands", s.opcode));
  const std::string_view what = op.modifiers.size() > 1 ? op.modifiers[1] : std::string_view{};
  const bool wait = what == "wait";
  if (op.modifiers[0] != "cluster" || (!wait && what != "arrive")) unknown();
  std::uint8_t flags = 0;
  for (std::size_t k = 2; k < op.modifiers.size(); ++k) {
    const std::string_view m = op.modifiers[k];
    if (m == "aligned")
      flags |= sim::kClusterAligned;
    else if (!wait && m == "relaxed")
      flags |= sim::kClusterRelaxed;
    else if (m != (wait ? "acquire" : "release"))
      unknown();
  }
  emit(wait ? "@cluster.wait" : "@cluster.arrive").flags = flags;
  program_.info.uses_clusters = true;
}

/// mapa, getctarank: from an address of shared memory, generic or in its window.
bool Lowering::lower_cluster_address(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const bool map = op.base == "mapa";
  if (!map && op.base != "getctarank") return false;
  const bool window = op.modifiers.size() == 2 && op.modifiers[0] == "shared::cluster";
  const bool wide = op.last() == "u64";
  if ((!window && op.modifiers.size() != 1) || (!wide && op.last() != "u32")) unknown();
  if (s.operands.size() != (map ? 3u : 2u)) fail(fmt::format("{} takes {} operands", s.opcode, map ? 3 : 2));
  const std::uint32_t a = source(s.operands[1], wide ? 'd' : 'r');
  const std::uint32_t rank = map ? source(s.operands[2], 'r') : kNone;
  const std::uint32_t d = destination(s.operands[0], map && wide ? 'd' : 'r');
  IrInst& i = emit(fmt::format("@{}.{}", op.base, wide ? 64 : 32), 1, map ? 0b110 : 0b10);
  i.o[0] = d;
  i.o[1] = a;
  i.o[2] = rank;
  i.flags = wide && !window;  // a generic address of 32 bits there is not: it is one of the window
  program_.info.uses_clusters = true;
  return true;
}

}  // namespace stitchwork::ptx
