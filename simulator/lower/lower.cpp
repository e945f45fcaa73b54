#include "simulator/lower/lower.h"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "simulator/cost/issue_slots.h"
#include "simulator/isa/forms.h"

namespace stitchwork::ptx {

Opcode::Opcode(std::string_view text) {
  std::size_t dot = text.find('.');
  base = text.substr(0, dot);
  while (dot != std::string_view::npos) {
    const std::size_t next = text.find('.', dot + 1);
    modifiers.push_back(text.substr(dot + 1, next == std::string_view::npos ? next : next - dot - 1));
    dot = next;
  }
}
bool Opcode::has(std::string_view m) const {
  return std::find(modifiers.begin(), modifiers.end(), m) != modifiers.end();
}

namespace {

std::int64_t align_up(std::int64_t v, std::int64_t a) { return (v + a - 1) / a * a; }

/// Lays variables out one after the other; extern ones (dynamic shared memory) share the end.
std::int64_t lay_out(std::map<std::string, std::int64_t, std::less<>>& offsets,
                     const std::vector<Variable>& a, const std::vector<Variable>& b, bool only_static) {
  std::int64_t at = 0, alignment = 1;
  for (bool external : {false, true}) {
    if (external && only_static) break;
    for (const auto* list : {&a, &b}) {
      for (const Variable& v : *list) {
        if ((v.linkage == Linkage::kExternal || v.bytes == 0) != external) continue;
        alignment = std::max<std::int64_t>(alignment, v.alignment);
        const std::int64_t base = align_up(at, v.alignment);
        offsets[v.name] = base;
        if (!external) at = base + v.bytes;
      }
    }
  }
  return only_static ? align_up(at, alignment) : at;
}

/// Whether a register holds more bits than an operand of this letter.
bool is_wider(RegisterClass cls, char letter) {
  return cls != RegisterClass::kPred && letter != 'p' && cls > class_of_letter(letter);
}

/// Of a cvt, the types of its result and its source; of other instructions empty.
std::pair<std::string_view, std::string_view> conversion(const Opcode& op) {
  if (op.base != "cvt" || op.modifiers.size() < 2 || op.has("pack")) return {};
  return {op.modifiers[op.modifiers.size() - 2], op.last()};
}

/// Types of a cvt whose registers may be wider than they are (PTX ISA 9.4.1, as ptxas 13.0 applies it): not
/// bf16, nor what holds two numbers.
bool may_be_wider(std::string_view type) {
  return type_bytes(type) > 0 && type != "bf16" && !type.ends_with("x2");
}

bool is_three_way_extremum(const Opcode& op, const Statement& s) {
  return (op.base == "min" || op.base == "max") && op.last() == "f32" && s.operands.size() == 4;
}

bool mentions(const Operand& o, std::string_view name) {
  if (o.name == name) return true;
  return std::any_of(o.elements.begin(), o.elements.end(),
                     [&](const Operand& e) { return mentions(e, name); });
}

}  // namespace

Lowering::Lowering(const File& file, const Function& function) : file_(file), fn_(function) {
  program_.info = function.info;
  for (const Function::Register& r : fn_.registers) {
    f_.values.push_back({Value::Kind::kRegister, r.cls, f_.values.size(), 0, 0});
  }
  // File-scope shared variables belong to the kernels that name them.
  std::vector<Variable> outer;
  for (const Variable& v : file_.shared) {
    const bool used = std::any_of(fn_.body.begin(), fn_.body.end(), [&](const Statement& s) {
      return std::any_of(s.operands.begin(), s.operands.end(),
                         [&](const Operand& o) { return mentions(o, v.name); });
    });
    if (used) outer.push_back(v);
  }
  program_.info.static_shared_bytes = lay_out(shared_offset_, fn_.shared, outer, false);
  program_.dynamic_shared_offset = program_.info.static_shared_bytes;
  for (const auto& [name, offset] : shared_offset_) {
    program_.dynamic_shared_offset = std::max(program_.dynamic_shared_offset, offset);
  }
  find_call_parameters();
  std::vector<Variable> in_memory;
  for (const Variable& v : fn_.params)
    if (!call_parameters_.contains(v.name)) in_memory.push_back(v);
  program_.info.local_bytes = align_up(lay_out(local_offset_, fn_.local, in_memory, true), 16);
  for (const ParameterInfo& p : fn_.info.parameters) {
    program_.parameter_bytes = std::max(program_.parameter_bytes, p.offset + p.bytes);
  }
}

void Lowering::fail(std::string message, std::string hint) const {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  throw Error(file_.files[static_cast<std::size_t>(s.file)], s.line, s.column, std::move(message),
              std::move(hint));
}
void Lowering::unknown() const {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const std::string_view base = Opcode(s.opcode).base;
  if (const MissingFeature* missing = missing_feature(base); missing != nullptr)
    fail(fmt::format("{}: '{}'", missing->what, s.opcode), std::string(missing->hint));
  const std::string modifier = unknown_modifier(s.opcode);
  fail(fmt::format("instruction '{}' is not supported{}", s.opcode,
                   modifier.empty() ? "" : fmt::format(": no form of '{}' has '.{}'", base, modifier)),
       "list the supported forms with: stitchwork ptx isa");
}

std::uint32_t Lowering::value(Value v) {
  const auto [it, fresh] = interned_.try_emplace(v, static_cast<std::uint32_t>(f_.values.size()));
  if (fresh) f_.values.push_back(v);
  return it->second;
}
std::uint32_t Lowering::constant(RegisterClass cls, std::uint64_t bits) {
  if (cls == RegisterClass::k16) {
    cls = RegisterClass::k32;
    bits &= 0xffff;
  }
  if (cls == RegisterClass::k32) bits &= 0xffffffff;
  return value({Value::Kind::kBits, cls, bits, 0, 0});
}
std::uint32_t Lowering::temporary(RegisterClass cls) {
  f_.values.push_back({Value::Kind::kRegister, cls, f_.values.size(), 0, 0});
  return static_cast<std::uint32_t>(f_.values.size() - 1);
}

IrInst& Lowering::emit(std::string_view row, std::uint8_t defs, std::uint8_t uses) {
  IrInst i;
  const int r = sim::find_row(row);
  SW_CHECK(r >= 0, "no row {}", row);
  i.row = static_cast<std::uint16_t>(r);
  i.defs = defs;
  i.uses = uses;
  i.statement = static_cast<std::uint32_t>(current_);
  i.guarded = fn_.body[static_cast<std::size_t>(current_)].guard >= 0;
  auto& insts = f_.blocks[static_cast<std::size_t>(block_)].insts;
  insts.push_back(i);
  return insts.back();
}

/// A row with operands only: the first is defined, the others used.
IrInst& Lowering::emit_simple(int row, std::initializer_list<std::uint32_t> operands) {
  IrInst i;
  i.row = static_cast<std::uint16_t>(row);
  i.defs = 1;
  i.uses = static_cast<std::uint8_t>((1u << operands.size()) - 2);
  std::copy(operands.begin(), operands.end(), i.o);
  i.statement = static_cast<std::uint32_t>(current_);
  i.guarded = fn_.body[static_cast<std::size_t>(current_)].guard >= 0;
  i.pure = true;
  auto& insts = f_.blocks[static_cast<std::size_t>(block_)].insts;
  insts.push_back(i);
  return insts.back();
}

void Lowering::lower_row(int row) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const std::string_view signature = sim::isa_rows()[static_cast<std::size_t>(row)].signature;
  if (s.operands.size() != signature.size()) {
    fail(fmt::format("{} takes {} operands, {} given", s.opcode, signature.size(), s.operands.size()));
  }
  std::uint32_t o[6] = {};
  const auto [result_type, source_type] = conversion(Opcode(s.opcode));
  for (std::size_t k = 1; k < signature.size(); ++k)
    o[k] = source(s.operands[k], signature[k], may_be_wider(source_type));
  const Operand& to = s.operands[0];
  const bool widens = may_be_wider(result_type) && to.kind == Operand::Kind::kRegister &&
                      is_wider(class_of(static_cast<std::uint32_t>(to.reg)), signature[0]);
  o[0] = widens ? temporary(class_of_letter(signature[0])) : destination(to, signature[0]);
  IrInst& i = emit_simple(row, {o[0]});
  std::copy(o, o + 6, i.o);
  i.uses = static_cast<std::uint8_t>((1u << signature.size()) - 2);
  if (widens) extend(static_cast<std::uint32_t>(to.reg), o[0], result_type);
}

/// {min,max}{.ftz}{.NaN}{.abs}.f32 of three numbers (PTX ISA 8.8, sm_100): the extremum of two, then of that
/// and the third.
bool Lowering::lower_three_way_extremum(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (!is_three_way_extremum(op, s)) return false;
  std::string plain(op.base);
  for (std::string_view m : op.modifiers)
    if (m != "abs") plain += fmt::format(".{}", m);
  const int row = sim::find_row(plain);
  const auto absolute = std::count(op.modifiers.begin(), op.modifiers.end(), std::string_view("abs"));
  if (row < 0 || op.has("xorsign") || absolute > 1) unknown();
  std::uint32_t o[3];
  for (std::size_t k = 0; k < 3; ++k) {
    o[k] = source(s.operands[k + 1], 'f');
    if (absolute == 0) continue;
    const std::uint32_t t = temporary(RegisterClass::k32);
    emit_simple(sim::find_row("abs.f32"), {t, o[k]});
    o[k] = t;
  }
  const std::uint32_t d = destination(s.operands[0], 'f'), t = temporary(RegisterClass::k32);
  emit_simple(row, {t, o[0], o[1]});
  emit_simple(row, {d, t, o[2]});
  return true;
}

/// A converted value in a register that is wider than its type: sign-extended where the type is signed, else
/// zero-extended (PTX ISA 9.4.1, "Relaxed Type-checking Rules for Destination Operands").
void Lowering::extend(std::uint32_t to, std::uint32_t from, std::string_view type) {
  const bool is_signed = type[0] == 's', narrow = type_bytes(type) <= 2,
             wide = class_of(to) == RegisterClass::k64;
  if (!is_signed) {
    emit_simple(sim::find_row(wide ? "cvt.u64.u32" : "mov.b32"), {to, from});
    return;
  }
  emit_simple(sim::find_row(narrow ? (wide ? "cvt.s64.s16" : "cvt.s32.s16") : "cvt.s64.s32"), {to, from});
}

IrInst& Lowering::emit_wide(std::string_view row, const std::vector<std::uint32_t>& operands,
                            std::size_t first, bool late_defs) {
  constexpr std::size_t kPerInst = std::size(IrInst{}.o);
  auto& insts = f_.blocks[static_cast<std::size_t>(block_)].insts;
  const std::size_t main = insts.size();
  for (std::size_t k = 0; k < operands.size(); ++k) {
    IrInst& i = k % kPerInst == 0 ? emit(k == 0 ? row : "@operands") : insts.back();
    i.o[k % kPerInst] = operands[k];
    ((k < first) != late_defs ? i.defs : i.uses) |= static_cast<std::uint8_t>(1u << k % kPerInst);
  }
  return insts[main];
}

void Lowering::find_blocks() {
  const int n = static_cast<int>(fn_.body.size());
  block_of_statement_.assign(static_cast<std::size_t>(n) + 1, -1);
  std::vector<bool> leader(static_cast<std::size_t>(n) + 1);
  leader[0] = true;
  for (const auto& [name, at] : fn_.labels) leader[static_cast<std::size_t>(at)] = true;
  for (int k = 0; k < n; ++k) {
    const std::string_view base = Opcode(fn_.body[static_cast<std::size_t>(k)].opcode).base;
    if (base == "bra" || base == "ret" || base == "exit") leader[static_cast<std::size_t>(k) + 1] = true;
  }
  int blocks = 0;
  for (int k = 0; k < n; ++k) {
    if (leader[static_cast<std::size_t>(k)]) block_of_statement_[static_cast<std::size_t>(k)] = blocks++;
  }
  exit_block_ = blocks;  // labels and fall-through at the end of the body lead here
  block_of_statement_[static_cast<std::size_t>(n)] = blocks;
  f_.blocks.resize(static_cast<std::size_t>(blocks) + 1);
}

Program Lowering::run() {
  find_blocks();
  const int n = static_cast<int>(fn_.body.size());
  block_ = 0;
  for (int k = 0; k < n; ++k) {
    const int begins = block_of_statement_[static_cast<std::size_t>(k)];
    if (begins > 0 && !block_ended_)
      f_.blocks[static_cast<std::size_t>(begins) - 1].successors.push_back(begins);
    if (begins >= 0) {
      block_ = begins;
      block_ended_ = false;
    }
    current_ = k;
    lower_statement(k);
  }
  if (!block_ended_ && exit_block_ > 0) {
    f_.blocks[static_cast<std::size_t>(exit_block_) - 1].successors.push_back(exit_block_);
  }
  block_ = exit_block_;
  current_ = std::max(n - 1, 0);
  if (n == 0)
    throw Error(file_.file, fn_.info.line, 1, fmt::format("kernel '{}' has no instructions", fn_.info.name));
  emit("@exit").guarded = false;
  mark_polls();
  propagate_copies(f_);
  mark_guesses();
  mark_memos();
  finish(program_);
  return std::move(program_);
}

namespace {

/// The pipe of an instruction's row; of comparisons that are built from several, that of their comparison.
sim::Pipe pipe_of(const Opcode& op, const std::string& opcode) {
  const bool compares = op.base == "setp" || op.base == "set";
  int row = sim::find_row(opcode);
  if (row < 0 && compares) {
    const std::string type = op.last().ends_with("x2")
                                 ? std::string(op.last().substr(0, op.last().size() - 2))
                                 : std::string(op.last());
    row = sim::find_row("setp.eq." + type);
  }
  return row >= 0 ? sim::isa_rows()[static_cast<std::size_t>(row)].pipe : sim::Pipe::kOther;
}

}  // namespace

void Lowering::count_statement(int index) {
  const Statement& s = fn_.body[static_cast<std::size_t>(index)];
  IrBlock& block = f_.blocks[static_cast<std::size_t>(block_)];
  BlockWeights& w = block.weights;
  if (s.weightless) return;
  const std::uint32_t ldst_before = w.ldst;
  ++w.instructions;
  const Opcode op(s.opcode);
  if (op.base == "ld" || op.base == "st" || op.base == "ldu" || op.base == "atom" || op.base == "red") {
    w.ldst += !(op.has("param") || op.has("param::entry") || op.has("param::func"));
  }
  const bool async_copy = s.opcode.starts_with("cp.async.ca.") || s.opcode.starts_with("cp.async.cg.");
  w.async_copies += async_copy;
  w.ldst += op.base == "ldmatrix" || op.base == "stmatrix" || async_copy ||
            s.opcode.starts_with("wmma.load") || s.opcode.starts_with("wmma.store");
  const sim::Pipe pipe = pipe_of(op, s.opcode);
  const sim::IssueSlots slots = sim::issue_slots(s.opcode, pipe);
  w.issue += slots.all;
  block.lines.push_back({{s.line, s.location}, slots.all, w.ldst - ldst_before});
  if (s.guard >= 0) return;  // a guarded instruction is counted for the lanes it runs for
  ++w.unguarded[static_cast<std::size_t>(pipe)];
  const auto add = [&](sim::Pipe of, std::uint16_t count) {
    w.issue_unguarded[static_cast<std::size_t>(of)] += count;
  };
  add(sim::Pipe::kFp32, slots.fp32);
  add(sim::Pipe::kMufu, slots.special);
  add(sim::Pipe::kFp64, slots.fp64);
  add(sim::Pipe::kHalf2, slots.half2);
  add(sim::Pipe::kInt32, slots.int32);
}

void Lowering::lower_statement(int index) {
  const Statement& s = fn_.body[static_cast<std::size_t>(index)];
  count_statement(index);
  const std::string_view listed = listed_form(s.opcode), bulk = bulk_form(s.opcode);
  // Modifiers as a form has them.
  const Opcode op(!listed.empty() ? listed : !bulk.empty() ? bulk : std::string_view(s.opcode));
  if (op.base == "bra" || op.base == "ret" || op.base == "exit") {
    lower_branch();
    return;
  }
  auto& insts = f_.blocks[static_cast<std::size_t>(block_)].insts;
  const std::size_t before = insts.size();
  if (s.guard >= 0) {
    IrInst& g = emit("@guard", 0, 1);
    g.guarded = false;
    g.o[0] = static_cast<std::uint32_t>(s.guard);
    g.flags = s.guard_negated;
    g.aux = static_cast<std::uint16_t>(pipe_of(op, s.opcode));
  }
  if (has_listed_forms(op.base) && listed.empty()) unknown();
  if (op.base == "mov")
    lower_move(op);
  else if (op.base == "setp")
    lower_setp(op);
  else if (op.base == "set")
    lower_set(op);
  else if (op.base == "cvta")
    lower_cvta(op);
  else if (op.base == "ld" || op.base == "ldu")
    lower_memory(op, false);
  else if (op.base == "st" && !op.has("async"))
    lower_memory(op, true);
  else if ((op.base == "atom" || op.base == "red") && !op.has("async"))
    lower_atomic(op, op.base == "red");
  else if (s.opcode == "call")
    lower_call();
  else if (const int row = find_row_in_any_order(s.opcode); row >= 0 && !is_three_way_extremum(op, s))
    lower_row(row);
  else if (!lower_three_way_extremum(op) && !lower_mixed_precision(op) && !lower_control(op) &&
           !lower_cluster_address(op) && !lower_carry(op) && !lower_warp(op) && !lower_async(op) &&
           !lower_mbarrier(op) && !lower_async_store(op) && !lower_tensor_copy(op) && !lower_tensor_map(op) &&
           !lower_bulk(op) && !lower_matrix(op) && !lower_wgmma(op))
    unknown();
  if (s.guard >= 0) {
    emit("@unguard").guarded = false;
    insts[before].imm = static_cast<std::int64_t>(insts.size() - before);
  }
}

void Lowering::lower_branch() {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (!is_listed_form(s.opcode)) unknown();
  IrBlock& block = f_.blocks[static_cast<std::size_t>(block_)];
  int target = exit_block_;
  if (s.opcode.starts_with("bra")) {
    target = block_of_statement_[static_cast<std::size_t>(fn_.labels.find(s.operands[0].name)->second)];
  }
  const int next = block_ + 1;
  if (s.guard < 0) {
    emit("@bra").imm = target;
    block.successors = {target};
  } else {
    IrInst& i = emit("@bra_if", 0, 1);
    i.guarded = false;
    i.o[0] = static_cast<std::uint32_t>(s.guard);
    i.flags = s.guard_negated;
    i.imm = target;
    i.o[1] = static_cast<std::uint32_t>(next);
    block.successors = {target};
    if (next != target) block.successors.push_back(next);
  }
  block_ended_ = true;
}

/// Loads that may wait for another block or warp: they are repeated, and see what others write. Compilers
/// peel the first turn of such a loop: a load of the same place through the same register is the first look.
void Lowering::mark_polls() {
  const std::vector<bool> in_loop = blocks_in_loops(f_.blocks);
  using Place = std::tuple<std::uint16_t, std::uint32_t, std::int64_t>;  // row, address value, offset
  const auto place = [](const IrInst& i) { return Place{i.row, i.o[4], i.imm}; };
  const auto is_load = [](const IrInst& i) {
    return i.polls && (i.defs & 1) && (i.uses >> 4 & 1) && i.o[2] == kNone;
  };
  std::set<Place> polled;
  for (std::size_t b = 0; b < f_.blocks.size(); ++b)
    for (const IrInst& i : f_.blocks[b].insts)
      if (in_loop[b] && is_load(i)) polled.insert(place(i));
  for (std::size_t b = 0; b < f_.blocks.size(); ++b) {
    for (IrInst& i : f_.blocks[b].insts) {
      const std::string_view name = sim::isa_rows()[i.row].spelling;
      program_.has_global_atomics |= name.starts_with("@atom.global");
      if (!i.polls) continue;
      i.polls = in_loop[b] || (is_load(i) && polled.contains(place(i)));
      const bool other_blocks_write = name.find(".global") != name.npos || name.find(".generic") != name.npos;
      program_.communicates |= i.polls && other_blocks_write;
    }
  }
}

}  // namespace stitchwork::ptx
