// Barriers, fences, shuffles, votes; comparisons that are not one table row.
#include <algorithm>

#include "core/base/error.h"
#include "simulator/lower/lower.h"
#include "simulator/machine/address.h"

namespace stitchwork::ptx {
namespace {

/// Devices from which on setmaxnreg is there, and from which on exchanges within a warp name their lanes.
constexpr int kSetmaxnregSm = 90, kIndependentLanesSm = 70;
/// The version of PTX, 6.4, from which on they do so on these devices (PTX ISA, vote and shfl, target notes).
constexpr int kMasksWantedVersion = 64;

}  // namespace

/// Of instructions that do nothing here, and so look at no operand.
void Lowering::check_operand_count(const Opcode& op) const {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const std::string_view base = op.base;
  std::size_t least = 0;
  if (base == "nanosleep" || base == "setmaxnreg" || base.starts_with("prefetch")) least = 1;
  if (base == "discard" || base == "applypriority") least = 2;
  if (base == "createpolicy") least = op.has("fractional") ? 1 : op.has("range") ? 4 : 2;
  if (op.has("tensormap::generic") && op.has("acquire")) least = 2;
  const std::size_t most = least + (op.has("fractional") ? 1 : 0);
  if (s.operands.size() < least || s.operands.size() > most)
    fail(fmt::format("{} takes {} operands", s.opcode,
                     least == most ? fmt::format("{}", least) : fmt::format("{} or {}", least, most)));
}

std::uint32_t Lowering::compare(const std::string& opcode, const Operand& a, const Operand& b) {
  const int row = sim::find_row(opcode);
  if (row < 0) unknown();
  const char* signature = sim::isa_rows()[static_cast<std::size_t>(row)].signature;
  const std::uint32_t x = source(a, signature[1]), y = source(b, signature[2]);
  const std::uint32_t p = temporary(RegisterClass::kPred);
  emit_simple(row, {p, x, y});
  return p;
}

/// setp with one destination and no combination is a table row; the rest is that row and predicate logic.
void Lowering::lower_setp(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  std::string plain = "setp";
  std::string combine;
  for (std::string_view m : op.modifiers) {
    if (m == "and" || m == "or" || m == "xor") {
      if (!combine.empty()) unknown();
      combine = fmt::format("{}.pred", m);
    } else {
      plain += fmt::format(".{}", m);
    }
  }
  const std::size_t expected = combine.empty() ? 3 : 4;
  if (s.operands.size() != expected) fail(fmt::format("{} takes {} operands", s.opcode, expected));
  const bool pair = s.operands[0].kind == Operand::Kind::kPair;
  const bool packed = op.last().ends_with("x2");
  if (!pair && !packed && combine.empty()) {
    const int row = sim::find_row(plain);
    if (row < 0) unknown();
    lower_row(row);
    return;
  }
  std::uint32_t p, q;
  if (packed) {  // the two results are of the two halves
    if (!pair) fail(fmt::format("{} gives two results, p|q", s.opcode));
    plain.resize(plain.size() - 2);
    p = compare_half(plain, s.operands[1], s.operands[2], false);
    q = compare_half(plain, s.operands[1], s.operands[2], true);
  } else {
    p = compare(plain, s.operands[1], s.operands[2]);
    q = temporary(RegisterClass::kPred);
    emit_simple(sim::find_row("not.pred"), {q, p});
  }
  const Operand& first = pair ? s.operands[0].elements[0] : s.operands[0];
  auto finish = [&](const Operand& to, std::uint32_t v, std::uint32_t c) {
    if (to.kind == Operand::Kind::kSink) return;
    const std::uint32_t d = destination(to, 'p');
    if (combine.empty())
      emit_simple(sim::find_row("mov.pred"), {d, v});
    else
      emit_simple(sim::find_row(combine), {d, v, c});
  };
  std::uint32_t c = kNone;
  if (!combine.empty()) {
    // Copied first: a destination may be the combined predicate itself.
    c = temporary(RegisterClass::kPred);
    emit_simple(sim::find_row("mov.pred"), {c, source(s.operands[3], 'p')});
  }
  finish(first, p, c);
  if (pair) finish(s.operands[0].elements[1], q, c);
}

/// set: the comparison, then a choice between the two results its destination type has.
void Lowering::lower_set(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (op.modifiers.size() < 3) unknown();
  const std::string_view to = op.modifiers[op.modifiers.size() - 2];
  std::string plain = "setp";
  std::string combine;
  for (std::size_t k = 0; k < op.modifiers.size(); ++k) {
    const std::string_view m = op.modifiers[k];
    if (k + 2 == op.modifiers.size()) continue;
    if (m == "and" || m == "or" || m == "xor") {
      if (!combine.empty()) unknown();
      combine = fmt::format("{}.pred", m);
    } else {
      plain += fmt::format(".{}", m);
    }
  }
  const bool packed = op.last() == "f16x2" || op.last() == "bf16x2";
  if (s.operands.size() != (combine.empty() ? 3u : 4u)) unknown();
  if (packed) plain.resize(plain.size() - 2);
  std::uint64_t yes = 0;
  if (packed)
    yes = to == op.last() ? (to == "f16x2" ? 0x3c00 : 0x3f80) : to == "u32" || to == "s32" ? 0xffff : 0;
  else if (to == "u32" || to == "s32")
    yes = 0xffffffff;
  else if (to == "u16" || to == "s16")
    yes = 0xffff;
  else if (to == "f32")
    yes = 0x3f800000;
  else if (to == "f16")
    yes = 0x3c00;
  else if (to == "bf16")
    yes = 0x3f80;
  if (yes == 0) unknown();
  std::uint32_t both[2] = {kNone, kNone};
  for (int half = 0; half < (packed ? 2 : 1); ++half) {
    std::uint32_t p = packed ? compare_half(plain, s.operands[1], s.operands[2], half != 0)
                             : compare(plain, s.operands[1], s.operands[2]);
    if (!combine.empty()) {
      const std::uint32_t combined = temporary(RegisterClass::kPred);
      emit_simple(sim::find_row(combine), {combined, p, source(s.operands[3], 'p')});
      p = combined;
    }
    both[half] =
        packed ? temporary(RegisterClass::k32) : destination(s.operands[0], type_bytes(to) == 2 ? 'h' : 'r');
    emit_simple(sim::find_row("selp.b32"),
                {both[half], constant(RegisterClass::k32, yes), constant(RegisterClass::k32, 0), p});
  }
  if (packed) emit_simple(sim::find_row("@pack32"), {destination(s.operands[0], 'r'), both[0], both[1]});
}

bool Lowering::lower_control(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const std::string_view base = op.base;
  if (base == "barrier" && op.has("cluster")) {
    lower_cluster_barrier(op);
  } else if (base == "bar" || base == "barrier") {
    lower_barrier(op);
  } else if (base == "membar" || base == "fence") {
    check_operand_count(op);
    // One memory, executed in order: a fence has nothing to wait for. The race check wants to know of it.
    const bool proxy = std::any_of(op.modifiers.begin(), op.modifiers.end(),
                                   [](std::string_view m) { return m.starts_with("proxy"); });
    if (op.has("proxy") && op.has("tensormap::generic")) {
      // A map is read when a copy names it: there is nothing that was read before.
    } else if (!proxy)
      emit("@fence").flags = static_cast<std::uint8_t>(static_cast<int>(scope_named(op)) |
                                                       (op.has("release") ? 0 : sim::kFenceAcquires) |
                                                       (op.has("acquire") ? 0 : sim::kFenceReleases));
    else if (!op.has("alias"))
      emit("@proxy_fence").flags = op.has("global")            ? sim::kProxyGlobal
                                   : op.has("shared::cta")     ? sim::kProxyShared
                                   : op.has("shared::cluster") ? sim::kProxyShared | sim::kProxyOtherShared
                                                               : sim::kProxyAll;
  } else if (base == "nanosleep" || base == "prefetch" || base == "prefetchu" || base == "discard" ||
             base == "applypriority") {
    check_operand_count(op);  // nothing to wait for, nothing to fetch
  } else if (base == "createpolicy") {
    check_operand_count(op);
    // A policy is only handed to cache hints, which have nothing to do here.
    emit_simple(sim::find_row("mov.b64"), {destination(s.operands[0], 'd'), constant(RegisterClass::k64, 0)});
  } else if (base == "setmaxnreg") {
    check_operand_count(op);
    require_sm(kSetmaxnregSm, "setmaxnreg");  // residency is of the registers that warps start with
  } else if (base == "griddepcontrol") {
    check_operand_count(op);
    // Kernels run one after the other: what this one depends on has ended.
  } else if (base == "trap") {
    emit("@trap");
  } else if (base == "shfl") {
    lower_shuffle(op);
  } else if (base == "vote") {
    lower_vote(op);
  } else if (base == "activemask" && s.operands.size() == 1) {
    emit("@activemask", 1).o[0] = destination(s.operands.at(0), 'r');
  } else if (base == "redux") {
    lower_redux(op);
  } else if (base == "isspacep" && s.operands.size() == 2) {
    const std::string_view space = op.last();
    const char letter = letter_of(s.operands[1], 4);
    std::uint32_t a = source(s.operands[1], letter);
    if (class_of(a) == RegisterClass::k32) {
      const std::uint32_t whole = temporary(RegisterClass::k64);
      emit_simple(sim::find_row("cvt.u64.u32"), {whole, a});
      a = whole;
    }
    const std::uint32_t d = destination(s.operands[0], 'p');
    IrInst& i = emit("@isspacep", 1, 2);
    i.o[0] = d;
    i.o[1] = a;
    i.aux = space == "shared::cluster";
    i.flags = static_cast<std::uint8_t>(space.starts_with("shared")  ? sim::kSharedWindow
                                        : space == "local"           ? sim::kLocalWindow
                                        : space.starts_with("param") ? sim::kParamWindow
                                        : space == "const"           ? sim::kConstantWanted
                                                                     : 0);
  } else {
    return false;
  }
  return true;
}

void Lowering::lower_barrier(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (op.has("warp")) {
    if (s.operands.size() != 1) fail(fmt::format("{}: operands missing", s.opcode));
    const std::uint32_t members = source(s.operands[0], 'r');
    emit("@warp_barrier", 0, 1).o[0] = members;
    return;
  }
  const bool red = op.has("red"), arrive = op.has("arrive");
  if (!red && !arrive && !op.has("sync")) unknown();
  const std::size_t first = red ? 1 : 0;
  const std::size_t given = s.operands.size() - first - (red ? 1 : 0);
  if (s.operands.size() < first + 1 + (red ? 1 : 0) || given > 2)
    fail(fmt::format("{}: operands missing", s.opcode));
  const std::uint32_t id = source(s.operands[first], 'r');
  const std::uint32_t threads = given == 2 ? source(s.operands[first + 1], 'r') : kNone;
  const std::uint32_t p = red ? source(s.operands.back(), 'p') : kNone;
  {
    IrInst& i = emit("@barrier", 0, 1);
    i.o[0] = id;
    i.o[1] = threads;
    i.o[2] = p;
    if (threads != kNone) i.uses |= 2;
    if (p != kNone) i.uses |= 4;
    i.flags = static_cast<std::uint8_t>((arrive ? sim::kBarrierArrives : 0) |
                                        (op.base == "bar" || op.has("aligned") ? sim::kBarrierAligned : 0));
  }
  if (red) {
    const bool count = op.has("popc");
    const std::uint32_t d = destination(s.operands[0], count ? 'r' : 'p');
    IrInst& i = emit("@barrier_result", 1, 2);
    i.o[0] = d;
    i.o[1] = id;
    i.flags = count ? 0 : op.has("and") ? 1 : 2;
  }
}

/// The mask of an exchange within a warp; without .sync, which PTX 6.4 took from sm_70 and later, those are
/// meant that run.
std::uint32_t Lowering::members_of(const Opcode& op, std::size_t operand) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (op.has("sync")) return source(s.operands[operand], 'r');
  if (target_sm() >= kIndependentLanesSm && ptx_version() >= kMasksWantedVersion)
    fail(fmt::format("{} wants .sync and a mask from sm_{} on", op.base, kIndependentLanesSm));
  const std::uint32_t members = temporary(RegisterClass::k32);
  emit("@activemask", 1).o[0] = members;
  return members;
}

void Lowering::lower_shuffle(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const int mode = op.has("idx") ? 0 : op.has("up") ? 1 : op.has("down") ? 2 : op.has("bfly") ? 3 : -1;
  if (mode < 0 || s.operands.size() != (op.has("sync") ? 5u : 4u)) unknown();
  const bool pair = s.operands[0].kind == Operand::Kind::kPair;
  const Operand& to = pair ? s.operands[0].elements[0] : s.operands[0];
  const std::uint32_t a = source(s.operands[1], 'r'), b = source(s.operands[2], 'r');
  const std::uint32_t c = source(s.operands[3], 'r'), members = members_of(op, 4);
  const std::uint32_t d = destination(to, 'r');
  const std::uint32_t p = pair ? destination(s.operands[0].elements[1], 'p') : kNone;
  IrInst& i = emit("@shuffle", static_cast<std::uint8_t>(pair ? 3 : 1), 0b111100);
  i.o[0] = d;
  i.o[1] = p;
  i.o[2] = a;
  i.o[3] = b;
  i.o[4] = c;
  i.o[5] = members;
  i.flags = static_cast<std::uint8_t>(mode);
}

/// redux.sync.{add,min,max}.{u32,s32}, .{and,or,xor}.b32, .{min,max}{.abs}{.NaN}.f32 (PTX ISA 8.6, 9.7.13.9).
void Lowering::lower_redux(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  static constexpr std::string_view kOps[] = {"add", "min", "max", "and", "or", "xor"};
  if (s.operands.size() != 3 || op.modifiers.size() < 3 || op.modifiers[0] != "sync") unknown();
  const auto k = std::find(std::begin(kOps), std::end(kOps), op.modifiers[1]) - std::begin(kOps);
  const bool is_float = op.last() == "f32", extreme = k == 1 || k == 2;
  const bool fits = is_float ? extreme
                    : k < 3  ? op.last() == "u32" || op.last() == "s32"
                             : op.last() == "b32";
  if (k == 6 || !fits) unknown();
  std::uint16_t kind = is_float ? sim::kReduxFloat : op.last() == "s32" ? sim::kReduxSigned : 0;
  std::size_t at = 2;
  if (is_float && op.modifiers[at] == "abs") kind |= sim::kReduxAbs, ++at;
  if (is_float && op.modifiers[at] == "NaN") kind |= sim::kReduxNan, ++at;
  if (at + 1 != op.modifiers.size()) unknown();
  const std::uint32_t a = source(s.operands[1], is_float ? 'f' : 'r'), members = source(s.operands[2], 'r');
  const std::uint32_t d = destination(s.operands[0], 'r');
  IrInst& i = emit("@redux", 1, 0b110);
  i.o[0] = d;
  i.o[1] = a;
  i.o[2] = members;
  i.flags = static_cast<std::uint8_t>(k);
  i.aux = kind;
}

void Lowering::lower_vote(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const int mode = op.has("all") ? 0 : op.has("any") ? 1 : op.has("uni") ? 2 : op.has("ballot") ? 3 : -1;
  if (mode < 0 || s.operands.size() != (op.has("sync") ? 3u : 2u)) unknown();
  const std::uint32_t p = source(s.operands[1], 'p'), members = members_of(op, 2);
  const std::uint32_t d = destination(s.operands[0], mode == 3 ? 'r' : 'p');
  IrInst& i = emit("@vote", 1, 0b110);
  i.o[0] = d;
  i.o[1] = p;
  i.o[2] = members;
  i.flags = static_cast<std::uint8_t>(mode);
}

}  // namespace stitchwork::ptx
