// Tensor-core instructions: mma.sync, ldmatrix, stmatrix, movmatrix.
#include <array>
#include <charconv>
#include <optional>

#include "core/base/error.h"
#include "simulator/lower/lower.h"
#include "simulator/machine/atomics.h"
#include "simulator/machine/matrix.h"

namespace stitchwork::ptx {
namespace {

using sim::MatrixElement;
using sim::MatrixShape;

/// Devices that multiply matrices of fp8 (PTX ISA, mma.sync).
constexpr int kFloat8Sm = 89;
/// Devices that multiply sparse ones (PTX ISA, mma.sp).
constexpr int kSparseSm = 80;

constexpr std::pair<std::string_view, MatrixElement> kMatrixTypes[] = {
    {"f16", MatrixElement::kF16},   {"bf16", MatrixElement::kBF16}, {"tf32", MatrixElement::kTF32},
    {"f32", MatrixElement::kF32},   {"f64", MatrixElement::kF64},   {"s8", MatrixElement::kS8},
    {"u8", MatrixElement::kU8},     {"s32", MatrixElement::kS32},   {"e4m3", MatrixElement::kE4M3},
    {"e5m2", MatrixElement::kE5M2}, {"s4", MatrixElement::kS4},     {"u4", MatrixElement::kU4}};

std::optional<MatrixElement> element_of(std::string_view type) {
  for (const auto& [name, e] : kMatrixTypes)
    if (name == type) return e;
  return std::nullopt;
}

/// "m16n8k16"
bool parse_shape(std::string_view text, MatrixShape& shape) {
  const char *at = text.data(), *end = at + text.size();
  for (auto [letter, size] : {std::pair{'m', &shape.m}, {'n', &shape.n}, {'k', &shape.k}}) {
    if (at == end || *at != letter) return false;
    const auto r = std::from_chars(at + 1, end, *size);
    if (r.ec != std::errc()) return false;
    at = r.ptr;
  }
  return at == end;
}

const std::vector<Operand>& elements_of(const Operand& o, std::vector<Operand>& one) {
  if (o.kind == Operand::Kind::kVector) return o.elements;
  one = {o};
  return one;
}

}  // namespace

bool Lowering::lower_matrix(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (op.base == "mma" && op.has("sync")) {
    if (op.modifiers[0].starts_with("sp"))
      lower_sparse_mma(op);
    else
      lower_mma(op);
    return true;
  }
  if (op.base == "wmma" && !op.modifiers.empty()) {
    if (op.modifiers[0] == "mma")
      lower_mma(op);
    else
      lower_wmma_access(op);
    return true;
  }
  const bool load = op.base == "ldmatrix", store = op.base == "stmatrix";
  if (load || store) {
    const int count = op.has("x1") ? 1 : op.has("x2") ? 2 : op.has("x4") ? 4 : 0;
    const bool known = op.has("sync") && op.has("aligned") && op.has("m8n8") && op.last() == "b16";
    const bool generic = !op.has("shared") && !op.has("shared::cta");  // then the address names the window
    if (!known || count == 0 || op.modifiers.size() != 5u + op.has("trans") + !generic) unknown();
    if (s.operands.size() != 2) fail(fmt::format("{} takes two operands", s.opcode));
    const Operand& address = s.operands[load ? 1 : 0];
    std::vector<Operand> one;
    const auto& data = elements_of(s.operands[load ? 0 : 1], one);
    if (static_cast<int>(data.size()) != count || address.kind != Operand::Kind::kAddress)
      fail(fmt::format("{} moves {} registers at an address", s.opcode, count));
    std::uint32_t values[4];
    for (std::size_t k = 0; k < data.size(); ++k)
      values[k] = load ? destination(data[k], 'r') : source(data[k], 'r');
    const std::uint32_t in_window = generic ? within_shared(address) : kNone;
    IrInst& i = emit(load ? "@ldmatrix" : "@stmatrix");
    for (std::size_t k = 0; k < data.size(); ++k) {
      i.o[k] = values[k];
      (load ? i.defs : i.uses) |= static_cast<std::uint8_t>(1 << k);
    }
    i.count = static_cast<std::uint8_t>(count);
    i.flags = op.has("trans");
    set_address(i, address);
    if (generic) i.o[4] = in_window;
    return true;
  }
  if (op.base == "movmatrix") {
    if (s.opcode != "movmatrix.sync.aligned.m8n8.trans.b16" || s.operands.size() != 2) unknown();
    const std::uint32_t a = source(s.operands[1], 'r'), d = destination(s.operands[0], 'r');
    IrInst& i = emit("@movmatrix", 1, 2);
    i.o[0] = d;
    i.o[1] = a;
    return true;
  }
  return false;
}

/// wmma.load.{a,b,c}.sync.aligned.LAYOUT.SHAPE{.global,.shared}.TYPE and wmma.store.d
void Lowering::lower_wmma_access(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const auto& m = op.modifiers;
  const bool load = m[0] == "load", store = m[0] == "store";
  MatrixShape shape;
  const auto element = element_of(op.last());
  const bool placed = m.size() == 8;  // a state space is named
  if (!(load || store) || (m.size() != 7 && !placed) || m[2] != "sync" || m[3] != "aligned" ||
      (m[4] != "row" && m[4] != "col") || !parse_shape(m[5], shape) || !element || sim::is_int4(*element) ||
      sim::is_float8(*element))
    unknown();
  const bool shared = placed && (m[6] == "shared" || m[6] == "shared::cta");
  if (placed && !shared && m[6] != "global") unknown();
  const bool is_a = m[1] == "a", is_b = m[1] == "b", is_c = m[1] == (load ? "c" : "d");
  if (!(is_c || (load && (is_a || is_b)))) unknown();
  // PTX ISA, wmma.load: the types of factors and of accumulators.
  using E = MatrixElement;
  const bool wide = *element == E::kF32 || *element == E::kS32;
  const bool narrow_only = *element == E::kBF16 || *element == E::kTF32 || sim::is_int8(*element);
  if (is_c ? narrow_only : wide) unknown();
  const sim::WmmaMatrix matrix{.rows = is_b ? shape.k : shape.m,
                               .columns = is_a ? shape.k : shape.n,
                               .element = *element,
                               .column_major = m[4] == "col"};
  if (s.operands.size() < 2 || s.operands.size() > 3) fail(fmt::format("{} takes 2 or 3 operands", s.opcode));
  const Operand& address = s.operands[load ? 1 : 0];
  std::vector<Operand> one;
  const auto& parts = elements_of(s.operands[load ? 0 : 1], one);
  const int registers = sim::wmma_registers(matrix.rows * matrix.columns, *element, !is_c);
  if (registers == 0 || static_cast<int>(parts.size()) != registers ||
      address.kind != Operand::Kind::kAddress)
    fail(fmt::format("{} moves {} registers at an address", s.opcode, registers));
  std::int64_t offset = 0;
  std::uint32_t base = address_value(address, &offset);
  const bool narrow = class_of(base) == RegisterClass::k32;
  if (!narrow && class_of(base) != RegisterClass::k64) fail("an address has 32 or 64 bits");
  if (offset != 0) {
    const std::uint32_t t = temporary(class_of(base));
    emit_simple(sim::find_row(narrow ? "add.u32" : "add.u64"),
                {t, base, constant(class_of(base), static_cast<std::uint64_t>(offset))});
    base = t;
  }
  const std::uint32_t stride =
      s.operands.size() == 3
          ? source(s.operands[2], 'r')
          : constant(RegisterClass::k32, static_cast<std::uint64_t>(matrix.default_stride()));
  const char letter = *element == MatrixElement::kF64 ? 'e' : *element == MatrixElement::kF32 ? 'f' : 'r';
  std::vector<std::uint32_t> order{base, stride};
  for (const Operand& part : parts) order.push_back(load ? destination(part, letter) : source(part, letter));
  IrInst& i = emit_wide(load ? "@wmma.load" : "@wmma.store", order, load ? 2 : order.size(), true);
  i.imm = matrix.bits();
  i.count = static_cast<std::uint8_t>(registers);
  i.flags = shared ? 1 : 0;
  if (narrow) i.aux |= sim::kAddress32;
}

/// mma.sync.aligned.SHAPE.row.col{.satfinite}.D.A.B.C; wmma.mma.sync.aligned.ALAYOUT.BLAYOUT.SHAPE.D{.A.B}.C
void Lowering::lower_mma(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  auto m = op.modifiers;
  const bool wmma = op.base == "wmma";
  if (wmma) m.erase(m.begin());
  const auto saturations = std::erase(m, std::string_view("satfinite"));
  const bool saturate = saturations > 0;
  if (saturations > 1) unknown();
  MatrixShape shape;
  // Products of f64 are rounded to nearest, said or not.
  const bool nearest = std::erase(m, std::string_view("rn")) > 0;
  if (wmma && m.size() == 7) m.insert(m.end() - 1, 2, std::string_view("f16"));  // D.C means D.f16.f16.C
  if (m.size() != 9 || m[0] != "sync" || m[1] != "aligned") unknown();
  const std::string_view shape_text = m[wmma ? 4 : 2], rows = m[wmma ? 2 : 3], columns = m[wmma ? 3 : 4];
  const auto layout = [](std::string_view t) { return t == "row" || t == "col"; };
  if (!parse_shape(shape_text, shape) ||
      (wmma ? !layout(rows) || !layout(columns) : rows != "row" || columns != "col"))
    unknown();
  if (m.size() != 9) unknown();
  const auto d = element_of(m[5]), a = element_of(m[6]), b = element_of(m[7]), c = element_of(m[8]);
  const auto supported = wmma ? sim::wmma_supported : sim::mma_supported;
  if (nearest && a != MatrixElement::kF64) unknown();
  if (!d || !a || !b || !c || !supported(shape, *a, *b, *c, *d, saturate)) unknown();
  if (sim::is_float8(*a)) require_sm(kFloat8Sm, "matrix products of fp8");
  shape.a = *a;
  shape.b = *b;
  shape.c = *c;
  shape.d = *d;
  shape.saturate = saturate;
  if (s.operands.size() != 4) fail(fmt::format("{} takes four operands", s.opcode));
  const auto registers = [&](int elements, MatrixElement e, bool input) {
    return wmma ? sim::wmma_registers(elements, e, input) : sim::fragment_registers(elements, e);
  };
  const int counts[4] = {registers(shape.m * shape.n, *d, false), registers(shape.m * shape.k, *a, true),
                         registers(shape.n * shape.k, *b, true), registers(shape.m * shape.n, *c, false)};
  const MatrixElement elements[4] = {*d, *a, *b, *c};
  std::vector<std::uint32_t> order[4];
  for (std::size_t o = 1; o <= 4; ++o) {  // the result last: its registers may be sources too
    const MatrixElement e = elements[o % 4];
    order[o % 4] =
        matrix_registers(o % 4, counts[o % 4], e == MatrixElement::kF64, e == MatrixElement::kF32, o == 4);
  }
  std::vector<std::uint32_t> all = order[0];
  for (int o = 1; o < 4; ++o) all.insert(all.end(), order[o].begin(), order[o].end());
  f_.blocks[static_cast<std::size_t>(block_)]
      .weights.multiply_adds[static_cast<std::size_t>(sim::tensor_type(shape))] +=
      static_cast<std::uint32_t>(shape.m * shape.n * shape.k);
  emit_wide(wmma ? "@wmma.mma" : "@mma", all, order[0].size(), false).imm = shape.bits();
}

/// The registers of a matrix that is operand `k` of the statement.
std::vector<std::uint32_t> Lowering::matrix_registers(std::size_t k, int count, bool is_double, bool is_float,
                                                      bool defines) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  std::vector<Operand> one;
  const auto& parts = elements_of(s.operands[k], one);
  if (static_cast<int>(parts.size()) != count)
    fail(fmt::format("operand {} of {} has {} registers, {} given", k, s.opcode, count, parts.size()));
  const char letter = is_double ? 'e' : is_float ? 'f' : 'r';
  std::vector<std::uint32_t> registers;
  for (const Operand& part : parts)
    registers.push_back(defines ? destination(part, letter) : source(part, letter));
  return registers;
}

/// mma.sp{::ordered_metadata}.sync.aligned.SHAPE.row.col{.satfinite}.D.A.B.C d, a, b, c, metadata, selector
void Lowering::lower_sparse_mma(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  auto m = op.modifiers;
  if (m[0] != "sp" && m[0] != "sp::ordered_metadata") unknown();
  m.erase(m.begin());
  const auto saturations = std::erase(m, std::string_view("satfinite"));
  const bool saturate = saturations > 0;
  if (saturations > 1) unknown();
  MatrixShape shape;
  if (m.size() != 9 || m[0] != "sync" || m[1] != "aligned" || !parse_shape(m[2], shape) || m[3] != "row" ||
      m[4] != "col")
    unknown();
  const auto d = element_of(m[5]), a = element_of(m[6]), b = element_of(m[7]), c = element_of(m[8]);
  if (!d || !a || !b || !c || !sim::sparse_supported(shape, *a, *b, *c, *d, saturate)) unknown();
  require_sm(sim::is_float8(*a) ? kFloat8Sm : kSparseSm, "products of sparse matrices");
  shape.a = *a;
  shape.b = *b;
  shape.c = *c;
  shape.d = *d;
  shape.saturate = saturate;
  if (s.operands.size() != 6) fail(fmt::format("{} takes six operands", s.opcode));
  const Operand& selector = s.operands[5];
  if (selector.kind != Operand::Kind::kInteger ||
      selector.bits >= static_cast<std::uint64_t>(sim::sparse_selectors(shape)))
    fail(fmt::format("{}: the sparsity selector is a constant below {}", s.opcode,
                     sim::sparse_selectors(shape)));
  const int accumulators = shape.m * shape.n;
  const auto registers = [&](std::size_t k, int elements, MatrixElement e, bool defines) {
    return matrix_registers(k, sim::fragment_registers(elements, e), false, e == MatrixElement::kF32,
                            defines);
  };
  std::vector<std::uint32_t> sources = registers(1, shape.m * shape.k / 2, *a, false);
  for (const auto& more : {registers(2, shape.n * shape.k, *b, false), registers(3, accumulators, *c, false)})
    sources.insert(sources.end(), more.begin(), more.end());
  sources.push_back(source(s.operands[4], 'r'));
  std::vector<std::uint32_t> all = registers(0, accumulators, *d, true);
  const std::size_t defined = all.size();
  all.insert(all.end(), sources.begin(), sources.end());
  f_.blocks[static_cast<std::size_t>(block_)]
      .weights.multiply_adds[static_cast<std::size_t>(sim::tensor_type(shape))] +=
      static_cast<std::uint32_t>(accumulators * shape.k / 2);
  IrInst& i = emit_wide("@mma.sp", all, defined, false);
  i.imm = shape.bits();
  i.flags = static_cast<std::uint8_t>(selector.bits);
}

std::vector<std::string> matrix_forms() {
  std::vector<std::string> forms;
  const auto add = [&](const std::string& begin, const char* layout, const MatrixShape& shape,
                       auto supported) {
    for (const auto& [a, a_type] : kMatrixTypes)
      for (const auto& [b, b_type] : kMatrixTypes)
        for (const auto& [c, c_type] : kMatrixTypes)
          for (const auto& [d, d_type] : kMatrixTypes) {
            if (!supported(shape, a_type, b_type, c_type, d_type, false)) continue;
            forms.push_back(fmt::format(
                "{}.sync.aligned.{}{}.{}.{}.{}.{}", begin, layout,
                supported(shape, a_type, b_type, c_type, d_type, true) ? "{.satfinite}" : "", d, a, b, c));
          }
  };
  for (const int m : {8, 16})
    for (const int k : {4, 8, 16, 32, 64, 128}) {
      const MatrixShape shape{.m = m, .n = 8, .k = k};
      const std::string layout = fmt::format("m{}n8k{}.row.col", m, k);
      add("mma", layout.c_str(), shape, sim::mma_supported);
      add("mma.sp{::ordered_metadata}", layout.c_str(), shape, sim::sparse_supported);
    }
  for (const auto& [m, n, k] : {std::array{16, 16, 16}, {32, 8, 16}, {8, 32, 16}, {16, 16, 8}, {8, 8, 4}})
    add("wmma.mma", fmt::format("{{row,col}}.{{row,col}}.m{}n{}k{}", m, n, k).c_str(),
        {.m = m, .n = n, .k = k}, sim::wmma_supported);
  return forms;
}

}  // namespace stitchwork::ptx
