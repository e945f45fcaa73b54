// st.async and red.async (PTX ISA 8.7, 9.7.9.12 and 9.7.13.7).
#include "core/base/error.h"
#include "simulator/isa/forms.h"
#include "simulator/lower/lower.h"
#include "simulator/machine/address.h"
#include "simulator/machine/atomics.h"

namespace stitchwork::ptx {
namespace {

/// PTX ISA: they need it.
constexpr int kAsyncStoreSm = 90;

}  // namespace

/// st.async [to], value, [mbarrier] and red.async.
bool Lowering::lower_async_store(const Opcode& op) {
  const Statement& s = fn_.body[static_cast<std::size_t>(current_)];
  const bool store = op.base == "st";
  if ((!store && op.base != "red") || !op.has("async")) return false;
  if (bulk_form(s.opcode).empty()) unknown();
  require_sm(kAsyncStoreSm, "asynchronous stores");
  const std::size_t count = op.has("v2") ? 2 : op.has("v4") ? 4 : 1;
  const bool fits = s.operands.size() == 3 && s.operands[0].kind == Operand::Kind::kAddress &&
                    s.operands[2].kind == Operand::Kind::kAddress;
  if (!fits) fail(fmt::format("{} takes [address], value, [mbarrier]", s.opcode));
  const Operand& data = s.operands[1];
  const auto elements = data.kind == Operand::Kind::kVector ? data.elements : std::vector{data};
  if (elements.size() != count)
    fail(fmt::format("{} moves {} elements, {} given", s.opcode, count, elements.size()));
  const std::string_view type = op.last();
  const int bytes = type_bytes(type);
  const char letter = type == "f32" ? 'f' : type == "f64" ? 'e' : bytes == 8 ? 'd' : 'r';
  const bool own = op.has("shared::cta"), generic = !own && !op.has("shared::cluster");
  const auto shared = [&](const Operand& address) {
    const std::uint32_t v = whole_address(address);
    if (!generic) return v;
    if (class_of(v) != RegisterClass::k64) fail("a generic address has 64 bits");
    const std::uint32_t t = temporary(RegisterClass::k64);
    emit_simple(sim::find_row("sub.u64"),
                {t, v, constant(RegisterClass::k64, sim::kSharedWindow << sim::kAllocationShift)});
    return t;
  };
  std::vector<std::uint32_t> values;
  for (const Operand& e : elements) values.push_back(source(e, letter));
  const std::uint32_t to = shared(s.operands[0]), mbarrier = shared(s.operands[2]);
  IrInst& i = emit("@async.store", 0, static_cast<std::uint8_t>(0b110000 | ((1u << count) - 1)));
  for (std::size_t k = 0; k < count; ++k) i.o[k] = values[k];
  i.o[4] = to;
  i.o[5] = mbarrier;
  i.count = static_cast<std::uint8_t>(count);
  i.flags = static_cast<std::uint8_t>(bytes | (own ? 0 : sim::kAsyncRemote));
  if (class_of(to) == RegisterClass::k32) i.aux |= sim::kBulkNarrowShared;
  if (class_of(mbarrier) == RegisterClass::k32) i.aux |= sim::kBulkNarrowMbarrier;
  if (store) return true;
  const auto form = sim::find_atomic(op.modifiers[op.modifiers.size() - 2], type);
  SW_CHECK(form, "no atomic is {}", s.opcode);
  i.imm = 1 + static_cast<int>(form->op);
  i.aux |= sim::kStrong;
  return true;
}

}  // namespace stitchwork::ptx
