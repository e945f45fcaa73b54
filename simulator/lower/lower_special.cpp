// Carry chains, sums of two precisions, warp-wide matching, asynchronous copies.
#include <algorithm>

#include "core/base/error.h"
#include "simulator/isa/forms.h"
#include "simulator/lower/lower.h"
#include "simulator/machine/atomics.h"

namespace stitchwork::ptx {

/// add.cc, addc, sub.cc, subc, mad.cc, madc: the carry flag is a predicate register of its own.
bool Lowering::lower_carry(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const std::string_view base = op.base;
  const bool reads = base == "addc" || base == "subc" || base == "madc", writes = op.has("cc");
  const bool sum = base.starts_with("add"), difference = base.starts_with("sub"),
             product = base.starts_with("mad");
  if (!(reads || writes) || !(sum || difference || product)) return false;
  const std::string_view type = op.last();
  const bool wide = type == "u64" || type == "s64";
  if (!wide && type != "u32" && type != "s32" && type != "b32") return false;
  const bool high = op.has("hi");
  if (product && high == op.has("lo")) return false;
  if (op.modifiers.size() != 1u + (writes ? 1 : 0) + (product ? 1 : 0)) return false;
  const std::size_t operands = product ? 4 : 3;
  if (s.operands.size() != operands) fail(fmt::format("{} takes {} operands", s.opcode, operands));
  if (carry_ == kNone) carry_ = temporary(RegisterClass::kPred);
  const char letter = wide ? 'd' : 'r';
  std::uint32_t o[3] = {kNone, kNone, kNone};
  for (std::size_t k = 1; k < operands; ++k) o[k - 1] = source(s.operands[k], letter);
  const std::uint32_t d = destination(s.operands[0], letter);
  const char* row = sum              ? (wide ? "@carry.add.64" : "@carry.add.32")
                    : difference     ? (wide ? "@carry.sub.64" : "@carry.sub.32")
                    : !high          ? (wide ? "@carry.mad.lo.64" : "@carry.mad.lo.32")
                    : type[0] == 's' ? (wide ? "@carry.mad.hi.s64" : "@carry.mad.hi.s32")
                                     : (wide ? "@carry.mad.hi.u64" : "@carry.mad.hi.u32");
  IrInst& i = emit(row, static_cast<std::uint8_t>(writes ? 3 : 1), 0);
  i.o[0] = d;
  i.o[1] = writes ? carry_ : kNone;
  i.o[2] = o[0];
  i.o[3] = o[1];
  i.o[4] = o[2];
  i.o[5] = reads ? carry_ : kNone;
  i.uses = static_cast<std::uint8_t>(0b1100 | (product ? 0b10000 : 0) | (reads ? 0b100000 : 0));
  return true;
}

/// {add,sub,fma}{.rnd}{.sat}.f32.{f16,bf16} (PTX ISA 8.6, sm_100): the operands but the last are converted.
bool Lowering::lower_mixed_precision(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const std::string_view half = op.last();
  const bool takes = op.base == "add" || op.base == "sub" || op.base == "fma";
  if (!takes || (half != "f16" && half != "bf16") || op.modifiers.size() < 2 ||
      op.modifiers[op.modifiers.size() - 2] != "f32")
    return false;
  const int row = find_row_in_any_order(s.opcode.substr(0, s.opcode.rfind('.')));
  const std::size_t operands = op.base == "fma" ? 4 : 3;
  if (row < 0 || op.has("ftz")) unknown();
  if (s.operands.size() != operands) fail(fmt::format("{} takes {} operands", s.opcode, operands));
  std::uint32_t o[6] = {};
  for (std::size_t k = 1; k < operands; ++k) {
    const bool last = k + 1 == operands;
    o[k] = source(s.operands[k], last ? 'f' : 'h');
    if (last) continue;
    const std::uint32_t t = temporary(RegisterClass::k32);
    emit_simple(sim::find_row(half == "f16" ? "cvt.f32.f16" : "cvt.f32.bf16"), {t, o[k]});
    o[k] = t;
  }
  o[0] = destination(s.operands[0], 'f');
  IrInst& i = emit_simple(row, {o[0]});
  std::copy(o, o + 6, i.o);
  i.uses = static_cast<std::uint8_t>((1u << operands) - 2);
  return true;
}

/// match.sync, elect.sync.
bool Lowering::lower_warp(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (op.base == "match" && op.has("sync") && s.operands.size() == 3) {
    const bool all = op.has("all"), wide = op.last() == "b64";
    if (all == op.has("any") || (!wide && op.last() != "b32")) unknown();
    const bool pair = s.operands[0].kind == Operand::Kind::kPair;
    if (pair && !all) fail("match.any.sync has one result");
    const std::uint32_t a = source(s.operands[1], wide ? 'd' : 'r');
    const std::uint32_t members = source(s.operands[2], 'r');
    const std::uint32_t d = destination(pair ? s.operands[0].elements[0] : s.operands[0], 'r');
    const std::uint32_t p = pair ? destination(s.operands[0].elements[1], 'p') : kNone;
    IrInst& i = emit("@match", static_cast<std::uint8_t>(pair ? 3 : 1), 0b1100);
    i.o[0] = d;
    i.o[1] = p;
    i.o[2] = a;
    i.o[3] = members;
    i.flags = static_cast<std::uint8_t>((all ? 1 : 0) | (wide ? 2 : 0));
    return true;
  }
  if (op.base == "elect" && op.has("sync") && s.operands.size() == 2 &&
      s.operands[0].kind == Operand::Kind::kPair) {
    const std::uint32_t members = source(s.operands[1], 'r');
    const std::uint32_t d = destination(s.operands[0].elements[0], 'r');
    const std::uint32_t p = destination(s.operands[0].elements[1], 'p');
    IrInst& i = emit("@elect", 3, 4);
    i.o[0] = d;
    i.o[1] = p;
    i.o[2] = members;
    return true;
  }
  return false;
}

/// cp.async.mbarrier.arrive{.noinc}{.shared,.shared::cta}.b64 (PTX ISA 8.7, 9.7.13.15.17)
void Lowering::lower_async_arrive(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const auto& m = op.modifiers;
  std::size_t at = 3;
  if (m.size() < 4 || m[2] != "arrive" || op.last() != "b64") unknown();
  std::uint16_t bits = sim::kMbarrierGeneric;
  if (m[at] == "noinc") bits |= sim::kMbarrierNoIncrement, ++at;
  if (m[at] == "shared" || m[at] == "shared::cta")
    bits &= static_cast<std::uint16_t>(~sim::kMbarrierGeneric), ++at;
  if (at + 1 != m.size()) unknown();
  if (s.operands.size() != 1 || s.operands[0].kind != Operand::Kind::kAddress)
    fail(fmt::format("{} takes an address", s.opcode));
  IrInst& i = emit("@async.arrive");
  i.aux = bits;
  set_address(i, s.operands[0]);
}

/// cp.async: bytes are read when it is issued and written to shared memory when they are waited for, so that
/// a kernel that forgets to wait sees old contents.
bool Lowering::lower_async(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (op.base != "cp" || op.modifiers.size() < 2 || op.modifiers[0] != "async") return false;
  const std::string_view what = op.modifiers[1];
  if (what == "commit_group" || what == "wait_all" || what == "wait_group") {
    if (op.modifiers.size() != 2) unknown();
    const bool counted = what == "wait_group";
    if (s.operands.size() != (counted ? 1u : 0u)) fail(fmt::format("{}: wrong operands", s.opcode));
    if (counted && s.operands[0].kind != Operand::Kind::kInteger)
      fail("cp.async.wait_group takes a constant");
    IrInst& i = emit(what == "commit_group" ? "@async.commit" : "@async.wait");
    i.imm = counted ? static_cast<std::int64_t>(s.operands[0].bits) : 0;
    i.flags = what == "wait_all" ? 1 : 0;
    return true;
  }
  if (what == "mbarrier") {
    lower_async_arrive(op);
    return true;
  }
  const bool level_all = what == "ca";
  if (!level_all && what != "cg") return false;
  int spaces = 0, hints = 0, prefetches = 0;
  for (std::size_t k = 2; k < op.modifiers.size(); ++k) {
    const std::string_view m = op.modifiers[k];
    hints += m == "L2::cache_hint";
    prefetches += m == "L2::64B" || m == "L2::128B" || m == "L2::256B";
    spaces += m == "shared" || m == "shared::cta" || m == "global";
    if (m != "shared" && m != "shared::cta" && m != "global" && m != "L2::64B" && m != "L2::128B" &&
        m != "L2::256B" && m != "L2::cache_hint")
      return false;
  }
  if (spaces != 2 || hints > 1 || prefetches > 1 || op.modifiers.size() < 4 ||
      !op.modifiers[2].starts_with("shared") || op.modifiers[3] != "global")
    unknown();  // to shared memory, from global memory
  const std::size_t given = s.operands.size() - static_cast<std::size_t>(hints);
  if (s.operands.size() < 3 || given < 3 || given > 4 || s.operands[0].kind != Operand::Kind::kAddress ||
      s.operands[1].kind != Operand::Kind::kAddress || s.operands[2].kind != Operand::Kind::kInteger)
    fail(fmt::format("{} takes two addresses and a size", s.opcode));
  const std::uint64_t bytes = s.operands[2].bits;
  if (bytes != 16 && (!level_all || (bytes != 4 && bytes != 8)))
    fail(fmt::format("{} copies {} bytes", s.opcode, level_all ? "4, 8 or 16" : "16"));
  std::uint32_t size = kNone, skip = kNone;
  if (given == 4) {
    const Operand& last = s.operands[3];
    const bool predicate = last.kind == Operand::Kind::kRegister &&
                           class_of(static_cast<std::uint32_t>(last.reg)) == RegisterClass::kPred;
    (predicate ? skip : size) = source(last, predicate ? 'p' : 'r');
  }
  std::int64_t from_offset = 0, to_offset = 0;
  std::uint32_t from = address_value(s.operands[1], &from_offset);
  const std::uint32_t to = address_value(s.operands[0], &to_offset);
  if (class_of(from) != RegisterClass::k64) fail("a global address has 64 bits");
  if (class_of(to) != RegisterClass::k64 && class_of(to) != RegisterClass::k32)
    fail("an address of shared memory has 32 or 64 bits");
  if (from_offset != 0) {
    const std::uint32_t t = temporary(RegisterClass::k64);
    emit_simple(sim::find_row("add.u64"),
                {t, from, constant(RegisterClass::k64, static_cast<std::uint64_t>(from_offset))});
    from = t;
  }
  IrInst& i = emit("@async.copy", 0, 0b110000);
  i.o[2] = size;
  i.o[3] = skip;
  i.o[4] = to;
  i.o[5] = from;
  if (size != kNone) i.uses |= 4;
  if (skip != kNone) i.uses |= 8;
  i.imm = to_offset;
  i.count = static_cast<std::uint8_t>(bytes);
  if (!level_all) i.aux |= sim::kPastL1;
  if (class_of(to) == RegisterClass::k32) i.aux |= sim::kAddress32;
  return true;
}

}  // namespace stitchwork::ptx
