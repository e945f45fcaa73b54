// From the intermediate form to decoded instructions.
#include <algorithm>

#include "core/base/error.h"
#include "simulator/isa/forms.h"
#include "simulator/lower/lower.h"
#include "simulator/machine/atomics.h"

namespace stitchwork::ptx {
namespace {

Flow flow_of(std::string_view row) {
  return row == "@enter"     ? Flow::kEnter
         : row == "@guard"   ? Flow::kGuard
         : row == "@unguard" ? Flow::kUnguard
         : row == "@resume"  ? Flow::kResume
                             : Flow::kOn;
}

/// Instructions as the machine runs them, with what it tells of each: place in the file, row, registers whose
/// use before they are set is looked for.
class Decoder {
 public:
  Decoder(const Function& fn, const IrFunction& f, const SlotAssignment& slots, Program& p)
      : fn_(fn), slots_(slots), p_(p), tracked_(f.values.size(), -1), read_(f.values.size()) {
    for (std::size_t v = 0; v < slots.unset.size(); ++v) {
      if (!slots.unset[v]) continue;
      tracked_[v] = static_cast<int>(p.tracked_names.size());
      p.tracked_names.push_back(v < fn.registers.size() ? fn.registers[v].name : "a predicate");
    }
    for (const IrBlock& block : f.blocks)
      for (const IrInst& i : block.insts)
        for (int k = 0; k < 6; ++k)
          if (i.uses >> k & 1) read_[i.o[k]] = true;
    for (const IrBlock& block : f.blocks) find_products(block, f);
  }

  void decode(const IrInst& i) {
    if (!p_.tracked_names.empty()) track(i, tracked_, p_.tracked);
    if (!p_.product_names.empty()) track(i, product_, p_.products);
    sim::Inst d{};
    d.fn[0] = rows_[i.row].full;
    d.fn[1] = rows_[i.row].masked;
    for (int k = 0; k < 6; ++k) {
      const bool is_value = (i.defs | i.uses) >> k & 1;
      d.o[k] = is_value ? slots_.offset[i.o[k]] : i.o[k];
      SW_CHECK(!is_value || d.o[k] != kNone, "operand {} of {} has no slot", k, rows_[i.row].spelling);
    }
    d.imm = i.imm;
    d.id = static_cast<std::uint32_t>(p_.positions.size());
    d.count = i.count;
    d.flags = i.flags;
    d.aux = static_cast<std::uint16_t>(i.aux | (i.polls ? sim::kPolls : 0));
    const Statement& s = fn_.body[std::min<std::size_t>(i.statement, fn_.body.size() - 1)];
    p_.positions.push_back({s.line, s.location, s.file});
    p_.rows.push_back(i.row);
    p_.flow.push_back(flow_of(rows_[i.row].spelling));
    const bool loads = std::string_view(rows_[i.row].spelling).starts_with("@ld.");
    p_.read_elements.push_back(loads ? read_elements(i) : i.count);
    p_.code.push_back(d);
  }

 private:
  /// Of a vector load: up to the last element that anything uses.
  std::uint8_t read_elements(const IrInst& i) const {
    int last = i.count;
    while (last > 1 && (i.defs >> (last - 1) & 1) && !read_[i.o[last - 1]]) --last;
    return static_cast<std::uint8_t>(last);
  }
  /// Registers that wgmma reads or writes while others run.
  void find_products(const IrBlock& block, const IrFunction& f) {
    for (std::size_t at = 0; at < block.insts.size(); ++at) {
      const IrInst& first = block.insts[at];
      if (first.row != wgmma_) continue;
      product_.resize(f.values.size(), -1);
      for (int k = 0; k < first.count; ++k) {
        const IrInst& i = block.insts[at + static_cast<std::size_t>(k / 6)];
        const std::uint32_t v = i.o[k % 6];
        if (f.values[v].kind != Value::Kind::kRegister || f.values[v].cls != RegisterClass::k32 ||
            product_[v] >= 0)
          continue;
        product_[v] = static_cast<int>(p_.product_names.size());
        p_.product_names.push_back(v < fn_.registers.size() ? fn_.registers[v].name : "a register");
      }
    }
  }
  void track(const IrInst& i, const std::vector<int>& number, std::vector<TrackedInst>& list) {
    TrackedInst t;
    t.inst = static_cast<std::uint32_t>(p_.positions.size());
    t.rule = unset_rule(i);
    t.bits = bit_rule(i);
    for (int k = 0; k < 6; ++k) {
      const bool def = i.defs >> k & 1;
      // What D was counts where scale-d says so: it need not be set.
      const bool use = (i.uses >> k & 1) && !(i.row == wgmma_ && k >= i.count);
      if (!(use || def) || number[i.o[k]] < 0) continue;
      (use ? t.uses : t.defs) |= static_cast<std::uint8_t>(1 << k);
      t.registers[k] = number[i.o[k]];
    }
    if (t.uses != 0 || t.defs != 0) list.push_back(t);
  }

  const Function& fn_;
  const SlotAssignment& slots_;
  Program& p_;
  std::span<const sim::IsaRow> rows_ = sim::isa_rows();
  std::vector<int> tracked_;  // by value: its number among the tracked, -1
  std::vector<bool> read_;    // by value
  std::vector<int> product_;  // by value: its number among the registers of wgmma, -1
  const int wgmma_ = sim::find_row("@wgmma");
};

SlotInit slot_init(const Value& value, std::uint32_t offset) {
  using Kind = Value::Kind;
  SlotInit init;
  init.kind = value.kind == Kind::kBits        ? SlotInit::Kind::kBits
              : value.kind == Kind::kParameter ? SlotInit::Kind::kParameter
              : value.kind == Kind::kSpecial   ? SlotInit::Kind::kSpecial
              : value.kind == Kind::kShared    ? SlotInit::Kind::kShared
                                               : SlotInit::Kind::kVariable;
  init.cls = value.cls;
  init.offset = offset;
  init.bits = value.bits;
  init.bytes = value.bytes;
  init.index = value.index;
  return init;
}

}  // namespace

void Lowering::finish(Program& p) {
  const std::vector<int> in_flight = loads_in_flight(f_.blocks);
  for (std::size_t b = 0; b < f_.blocks.size(); ++b) {
    f_.blocks[b].weights.loads_in_flight = in_flight[b];
    p.info.loads_in_flight = std::max(p.info.loads_in_flight, in_flight[b]);
  }
  const SlotAssignment slots = assign_slots(f_);
  const std::vector<int> meet = immediate_postdominators(f_.blocks);
  Decoder decoder(fn_, f_, slots, p);
  const int branch_if = sim::find_row("@bra_if"), async_wait = sim::find_row("@async.wait");
  for (int b = 0; b < static_cast<int>(f_.blocks.size()); ++b) {
    const IrBlock& block = f_.blocks[static_cast<std::size_t>(b)];
    p.block_start.push_back(static_cast<std::int32_t>(p.code.size()));
    p.weights.push_back(block.weights);
    p.lines.push_back(block.lines);
    IrInst enter;
    enter.row = static_cast<std::uint16_t>(sim::find_row("@enter"));
    enter.imm = b;
    enter.o[0] = std::max(block.weights.instructions, 1u);
    enter.statement = block.insts.empty() ? 0 : block.insts.front().statement;
    decoder.decode(enter);
    for (const IrInst& i : block.insts) {
      decoder.decode(i);
      if (i.row == branch_if)
        p.code.back().o[2] = static_cast<std::uint32_t>(meet[static_cast<std::size_t>(b)]);
      if (i.row == async_wait) p.code.back().o[0] = static_cast<std::uint32_t>(b);
    }
  }
  IrInst resume;
  resume.row = static_cast<std::uint16_t>(sim::find_row("@resume"));
  p.resume_inst = static_cast<std::int32_t>(p.code.size());
  decoder.decode(resume);

  for (std::size_t v = 0; v < f_.values.size(); ++v) {
    if (f_.values[v].kind == Value::Kind::kRegister || slots.offset[v] == kNone) continue;
    p.inits.push_back(slot_init(f_.values[v], slots.offset[v]));
  }
  p.register_bytes = slots.register_bytes;
  p.passes_unset = slots.passes_unset;
  p.info.virtual_registers = static_cast<int>(fn_.registers.size());
  p.info.instructions = static_cast<int>(fn_.body.size());
  // ptxas needs a few registers for itself and never allots fewer than 16.
  p.info.estimated_registers = std::clamp((slots.pressure + 6 + 7) / 8 * 8, 16, 255);
}

Program lower(const File& file, const Function& function) { return Lowering(file, function).run(); }

}  // namespace stitchwork::ptx
