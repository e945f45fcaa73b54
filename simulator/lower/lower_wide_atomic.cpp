// Atomics of 128 bits.
#include <array>

#include "core/base/error.h"
#include "simulator/lower/lower.h"
#include "simulator/machine/atomics.h"

namespace stitchwork::ptx {
namespace {

/// PTX ISA, atom: they need it.
constexpr int kWideAtomicSm = 90;

}  // namespace

/// atom.exch.b128 and atom.cas.b128. A 128-bit register is two of 64 bits.
void Lowering::lower_wide_atomic(const Opcode& op, std::uint16_t order) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const bool compares = op.has("cas"), hint = op.has("L2::cache_hint");
  if (op.base != "atom" || (!compares && !op.has("exch"))) unknown();
  require_sm(kWideAtomicSm, "atomics of 128 bits");
  const std::size_t operands = compares ? 4 : 3;
  if (s.operands.size() != operands + (hint ? 1 : 0))
    fail(fmt::format("{} takes {} operands", s.opcode, operands));
  if (s.operands[1].kind != Operand::Kind::kAddress) fail("expected an address in brackets");
  const auto halves = [&](const Operand& o) {
    if (o.kind != Operand::Kind::kRegister || !o.wide) fail("expected a register of type .b128");
    const auto low = static_cast<std::uint32_t>(o.reg);
    return std::array{low, low + 1};
  };
  const auto x = halves(s.operands[2]), y = halves(s.operands[compares ? 3 : 2]);
  const bool returns = s.operands[0].kind != Operand::Kind::kSink;
  const auto d = returns ? halves(s.operands[0])
                         : std::array{temporary(RegisterClass::k64), temporary(RegisterClass::k64)};
  const std::string_view space = space_of(op, s.operands[1]);
  program_.info.uses_clusters |= space == "cluster";
  std::int64_t offset = 0;
  const std::uint32_t address = address_value(s.operands[1], &offset);
  IrInst& i = emit_wide(space == "shared"    ? "@atom.shared.128"
                        : space == "cluster" ? "@atom.cluster.128"
                                             : "@atom.global.128",
                        {d[0], d[1], x[0], x[1], address, y[0], y[1]}, 2, false);
  set_address(i, s.operands[1]);
  i.count = compares;
  i.flags = sim::kWideAtomicBytes;
  i.aux |= sim::kWideRegister | sim::kStrong | order;
  i.polls = returns;
}

}  // namespace stitchwork::ptx
