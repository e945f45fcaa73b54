// Tensor copies, their prefetches and reductions (PTX ISA 8.7, 9.7.9.27).
#include <algorithm>

#include "core/base/error.h"
#include "simulator/isa/forms.h"
#include "simulator/lower/lower.h"
#include "simulator/machine/tensor_copy.h"
#include "simulator/tensor_map.h"

namespace stitchwork::ptx {
namespace {

/// Devices that have tensor copies.
constexpr int kTensorSm = 90;

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

/// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, cp.async.bulk.prefetch.tensor
bool Lowering::lower_tensor_copy(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  if (op.base != "cp" || !op.has("bulk") || !op.has("tensor")) return false;
  for (const std::string_view m : op.modifiers)
    if (m.starts_with("im2col") || m == "tile::gather4" || m == "tile::scatter4" ||
        m.starts_with("cta_group"))
      fail(fmt::format("tensor copies '.{}' are not simulated: '{}'", m, s.opcode), "copy tiles (.tile)");
  if (!is_bulk_form(s.opcode)) unknown();
  require_sm(kTensorSm, "tensor copies");
  const bool prefetch = op.has("prefetch"), reduce = op.modifiers[0] == "reduce";
  const bool load = !prefetch && op.has("mbarrier::complete_tx::bytes");
  const bool hint = op.has("L2::cache_hint"), multicast = op.has("multicast::cluster");
  const std::size_t map_at = load ? 1 : 0, addresses = prefetch ? 1 : load ? 3 : 2;
  bool fits = s.operands.size() == addresses + multicast + hint;
  for (std::size_t k = 0; fits && k < addresses; ++k)
    fits = s.operands[k].kind == Operand::Kind::kAddress && (k == map_at || s.operands[k].elements.empty());
  if (!fits)
    fail(fmt::format("{} takes {}[map, {{coordinates}}]{}{}{}", s.opcode, load ? "[shared], " : "",
                     load       ? ", [mbarrier]"
                     : prefetch ? ""
                                : ", [shared]",
                     multicast ? ", a mask of blocks" : "", hint ? ", a cache policy" : ""));
  const Operand& map = s.operands[map_at];
  int rank = 0;
  for (const std::string_view m : op.modifiers)
    if (m.size() == 2 && m[1] == 'd') rank = m[0] - '0';
  const bool in_braces = map.elements.size() == 1 && map.elements[0].kind == Operand::Kind::kVector;
  const std::vector<Operand>& coordinates = in_braces ? map.elements[0].elements : map.elements;
  if (static_cast<int>(coordinates.size()) != rank)
    fail(fmt::format("{} takes {} coordinates, {} given", s.opcode, rank, coordinates.size()));
  if (hint) source(s.operands.back(), 'd');
  std::vector<std::uint32_t> order;
  std::uint16_t narrow = 0;
  const auto add_shared = [&](const Operand& address, std::uint16_t bit) {
    order.push_back(whole_address(address));
    if (class_of(order.back()) == RegisterClass::k32) narrow |= bit;
  };
  if (!prefetch) add_shared(s.operands[load ? 0 : 1], sim::kBulkNarrowShared);
  order.push_back(tensor_map_address(map));
  if (load) add_shared(s.operands[2], sim::kBulkNarrowMbarrier);
  for (const Operand& coordinate : coordinates) order.push_back(source(coordinate, 'r'));
  if (multicast) order.push_back(source(s.operands[3], 'h'));
  IrInst& i = emit_wide(load       ? "@tensor.load"
                        : prefetch ? "@tensor.prefetch"
                                   : "@tensor.store",
                        order, 0, false);
  i.flags = static_cast<std::uint8_t>(rank | (multicast ? sim::kTensorMulticast : 0) |
                                      (op.has("shared::cluster") ? sim::kTensorRemote : 0));
  i.aux = narrow;
  if (!reduce) return true;
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
