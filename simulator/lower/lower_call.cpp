// Parameters of inlined calls, and calls of the functions the system provides.
#include "core/base/error.h"
#include "simulator/lower/lower.h"

namespace stitchwork::ptx {
namespace {

bool names_param_space(const Opcode& op) {
  return op.has("param") || op.has("param::func") || op.has("param::entry");
}
/// Calls `f` with every name that an operand holds.
template <class F>
void for_names(const Operand& o, const F& f) {
  if (!o.name.empty()) f(o.name);
  for (const Operand& e : o.elements) for_names(e, f);
}

}  // namespace

/// A .param variable is kept in registers if all its loads and stores name it and cut it at the same places.
void Lowering::find_call_parameters() {
  for (const Variable& v : fn_.params) call_parameters_[v.name];
  for (const Statement& s : fn_.body) {
    const Opcode op(s.opcode);
    const bool load = op.base == "ld", store = op.base == "st";
    for (std::size_t k = 0; k < s.operands.size(); ++k) {
      const Operand& o = s.operands[k];
      const bool accessed = (load && k == 1) || (store && k == 0);
      if (accessed && names_param_space(op) && o.kind == Operand::Kind::kAddress && o.reg < 0) {
        const auto it = call_parameters_.find(o.name);
        if (it == call_parameters_.end()) continue;
        const Operand& data = s.operands[load ? 0 : 1];
        const int bytes = type_bytes(op.last()), count = op.has("v2") ? 2 : op.has("v4") ? 4 : 1;
        bool fits =
            bytes > 0 && bytes <= 8 && (count == 1 || static_cast<int>(data.elements.size()) == count);
        for (int e = 0; fits && e < count; ++e) {
          const std::int64_t at = o.offset + e * bytes;
          auto& parts = it->second.parts;
          const auto next = parts.lower_bound(at);
          if (next != parts.end() && next->first == at) {
            fits = next->second.first == bytes;
          } else {
            fits = (next == parts.end() || at + bytes <= next->first) &&
                   (next == parts.begin() || std::prev(next)->first + std::prev(next)->second.first <= at);
            if (fits) parts[at] = {bytes, kNone};
          }
        }
        if (!fits) call_parameters_.erase(it);
        continue;
      }
      if (s.opcode == "call") continue;  // of a system function: whole scalars, by value
      for_names(o, [&](const std::string& name) { call_parameters_.erase(name); });
    }
  }
  for (auto& [name, parameter] : call_parameters_)
    for (auto& [offset, part] : parameter.parts)
      part.second = temporary(part.first == 8 ? RegisterClass::k64 : RegisterClass::k32);
}

void Lowering::lower_call_parameter(const Opcode& op, bool is_store, const Operand& address,
                                    const Operand& data) {
  const int bytes = type_bytes(op.last());
  const bool sign = op.last()[0] == 's';
  const auto elements = data.kind == Operand::Kind::kVector ? data.elements : std::vector{data};
  std::int64_t offset = address.offset;
  for (const Operand& e : elements) {
    const std::uint32_t v = call_parameters_.find(address.name)->second.parts.at(offset).second;
    offset += bytes;
    const bool wide = e.kind == Operand::Kind::kRegister &&
                      class_of(static_cast<std::uint32_t>(e.reg)) == RegisterClass::k64;
    if (is_store) {
      std::uint32_t x = source(e, letter_of(e, bytes));
      if (bytes < 8 && class_of(x) == RegisterClass::k64) {
        const std::uint32_t low = temporary(RegisterClass::k32);
        emit_simple(sim::find_row("@low32"), {low, x});
        x = low;
      }
      if (bytes < 4)
        emit_simple(sim::find_row("and.b32"),
                    {v, x, constant(RegisterClass::k32, bytes == 1 ? 0xff : 0xffff)});
      else
        emit_simple(sim::find_row(bytes == 8 ? "mov.b64" : "mov.b32"), {v, x}).copy =
            class_of(x) == class_of(v);
      continue;
    }
    const std::uint32_t d = destination(e, letter_of(e, bytes));
    std::uint32_t from = v;
    if (sign && bytes < 4) {
      from = temporary(RegisterClass::k32);
      emit_simple(sim::find_row(bytes == 1 ? "cvt.s32.s8" : "cvt.s32.s16"), {from, v});
    }
    if (class_of(d) == RegisterClass::k16 && sign && bytes == 1)
      emit_simple(sim::find_row("@low16"), {d, from});
    else if (wide != (bytes == 8))
      emit_simple(sim::find_row(wide ? sign ? "cvt.s64.s32" : "cvt.u64.u32" : "@low32"), {d, from});
    else
      emit_simple(sim::find_row(wide ? "mov.b64" : "mov.b32"), {d, from}).copy =
          class_of(d) == class_of(from);
  }
}

/// What is left of a call after inlining: itself, to be counted; or one of a system function.
void Lowering::lower_call() {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (s.operands.empty()) return;
  const std::string& name = s.operands[1].name;
  const auto argument = [&](std::size_t k, char letter) {
    const auto& given = s.operands[2].elements;
    if (k >= given.size()) fail(fmt::format("{} takes more arguments", name));
    const auto it = call_parameters_.find(given[k].name);
    if (it == call_parameters_.end() || it->second.parts.size() != 1) return source(given[k], letter);
    return it->second.parts.begin()->second.second;
  };
  if (name == "__assertfail") {  // message, file, line, function, bytes of a character
    const std::uint32_t message = argument(0, 'd'), file = argument(1, 'd'), line = argument(2, 'r');
    IrInst& i = emit("@assertfail", 0, 7);
    i.o[0] = message;
    i.o[1] = file;
    i.o[2] = line;
    return;
  }
  const std::uint32_t format = argument(0, 'd'), values = argument(1, 'd');
  program_.prints = true;
  IrInst& i = emit("@printf", 0, 6);
  i.o[1] = format;
  i.o[2] = values;
  const auto& results = s.operands[0].elements;
  if (results.empty()) return;
  const auto it = call_parameters_.find(results[0].name);
  if (it == call_parameters_.end() || it->second.parts.empty()) return;
  i.o[0] = it->second.parts.begin()->second.second;
  i.defs = 1;
}

}  // namespace stitchwork::ptx
