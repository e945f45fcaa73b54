// Tensor copies, their prefetches and reductions (PTX ISA 8.7, 9.7.9.27).
#include <algorithm>

#include "core/base/error.h"
#include "simulator/isa/forms.h"
#include "simulator/lower/lower.h"
#include "simulator/machine/tensor_copy.h"
#include "simulator/tensor_map.h"

namespace stitchwork::ptx {
namespace {

/// Devices that have tensor copies, and those that gather and scatter rows (PTX ISA 8.8, 9.7.9.27.1.2).
constexpr int kTensorSm = 90, kGatherSm = 100;
/// Targets that have what of it sm_100 has not (ptxas 13.0).
constexpr std::string_view kGatherTargets[] = {"sm_100a", "sm_100f", "sm_101a", "sm_101f",
                                               "sm_103a", "sm_103f", "sm_110a", "sm_110f"};

/// What a copy's opcode says of it.
struct TensorForm {
  explicit TensorForm(const Opcode& op)
      : prefetch(op.has("prefetch")),
        reduce(op.modifiers[0] == "reduce"),
        load(op.has("mbarrier::complete_tx::bytes")),
        im2col(op.has("im2col") || op.has("im2col_no_offs")),
        rows(op.has("tile::gather4") || op.has("tile::scatter4")),
        offsets(op.has("im2col")),
        hint(op.has("L2::cache_hint")),
        multicast(op.has("multicast::cluster")) {
    for (const std::string_view m : op.modifiers)
      if (m.size() == 2 && m[1] == 'd') rank = m[0] - '0';
  }
  bool prefetch, reduce, load, im2col, rows, offsets, hint, multicast;
  int rank = 0;
  std::size_t map_at() const { return load ? 1 : 0; }
  std::size_t addresses() const { return prefetch ? 1 : load ? 3 : 2; }
  int coordinates() const { return rows ? 5 : rank; }
  std::string_view row() const {
    return load ? "@tensor.load" : prefetch ? "@tensor.prefetch" : "@tensor.store";
  }
  std::string operands() const {
    return fmt::format("{}[map, {{coordinates}}]{}{}{}{}", load ? "[shared], " : "",
                       load       ? ", [mbarrier]"
                       : prefetch ? ""
                                  : ", [shared]",
                       offsets ? ", {im2col offsets}" : "", multicast ? ", a mask of blocks" : "",
                       hint ? ", a cache policy" : "");
  }
};

/// The elements of an operand in braces, which stands alone or in an address.
std::vector<Operand> elements_of(const Operand& operand) {
  const bool in_braces = operand.elements.size() == 1 && operand.elements[0].kind == Operand::Kind::kVector;
  return in_braces ? operand.elements[0].elements : operand.elements;
}

}  // namespace

/// The generic address of the map that an operand [map, {coordinates}] names.
std::uint32_t Lowering::tensor_map_address(const Operand& map) {
  Operand plain = map;
  plain.elements.clear();
  const auto& parameters = fn_.info.parameters;
  const auto parameter = std::find_if(parameters.begin(), parameters.end(),
                                      [&](const ParameterInfo& p) { return p.name == map.name; });
  if (map.reg < 0 && parameter != parameters.end())
    return constant(RegisterClass::k64, (sim::kParamWindow << sim::kAllocationShift) + parameter->offset +
                                            static_cast<std::uint64_t>(map.offset));
  const std::uint32_t v = whole_address(plain);
  if (class_of(v) != RegisterClass::k64) fail("the address of a tensor map has 64 bits");
  return v;
}

/// Devices and targets that a tensor copy wants.
void Lowering::require_tensor_copies(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  require_sm(kTensorSm, "tensor copies");
  if (!op.has("tile::gather4") && !op.has("tile::scatter4")) return;
  require_sm(kGatherSm, "tensor copies that gather or scatter rows");
  const bool plain = op.has("tile::gather4") && op.has("shared::cta");
  if (!plain && std::ranges::find(kGatherTargets, file_.target) == std::end(kGatherTargets))
    fail(fmt::format("{} wants .target sm_100a, not {}", s.opcode, file_.target), "compile for sm_100a");
}

/// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, cp.async.bulk.prefetch.tensor
bool Lowering::lower_tensor_copy(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (op.base != "cp" || !op.has("bulk") || !op.has("tensor")) return false;
  for (const std::string_view m : op.modifiers)
    if (m.starts_with("im2col::") || m.starts_with("cta_group"))
      fail(fmt::format("tensor copies '.{}' are not simulated: '{}'", m, s.opcode),
           m.starts_with("im2col") ? "copy columns of pixels (.im2col)" : "leave it out");
  if (bulk_form(s.opcode).empty()) unknown();
  require_tensor_copies(op);
  const TensorForm form(op);
  bool fits = s.operands.size() == form.addresses() + form.offsets + form.multicast + form.hint;
  for (std::size_t k = 0; fits && k < form.addresses(); ++k)
    fits = s.operands[k].kind == Operand::Kind::kAddress &&
           (k == form.map_at() || s.operands[k].elements.empty());
  if (fits && form.offsets) fits = s.operands[form.addresses()].kind == Operand::Kind::kVector;
  if (!fits) fail(fmt::format("{} takes {}", s.opcode, form.operands()));
  const Operand& map = s.operands[form.map_at()];
  const std::vector<Operand> numbers = elements_of(map);
  if (static_cast<int>(numbers.size()) != form.coordinates())
    fail(fmt::format("{} takes {} coordinates, {} given", s.opcode, form.coordinates(), numbers.size()));
  std::vector<Operand> offsets;
  if (form.offsets) offsets = elements_of(s.operands[form.addresses()]);
  if (form.offsets && static_cast<int>(offsets.size()) != form.rank - 2)
    fail(fmt::format("{} takes {} im2col offsets, {} given", s.opcode, form.rank - 2, offsets.size()));
  if (form.hint) source(s.operands.back(), 'd');
  std::vector<std::uint32_t> order;
  std::uint16_t narrow = 0;
  const auto add_shared = [&](const Operand& address, std::uint16_t bit) {
    order.push_back(whole_address(address));
    if (class_of(order.back()) == RegisterClass::k32) narrow |= bit;
  };
  if (!form.prefetch) add_shared(s.operands[form.load ? 0 : 1], sim::kBulkNarrowShared);
  order.push_back(tensor_map_address(map));
  if (form.load) add_shared(s.operands[2], sim::kBulkNarrowMbarrier);
  for (const Operand& coordinate : numbers) order.push_back(source(coordinate, 'r'));
  for (const Operand& offset : offsets) order.push_back(source(offset, 'h'));
  if (form.multicast) order.push_back(source(s.operands[form.addresses() + form.offsets], 'h'));
  IrInst& i = emit_wide(form.row(), order, 0, false);
  i.flags =
      static_cast<std::uint8_t>(form.rank | (form.multicast ? sim::kTensorMulticast : 0) |
                                (op.has("shared::cluster") ? sim::kTensorRemote : 0) |
                                (form.im2col ? sim::kTensorIm2col : 0) | (form.rows ? sim::kTensorRows : 0));
  i.aux = narrow;
  if (!form.reduce) return true;
  const auto operation = std::find_if(std::begin(sim::kTensorReductions), std::end(sim::kTensorReductions),
                                      [&](std::string_view name) { return op.has(name); });
  i.imm = 1 + (operation - std::begin(sim::kTensorReductions));
  i.aux |= sim::kStrong;
  program_.has_global_atomics = true;  // blocks run in order
  return true;
}

/// tensormap.replace.tile.FIELD{.global,.shared::cta}.b1024.TYPE [map]{, ord}, value; tensormap.cp_fenceproxy
bool Lowering::lower_tensor_map(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (op.base != "tensormap") return false;
  require_sm(kTensorSm, "tensor maps that kernels write");
  const auto is_address = [&](std::size_t k) {
    return s.operands[k].kind == Operand::Kind::kAddress && s.operands[k].elements.empty();
  };
  if (op.modifiers[0] == "cp_fenceproxy") {
    if (s.operands.size() != 3 || !is_address(0) || !is_address(1) ||
        s.operands[2].kind != Operand::Kind::kInteger || s.operands[2].bits != sim::TensorMap::kBytes)
      fail(fmt::format("{} takes [global], [shared], 128", s.opcode));
    const std::uint32_t to = whole_address(s.operands[0]), from = whole_address(s.operands[1]);
    IrInst& i = emit("@tensormap.copy", 0, 3);
    i.o[0] = to;
    i.o[1] = from;
    if (class_of(from) == RegisterClass::k32) i.aux = sim::kBulkNarrowShared;
    return true;
  }
  const auto field =
      std::find(std::begin(sim::kTensorMapFields), std::end(sim::kTensorMapFields), op.modifiers[2]) -
      std::begin(sim::kTensorMapFields);
  const auto which = static_cast<sim::TensorMapField>(field);
  using Field = sim::TensorMapField;
  const bool by_dimension = which == Field::kStride || which == Field::kBox || which == Field::kDim ||
                            which == Field::kElementStride;
  const std::size_t count = by_dimension ? 3 : 2;
  const std::uint64_t dimensions = sim::TensorMap::kMaxRank - (which == Field::kStride ? 1 : 0);
  if (s.operands.size() != count || !is_address(0) ||
      (by_dimension && (s.operands[1].kind != Operand::Kind::kInteger || s.operands[1].bits >= dimensions)))
    fail(fmt::format("{} takes [map]{}, a value", s.opcode, by_dimension ? ", a dimension" : ""));
  const std::uint32_t map = whole_address(s.operands[0]);
  std::uint32_t value = source(s.operands[count - 1], op.last() == "b64" ? 'd' : 'r');
  if (class_of(value) != RegisterClass::k64) {
    const std::uint32_t wide = temporary(RegisterClass::k64);
    emit_simple(sim::find_row("cvt.u64.u32"), {wide, value});
    value = wide;
  }
  IrInst& i = emit("@tensormap.replace", 0, 3);
  i.o[0] = map;
  i.o[1] = value;
  i.imm = by_dimension ? static_cast<std::int64_t>(s.operands[1].bits) : 0;
  i.count = static_cast<std::uint8_t>(field);
  i.flags = op.has("global") ? 2 : op.has("shared::cta") ? 3 : 1;
  if (class_of(map) == RegisterClass::k32) i.aux = sim::kBulkNarrowShared;
  return true;
}

}  // namespace stitchwork::ptx
