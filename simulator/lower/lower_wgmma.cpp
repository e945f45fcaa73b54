// Matrix products of a warpgroup (PTX ISA 8.7, 9.7.15).
#include <charconv>

#include "core/base/error.h"
#include "simulator/isa/forms.h"
#include "simulator/lower/lower.h"
#include "simulator/machine/wgmma.h"

namespace stitchwork::ptx {
namespace {

using sim::MatrixElement;
using sim::WgmmaForm;

/// Devices that have it: sm_90a alone, by PTX ISA 8.7, 9.7.15.
constexpr int kWgmmaSm = 90;

MatrixElement wgmma_element(std::string_view type) {
  static constexpr std::pair<std::string_view, MatrixElement> kTypes[] = {
      {"f16", MatrixElement::kF16}, {"bf16", MatrixElement::kBF16}, {"tf32", MatrixElement::kTF32},
      {"f32", MatrixElement::kF32}, {"e4m3", MatrixElement::kE4M3}, {"e5m2", MatrixElement::kE5M2},
      {"s8", MatrixElement::kS8},   {"u8", MatrixElement::kU8},     {"s32", MatrixElement::kS32}};
  for (const auto& [name, element] : kTypes)
    if (name == type) return element;
  SW_CHECK(false, "no element of wgmma is {}", type);
}

/// "m64n128k16", as listed
void read_shape(std::string_view text, WgmmaForm& form) {
  const std::size_t n = text.find('n'), k = text.find('k');
  std::from_chars(text.data() + n + 1, text.data() + k, form.n);
  std::from_chars(text.data() + k + 1, text.data() + text.size(), form.k);
}

}  // namespace

bool Lowering::lower_wgmma(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (op.base != "wgmma") return false;
  require_sm(kWgmmaSm, "wgmma");
  if (file_.target.starts_with("sm_") && !file_.target.starts_with("sm_90a"))
    fail(fmt::format("wgmma wants .target sm_90a, not {}", file_.target), "compile for sm_90a");
  if (op.modifiers[0] == "mma_async") {
    lower_wgmma_product(op);
    return true;
  }
  const bool waits = op.modifiers[0] == "wait_group";
  if (s.operands.size() != (waits ? 1u : 0u) || (waits && s.operands[0].kind != Operand::Kind::kInteger))
    fail(fmt::format("{} takes {}", s.opcode, waits ? "a constant" : "no operands"));
  IrInst& i = emit(waits ? "@wgmma.wait" : op.modifiers[0] == "fence" ? "@wgmma.fence" : "@wgmma.commit");
  if (waits) i.imm = static_cast<std::int64_t>(s.operands[0].bits & 0xffffffff);
  return true;
}

/// wgmma.mma_async.sync.aligned.SHAPE{.satfinite}.D.A.B d, a, b, scale-d{, scale-a, scale-b}{, trans-a}{,
/// trans-b}
void Lowering::lower_wgmma_product(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const auto& m = op.modifiers;
  WgmmaForm form;
  read_shape(m[3], form);
  form.saturate = op.has("satfinite");
  form.d = wgmma_element(m[m.size() - 3]);
  form.a = wgmma_element(m[m.size() - 2]);
  form.b = wgmma_element(m[m.size() - 1]);
  const bool whole = form.d == MatrixElement::kS32;
  const bool halves = form.a == MatrixElement::kF16 || form.a == MatrixElement::kBF16;
  if (s.operands.size() < 4) fail(fmt::format("{} takes at least four operands", s.opcode));
  form.a_in_registers = s.operands[1].kind == Operand::Kind::kVector;
  const std::size_t scales = whole ? 0 : 2, transposes = !halves ? 0 : form.a_in_registers ? 1 : 2;
  if (s.operands.size() != 4 + scales + transposes)
    fail(fmt::format("{} takes {} operands, {} given", s.opcode, 4 + scales + transposes, s.operands.size()));
  const auto constant_of = [&](std::size_t k, std::int64_t least, const char* what) {
    const auto v = static_cast<std::int64_t>(s.operands[k].bits);
    if (s.operands[k].kind != Operand::Kind::kInteger || (v != 1 && v != least))
      fail(fmt::format("{}: {} is 1 or {}", s.opcode, what, least));
    return v;
  };
  if (scales != 0) {
    form.negates_a = constant_of(4, -1, "imm-scale-a") == -1;
    form.negates_b = constant_of(5, -1, "imm-scale-b") == -1;
  }
  if (transposes == 2) form.m_major = constant_of(6, 0, "imm-trans-a") == 1;
  if (transposes != 0) form.n_major = constant_of(5 + transposes, 0, "imm-trans-b") == 1;
  const auto elements = [&](std::size_t k, int count) {
    const Operand& o = s.operands[k];
    const std::vector<Operand> parts = o.kind == Operand::Kind::kVector ? o.elements : std::vector{o};
    if (static_cast<int>(parts.size()) != count)
      fail(fmt::format("operand {} of {} has {} registers, {} given", k, s.opcode, count, parts.size()));
    return parts;
  };
  const std::vector<Operand> d = elements(0, form.d_registers());
  const char letter = form.d == MatrixElement::kF32 ? 'f' : 'r';
  std::vector<std::uint32_t> order, c;
  for (const Operand& part : d) c.push_back(source(part, letter));
  for (const Operand& part : elements(1, form.a_operands()))
    order.push_back(source(part, form.a_in_registers ? 'r' : 'd'));
  order.push_back(source(s.operands[2], 'd'));
  order.push_back(source(s.operands[3], 'p'));
  std::vector<std::uint32_t> all;
  for (const Operand& part : d) all.push_back(destination(part, letter));
  all.insert(all.end(), order.begin(), order.end());
  all.insert(all.end(), c.begin(), c.end());
  sim::MatrixShape shape;
  shape.a = form.a;
  // A warp's share.
  f_.blocks[static_cast<std::size_t>(block_)]
      .weights.multiply_adds[static_cast<std::size_t>(sim::tensor_type(shape))] +=
      static_cast<std::uint32_t>(WgmmaForm::kM / sim::kWarpgroupWarps * form.n * form.k);
  IrInst& i = emit_wide("@wgmma", all, d.size(), false);
  i.imm = form.bits();
  i.count = static_cast<std::uint8_t>(form.operands_before_c());
  i.aux = static_cast<std::uint16_t>((all.size() + std::size(i.o) - 1) / std::size(i.o));
}

}  // namespace stitchwork::ptx
