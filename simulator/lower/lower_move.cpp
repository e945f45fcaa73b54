// Moves: of one register, of vectors packed and unpacked, of 16 bytes.
#include "simulator/lower/lower.h"

namespace stitchwork::ptx {

void Lowering::lower_move(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (s.operands.size() != 2) fail("mov takes two operands");
  if (op.last().find("f16") != std::string_view::npos) unknown();
  const Operand& to = s.operands[0];
  const Operand& from = s.operands[1];
  const int bytes = op.last() == "pred" ? 0 : type_bytes(op.last());
  if (op.modifiers.size() == 2 && bytes > 0 && bytes <= 8) return lower_elementwise_move(op, to, from);
  if (bytes == 16 && op.modifiers.size() == 1) {
    lower_wide_move(to, from);
    return;
  }
  if (op.modifiers.size() != 1 || (bytes == 0 && op.last() != "pred") || bytes > 8) unknown();
  using Kind = Operand::Kind;
  if (from.kind == Kind::kVector || to.kind == Kind::kVector) {
    lower_vector_move(bytes, to, from);
    return;
  }
  const bool is_float = op.last()[0] == 'f';
  const char letter = bytes == 0   ? 'p'
                      : bytes == 8 ? (is_float ? 'e' : 'd')
                      : bytes == 4 ? (is_float ? 'f' : 'r')
                                   : 'h';
  const std::uint32_t a = source(from, letter);
  const std::uint32_t d = destination(to, letter);
  IrInst& i = emit_simple(sim::find_row(bytes == 0   ? "mov.pred"
                                        : bytes == 8 ? "mov.b64"
                                                     : "mov.b32"),
                          {d, a});
  // A 16-bit destination of a 16-bit source shares its lane form with 32 bits.
  i.copy = class_of(d) == class_of(a);
}

/// mov.{v2,v4,v8}.TYPE: each element of a vector to that of another.
void Lowering::lower_elementwise_move(const Opcode& op, const Operand& to, const Operand& from) {
  const std::string_view count = op.modifiers[0];
  const std::size_t n = count == "v2" ? 2 : count == "v4" ? 4 : count == "v8" ? 8 : 0;
  if (n == 0 || to.elements.size() != n || from.elements.size() != n) unknown();
  const int bytes = type_bytes(op.last());
  const bool is_float = op.last()[0] == 'f';
  const char letter = bytes == 8 ? (is_float ? 'e' : 'd') : bytes == 4 ? (is_float ? 'f' : 'r') : 'h';
  const int row = sim::find_row(bytes == 8 ? "mov.b64" : "mov.b32");
  // Copied first: registers may be on both sides.
  std::vector<std::uint32_t> values;
  for (const Operand& e : from.elements) {
    values.push_back(temporary(class_of_letter(letter)));
    emit_simple(row, {values.back(), source(e, letter)}).copy = true;
  }
  for (std::size_t k = 0; k < n; ++k)
    emit_simple(row, {destination(to.elements[k], letter), values[k]}).copy = true;
}

/// mov.{b16,b32,b64} between a register and two, four or eight equal parts of it.
void Lowering::lower_vector_move(int bytes, const Operand& to, const Operand& from) {
  using Kind = Operand::Kind;
  const bool packs = from.kind == Kind::kVector;
  const Operand& whole = packs ? to : from;
  const auto& parts = packs ? from.elements : to.elements;
  const int n = static_cast<int>(parts.size());
  if (whole.kind == Kind::kVector || bytes < 2 || (n != 2 && n != 4 && n != 8) || n > bytes) unknown();
  const int part = bytes / n;
  const char letter = bytes == 8 ? 'd' : bytes == 4 ? 'r' : 'h', part_letter = part == 4 ? 'r' : 'h';
  const auto word = [&](std::string_view row, std::initializer_list<std::uint32_t> sources) {
    const std::uint32_t t = temporary(RegisterClass::k32);
    IrInst& i = emit_simple(sim::find_row(row), {t});
    std::copy(sources.begin(), sources.end(), i.o + 1);
    i.uses = static_cast<std::uint8_t>((1u << (sources.size() + 1)) - 2);
    return t;
  };
  const auto number = [&](std::uint64_t v) { return constant(RegisterClass::k32, v); };
  if (packs) {
    std::vector<std::uint32_t> values;
    for (const Operand& p : parts) values.push_back(source(p, part_letter));
    // Pairs of parts become parts of twice their size, until all are one.
    for (int size = part; values.size() > 1; size *= 2) {
      std::vector<std::uint32_t> pairs;
      for (std::size_t k = 0; k < values.size(); k += 2) {
        if (values.size() == 2 && size > 1) {
          emit_simple(sim::find_row(size == 4 ? "@pack64" : "@pack32"),
                      {destination(to, letter), values[0], values[1]});
          return;
        }
        const auto joined = size == 2 ? word("@pack32", {values[k], values[k + 1]})
                                      : word("bfi.b32", {values[k + 1], values[k], number(8), number(24)});
        pairs.push_back(size == 1 ? word("@low16", {joined}) : joined);
      }
      values = std::move(pairs);
    }
    emit_simple(sim::find_row("mov.b32"), {destination(to, letter), values[0]});
    return;
  }
  std::uint32_t a = source(from, letter);
  if (bytes == 2) a = word("mov.b32", {a});  // a part may be the register it is of
  for (int k = 0; k < n; ++k) {
    const int at = k * part;
    const std::uint32_t d = destination(parts[static_cast<std::size_t>(k)], part_letter);
    if (part == 4) {
      emit_simple(sim::find_row(k == 0 ? "@low32" : "@high32"), {d, a});
      continue;
    }
    const std::uint32_t of_word = bytes < 8 ? a : word(at < 4 ? "@low32" : "@high32", {a});
    if (part == 2)
      emit_simple(sim::find_row(at % 4 == 0 ? "@low16" : "@high16"), {d, of_word});
    else
      emit_simple(sim::find_row("bfe.u32"),
                  {d, of_word, number(static_cast<std::uint64_t>(at % 4 * 8)), number(8)});
  }
}

/// mov.b128: between a 128-bit register, which is two of 64 bits, and two values or another such register.
void Lowering::lower_wide_move(const Operand& to, const Operand& from) {
  const auto halves = [&](const Operand& o) {
    if (o.kind == Operand::Kind::kVector && o.elements.size() == 2) return o.elements;
    if (o.kind != Operand::Kind::kRegister || !o.wide)
      fail("expected a register of type .b128 or two of 64 bits");
    std::vector<Operand> both{o, o};
    ++both[1].reg;
    return both;
  };
  const auto ds = halves(to), as = halves(from);
  // Copied first: registers may be on both sides.
  const std::uint32_t low = temporary(RegisterClass::k64), high = temporary(RegisterClass::k64);
  emit_simple(sim::find_row("mov.b64"), {low, source(as[0], 'd')});
  emit_simple(sim::find_row("mov.b64"), {high, source(as[1], 'd')});
  emit_simple(sim::find_row("mov.b64"), {destination(ds[0], 'd'), low}).copy = true;
  emit_simple(sim::find_row("mov.b64"), {destination(ds[1], 'd'), high}).copy = true;
}

/// Comparison of one half of packed operands.
std::uint32_t Lowering::compare_half(const std::string& opcode, const Operand& a, const Operand& b,
                                     bool high) {
  const int row = sim::find_row(opcode);
  if (row < 0) unknown();
  std::uint32_t half[2];
  for (int k = 0; k < 2; ++k) {
    half[k] = temporary(RegisterClass::k32);
    emit_simple(sim::find_row(high ? "@high16" : "@low16"), {half[k], source(k == 0 ? a : b, 'r')});
  }
  const std::uint32_t p = temporary(RegisterClass::kPred);
  emit_simple(row, {p, half[0], half[1]});
  return p;
}

}  // namespace stitchwork::ptx
