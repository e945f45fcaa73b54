// Loads, stores, atomics and address conversions.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "simulator/lower/lower.h"
#include "simulator/machine/address.h"

namespace stitchwork::ptx {
namespace {

/// The state space of a memory opcode; "generic" where it names none, constant memory being global.
std::string_view named_space(const Opcode& op) {
  for (std::string_view m : op.modifiers) {
    if (m == "global" || m == "const") return "global";
    if (m == "shared" || m == "shared::cta") return "shared";
    if (m == "shared::cluster") return "cluster";
    if (m == "local" || m == "param") return m;
    if (m == "param::entry" || m == "param::func") return "param";
  }
  return "generic";
}

/// What a memory instruction says of its order among others.
std::uint16_t order_bits(const Opcode& op) {
  std::uint16_t bits = sim::scope_bits(scope_named(op));
  if (op.has("volatile") || op.has("relaxed") || op.has("mmio")) bits |= sim::kStrong | sim::kPastL1;
  if (op.has("acquire") || op.has("cg") || op.has("cv")) bits |= sim::kPastL1;
  if (op.has("acquire") || op.has("acq_rel")) bits |= sim::kStrong | sim::kAcquire;
  if (op.has("release") || op.has("acq_rel")) bits |= sim::kStrong | sim::kRelease;
  return bits;
}

std::uint64_t window_bits(std::string_view space) {
  const std::uint64_t window = space.starts_with("shared")  ? sim::kSharedWindow
                               : space == "local"           ? sim::kLocalWindow
                               : space.starts_with("param") ? sim::kParamWindow
                                                            : 0;
  return window << sim::kAllocationShift;
}

}  // namespace

sim::Scope scope_named(const Opcode& op) {
  return op.has("cta") ? sim::Scope::kBlock : op.has("cluster") ? sim::Scope::kCluster : sim::Scope::kDevice;
}

/// Where no space is named, that of a variable which is.
std::string_view Lowering::space_of(const Opcode& op, const Operand& address) const {
  const std::string_view space = named_space(op);
  if (space != "generic" || address.reg >= 0 || address.name.empty()) return space;
  if (shared_offset_.contains(address.name)) return "shared";
  if (local_offset_.contains(address.name)) return "local";
  const auto& parameters = fn_.info.parameters;
  if (std::any_of(parameters.begin(), parameters.end(),
                  [&](const auto& p) { return p.name == address.name; }))
    fail(fmt::format("'{}' is a parameter: {}.param wanted", address.name, op.base));
  return space;
}

std::uint32_t Lowering::address_value(const Operand& address, std::int64_t* offset) {
  if (!address.elements.empty()) fail("coordinates do not fit here");
  *offset = address.offset;
  if (address.reg >= 0) return static_cast<std::uint32_t>(address.reg);
  if (address.name.empty()) return constant(RegisterClass::k64, 0);
  const std::uint32_t v = address_of(address.name, RegisterClass::k64, address.offset);
  *offset = 0;
  return v;
}

void Lowering::set_address(IrInst& i, const Operand& address) {
  i.o[4] = address_value(address, &i.imm);
  i.uses |= 1 << 4;
  if (class_of(i.o[4]) == RegisterClass::k32)
    i.aux |= sim::kAddress32;
  else if (class_of(i.o[4]) != RegisterClass::k64)
    fail("an address has 32 or 64 bits");
}

/// A generic address as one of shared memory: an address outside the window lies outside every block's
/// memory.
std::uint32_t Lowering::within_shared(const Operand& address) {
  std::int64_t offset = 0;
  const std::uint32_t generic = address_value(address, &offset);
  if (class_of(generic) != RegisterClass::k64) fail("a generic address has 64 bits");
  const std::uint32_t t = temporary(RegisterClass::k64);
  emit_simple(sim::find_row("sub.u64"), {t, generic, constant(RegisterClass::k64, window_bits("shared"))});
  return t;
}

void Lowering::lower_memory(const Opcode& op, bool is_store) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  check_access_modifiers(op, is_store);
  // A cache hint is only a hint.
  const std::size_t expected = op.has("L2::cache_hint") ? 3 : 2;
  if (s.operands.size() != expected) fail(fmt::format("{} takes {} operands", s.opcode, expected));
  const Operand& address = s.operands[is_store ? 0 : 1];
  const Operand& data = s.operands[is_store ? 1 : 0];
  if (address.kind != Operand::Kind::kAddress) fail("expected an address in brackets");
  std::string_view space = space_of(op, address);
  program_.info.uses_clusters |= space == "cluster";
  std::string_view type = op.last();
  int bytes = type_bytes(type);
  if (bytes == 0) unknown();
  int count = op.has("v2") ? 2 : op.has("v4") ? 4 : op.has("v8") ? 8 : 1;
  std::vector<Operand> elements = data.kind == Operand::Kind::kVector ? data.elements : std::vector{data};
  if (static_cast<int>(elements.size()) != count) {
    fail(fmt::format("{} moves {} elements, {} given", s.opcode, count, elements.size()));
  }
  if (bytes == 16) {  // a 128-bit register is two of 64 bits
    std::vector<Operand> halves;
    for (const Operand& e : elements) {
      if (e.kind != Operand::Kind::kRegister || !e.wide) fail("expected a register of type .b128");
      halves.push_back(e);
      halves.push_back(e);
      ++halves.back().reg;
    }
    elements = std::move(halves);
    type = "b64";
    bytes = 8;
    count *= 2;
  }
  if (space == "param" && address.reg < 0 && call_parameters_.contains(address.name)) {
    lower_call_parameter(op, is_store, address, data);
    return;
  }
  // Parameters of calls lie in the thread's local memory, those of the kernel in a space of their own.
  if (space == "param" && (is_store || s.in_function || local_offset_.contains(address.name)))
    space = "local";
  if (!is_store && space == "param" && address.reg < 0) {
    lower_param_load(op, address);
    return;
  }

  // Data values first: converting an immediate may emit instructions of its own.
  std::vector<std::uint32_t> values;
  RegisterClass cls = bytes == 8 ? RegisterClass::k64 : RegisterClass::k32;
  char letter = type == "f64" ? 'e' : type == "f32" ? 'f' : bytes == 8 ? 'd' : 'r';
  for (const Operand& e : elements) {
    if (e.kind != Operand::Kind::kRegister) continue;
    letter = letter_of(e, bytes);
    cls = class_of(static_cast<std::uint32_t>(e.reg));
  }
  for (const Operand& e : elements) values.push_back(is_store ? source(e, letter) : destination(e, letter));
  constexpr int kMost = 4;  // elements an instruction moves; more are several accesses
  for (int begin = 0; begin < count; begin += kMost) {
    const int here = std::min(kMost, count - begin);
    IrInst& i = emit(fmt::format("@{}.{}.{}", is_store ? "st" : "ld", space, bytes));
    for (int k = 0; k < here; ++k) {
      i.o[k] = values[static_cast<std::size_t>(begin + k)];
      (is_store ? i.uses : i.defs) |= static_cast<std::uint8_t>(1 << k);
    }
    i.count = static_cast<std::uint8_t>(here);
    if (cls == RegisterClass::k64) i.aux |= sim::kWideRegister;
    if (cls == RegisterClass::k16) i.aux |= sim::kRegister16;
    if (type[0] == 's') i.aux |= sim::kSigned;
    if (op.has("const")) i.aux |= sim::kUncounted;
    if (op.has("nc")) i.aux |= sim::kNonCoherent;
    if (count > kMost) i.aux |= sim::kPartOfVector;
    if (begin > 0) i.aux |= sim::kLaterPart;
    i.aux |= order_bits(op);
    set_address(i, address);
    i.imm += begin * bytes;
    i.polls = !is_store && (op.has("volatile") || op.has("acquire") || op.has("relaxed"));
  }
}

/// Kernel parameters are slots filled at launch: a load with a fixed address is a copy.
void Lowering::lower_param_load(const Opcode& op, const Operand& address) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const int bytes = type_bytes(op.last());
  const bool sign = op.last()[0] == 's';
  std::uint64_t offset = static_cast<std::uint64_t>(address.offset);
  if (bytes > 8) unknown();
  if (!address.name.empty()) {
    const ParameterInfo* parameter = nullptr;
    for (const ParameterInfo& p : fn_.info.parameters) {
      if (p.name == address.name) parameter = &p;
    }
    if (parameter == nullptr) fail(fmt::format("'{}' is not a parameter", address.name));
    offset += parameter->offset;
  }
  const auto elements =
      s.operands[0].kind == Operand::Kind::kVector ? s.operands[0].elements : std::vector{s.operands[0]};
  for (const Operand& e : elements) {
    if (offset > program_.parameter_bytes ||
        offset + static_cast<std::uint64_t>(bytes) > program_.parameter_bytes) {
      fail("load past the end of the kernel's parameters");
    }
    const bool wide = e.kind == Operand::Kind::kRegister &&
                      class_of(static_cast<std::uint32_t>(e.reg)) == RegisterClass::k64;
    const std::uint32_t d = destination(e, letter_of(e, bytes));
    std::uint32_t v = value({Value::Kind::kParameter, bytes == 8 ? RegisterClass::k64 : RegisterClass::k32,
                             offset, static_cast<std::uint32_t>(bytes), 0});
    if (sign && bytes < 4) {
      const std::uint32_t t = temporary(RegisterClass::k32);
      emit_simple(sim::find_row(bytes == 1 ? "cvt.s32.s8" : "cvt.s32.s16"), {t, v});
      v = t;
    }
    if (wide != (class_of(v) == RegisterClass::k64)) {
      emit_simple(sim::find_row(wide ? sign ? "cvt.s64.s32" : "cvt.u64.u32" : "@low32"), {d, v});
    } else {
      emit_simple(sim::find_row(wide ? "mov.b64" : "mov.b32"), {d, v}).copy = class_of(d) == class_of(v);
    }
    offset += static_cast<std::uint64_t>(bytes);
  }
}

void Lowering::lower_cvta(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (s.operands.size() != 2 || (op.last() != "u64" && op.last() != "u32")) unknown();
  const bool to = op.has("to");
  const std::string_view space = op.modifiers.size() >= 2 ? op.modifiers[op.modifiers.size() - 2] : "";
  if (space != "global" && space != "const" && space != "shared" && space != "shared::cta" &&
      space != "shared::cluster" && space != "local" && space != "param" && space != "param::entry") {
    unknown();
  }
  const std::uint32_t a = source(s.operands[1], 'd');
  const std::uint32_t d = destination(s.operands[0], 'd');
  const std::uint64_t window = window_bits(space);
  if (window == 0) {
    emit_simple(sim::find_row("mov.b64"), {d, a}).copy = true;
  } else {
    emit_simple(sim::find_row(to ? "sub.u64" : "add.u64"), {d, a, constant(RegisterClass::k64, window)});
  }
}

/// In any order, the type too: LLVM writes atom.global.v4.f32.add.
Lowering::AtomicModifiers Lowering::atomic_modifiers(const Opcode& op, bool is_reduction) const {
  const std::string& opcode = fn_.body[static_cast<std::size_t>(current_)].opcode;
  AtomicModifiers given;
  std::string_view order, scope, space;
  bool keeps_subnormals = false;
  const auto once = [&](std::string_view& slot, std::string_view m) {
    if (!slot.empty()) fail(fmt::format("{}: '.{}' does not go with '.{}'", opcode, m, slot));
    slot = m;
  };
  const auto is_one_of = [](std::string_view m, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), m) != names.end();
  };
  for (std::string_view m : op.modifiers) {
    if (is_one_of(m, {"add", "exch", "cas", "min", "max", "and", "or", "xor", "inc", "dec"}))
      once(given.operation, m);
    else if (type_bytes(m) > 0)
      once(given.type, m);
    else if (is_one_of(m, {"relaxed", "acquire", "release", "acq_rel"}))
      once(order, m);
    else if (is_one_of(m, {"cta", "cluster", "gpu", "sys"}))
      once(scope, m);
    else if (is_one_of(m, {"global", "shared", "shared::cta", "shared::cluster"}))
      once(space, m);
    else if (is_one_of(m, {"v2", "v4", "v8"}))
      once(given.vector, m);
    else if (m == "noftz" && !keeps_subnormals)
      keeps_subnormals = true;
    else if (m == "L2::cache_hint" && !given.hint)
      given.hint = true;
    else
      fail(fmt::format("instruction '{}' is not supported: no form of '{}' has '.{}'", opcode, op.base, m),
           "list the supported forms with: stitchwork ptx isa");
  }
  if (is_reduction && is_one_of(order, {"acquire", "acq_rel"}))
    fail(fmt::format("{}: '.{}' is for atom", opcode, order));
  const bool halves = is_one_of(given.type, {"f16", "bf16"}),
             pairs = is_one_of(given.type, {"f16x2", "bf16x2"});
  if (keeps_subnormals && !halves && !pairs) fail(fmt::format("{}: '.noftz' is for f16 and bf16", opcode));
  if (!keeps_subnormals && (halves || pairs)) fail(fmt::format("{}: f16 and bf16 want '.noftz'", opcode));
  // PTX ISA 8.7, 9.7.13.5: the types of vectors.
  const bool extremum = is_one_of(given.operation, {"min", "max"});
  const bool in_vectors = halves || ((pairs || given.type == "f32") && given.vector != "v8");
  const bool vector_of = in_vectors && (given.operation == "add" || (extremum && given.type != "f32"));
  if (!given.vector.empty() && !vector_of) unknown();
  if (given.vector.empty() && extremum && (halves || pairs))
    fail(fmt::format("{}: '.{}' of f16 and bf16 is of vectors", opcode, given.operation));
  return given;
}

void Lowering::lower_atomic(const Opcode& op, bool is_reduction) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const auto [operation, type, vector, hint] = atomic_modifiers(op, is_reduction);
  if (type == "b128" && vector.empty()) return lower_wide_atomic(op, order_bits(op));
  const auto form = sim::find_atomic(operation, type);
  if (!form) unknown();
  const std::size_t first = is_reduction ? 0 : 1, operands = first + (operation == "cas" ? 3 : 2);
  if (s.operands.size() != operands + (hint ? 1 : 0))
    fail(fmt::format("{} takes {} operands", s.opcode, operands));
  if (s.operands[first].kind != Operand::Kind::kAddress) fail("expected an address in brackets");
  const bool wide = form->bytes == 8;
  const char letter = type == "f32" ? 'f' : type == "f64" ? 'e' : wide ? 'd' : form->bytes == 2 ? 'h' : 'r';
  const bool returns = !is_reduction && s.operands[0].kind != Operand::Kind::kSink;
  const std::string_view space = space_of(op, s.operands[first]);
  const bool shared = space == "shared" || space == "cluster";
  program_.info.uses_clusters |= space == "cluster";
  // A vector is an atomic of each element.
  const std::size_t count = vector.empty() ? 1 : static_cast<std::size_t>(vector[1] - '0');
  if (count > 1 && shared) unknown();
  const auto parts = [&](const Operand& o) {
    auto all = o.kind == Operand::Kind::kVector ? o.elements : std::vector{o};
    if (all.size() != count) fail(fmt::format("{} takes {} elements, {} given", s.opcode, count, all.size()));
    return all;
  };
  const auto xs = parts(s.operands[first + 1]);
  const auto ds = returns ? parts(s.operands[0]) : std::vector<Operand>{};
  for (std::size_t k = 0; k < count; ++k) {
    const std::uint32_t x = source(xs[k], letter);
    const std::uint32_t y = operation == "cas" ? source(s.operands[first + 2], letter) : kNone;
    const bool result = returns && ds[k].kind != Operand::Kind::kSink;
    const std::uint32_t d = result ? destination(ds[k], letter) : kNone;
    IrInst& i = emit(space == "shared"    ? "@atom.shared"
                     : space == "cluster" ? "@atom.cluster"
                                          : "@atom.global");
    i.o[0] = d;
    i.o[1] = x;
    i.o[2] = y;
    i.defs = result;
    i.uses = static_cast<std::uint8_t>(2 | (y != kNone ? 4 : 0));
    i.count = static_cast<std::uint8_t>(form->op);
    i.flags = static_cast<std::uint8_t>(form->bytes);
    if (wide) i.aux |= sim::kWideRegister;
    i.aux |= sim::kStrong | order_bits(op);
    set_address(i, s.operands[first]);
    i.imm += static_cast<std::int64_t>(k) * form->bytes;
    i.polls = result;
  }
}

void Lowering::mark_guesses() {
  struct Guess {
    Value::Kind kind;    // of the address
    std::uint32_t base;  // its register, or which variable
    std::uint64_t offset;
    std::uint32_t compared;  // a register
    int count;
    auto operator<=>(const Guess&) const = default;
  };
  const auto guess_of = [&](const IrInst& i, std::uint32_t compared, int count) {
    const Value& at = f_.values[i.o[4]];
    const auto offset = static_cast<std::uint64_t>(i.imm);
    return at.kind == Value::Kind::kRegister ? Guess{at.kind, i.o[4], offset, compared, count}
                                             : Guess{at.kind, at.index, at.bits + offset, compared, count};
  };
  std::set<Guess> guesses;
  const auto row = [](const IrInst& i) { return std::string_view(sim::isa_rows()[i.row].spelling); };
  std::multimap<std::uint32_t, std::uint32_t> copies;  // also to another size
  for (const IrBlock& block : f_.blocks)
    for (const IrInst& i : block.insts) {
      const BitRule::Kind kind = bit_rule(i).kind;
      if (kind == BitRule::Kind::kCopy || kind == BitRule::Kind::kConvert) copies.emplace(i.o[0], i.o[1]);
    }
  for (const IrBlock& block : f_.blocks) {
    for (const IrInst& i : block.insts) {
      if (!row(i).starts_with("@atom.") || !(i.uses >> 2 & 1)) continue;
      const bool wide = i.flags == sim::kWideAtomicBytes;
      std::vector<std::uint32_t> open{i.o[wide ? 2 : 1]};
      while (!open.empty()) {
        const std::uint32_t v = open.back();
        open.pop_back();
        if (!guesses.insert(guess_of(i, v, wide ? 2 : 1)).second) continue;
        for (auto [at, end] = copies.equal_range(v); at != end; ++at) open.push_back(at->second);
      }
    }
  }
  if (guesses.empty()) return;
  for (IrBlock& block : f_.blocks)
    for (IrInst& i : block.insts)
      if (row(i).starts_with("@ld.") && guesses.contains(guess_of(i, i.o[0], i.count))) i.aux |= sim::kStrong;
}

}  // namespace stitchwork::ptx
