// From the intermediate form to decoded instructions; and the module that holds them.
#include <algorithm>
#include <atomic>
#include <set>

#include "core/base/error.h"
#include "simulator/atomics.h"
#include "simulator/forms.h"
#include "simulator/lower.h"

namespace stitchwork::ptx {
namespace {

/// 128-byte requests of a warp in the longest run of global loads before one of their results is needed: 4
/// for a 16-byte load a thread (occupancy_model/timing.h).
int loads_in_flight(const IrBlock& block) {
  std::set<std::uint32_t> pending;
  int best = 0, run = 0;
  for (const IrInst& i : block.insts) {
    for (int k = 0; k < 6; ++k) {
      if ((i.uses >> k & 1) && pending.contains(i.o[k])) {
        pending.clear();
        run = 0;
      }
    }
    const std::string_view name = sim::isa_rows()[i.row].spelling;
    if (!name.starts_with("@ld.global") && !name.starts_with("@ld.generic") &&
        !name.starts_with("@ld.cluster"))
      continue;
    const int bytes = name.back() - '0';  // "@ld.global.4"
    run += std::max(1, bytes * i.count / 4);
    best = std::max(best, run);
    for (int k = 0; k < i.count; ++k) pending.insert(i.o[k]);
  }
  return best;
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
  for (IrBlock& b : f_.blocks) b.weights.loads_in_flight = loads_in_flight(b);
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

Module::Module(std::unique_ptr<ModuleImpl> impl) : impl_(std::move(impl)) {}
Module::~Module() = default;
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&&) noexcept = default;
const std::string& Module::file() const { return impl_->file; }
const std::string& Module::version() const { return impl_->version; }
const std::string& Module::target() const { return impl_->target; }
const std::vector<KernelInfo>& Module::kernels() const { return impl_->kernels; }
const KernelInfo* Module::kernel(std::string_view name) const {
  for (const KernelInfo& k : impl_->kernels) {
    if (k.name == name) return &k;
  }
  return nullptr;
}

namespace {

Module module_of(File& syntax, std::uint64_t id) {
  resolve_function_pointers(syntax);
  auto impl = std::make_unique<ModuleImpl>();
  impl->id = id;
  impl->file = syntax.file;
  impl->files = syntax.files;
  impl->version = syntax.version;
  impl->target = syntax.target;
  impl->globals = syntax.globals;
  impl->source_files = syntax.source_files;
  impl->locations = syntax.locations;
  for (const Function& written : syntax.functions) {
    Function f = written;
    inline_calls(syntax, f);
    impl->programs.push_back(lower(syntax, f));
    impl->kernels.push_back(impl->programs.back().info);
  }
  return Module(std::move(impl));
}

}  // namespace

std::vector<Module> parse_program(std::span<const Source> sources) {
  static std::atomic<std::uint64_t> next_id{1};
  std::vector<File> files;
  for (const Source& source : sources) files.push_back(parse_file(source.text, source.file));
  const std::vector<int> group = link(files);
  const std::uint64_t first = next_id.fetch_add(files.size());
  std::vector<Module> modules;
  for (std::size_t f = 0; f < files.size(); ++f)
    modules.push_back(module_of(files[f], first + static_cast<std::uint64_t>(group[f])));
  return modules;
}

Module parse(std::string_view text, std::string file) {
  const Source source{std::string(text), std::move(file)};
  return std::move(parse_program(std::span(&source, 1)).front());
}

std::vector<std::string> supported_instructions() {
  std::vector<std::string> forms;
  for (const sim::IsaRow& row : sim::isa_rows()) {
    if (row.spelling[0] == '@') continue;
    for (std::string& form : sim::expand_spelling(row.spelling)) forms.push_back(std::move(form));
  }
  for (const auto& patterns : {listed_patterns(), bulk_patterns()})
    for (const std::string_view pattern : patterns)
      for (std::string& form : sim::expand_spelling(pattern)) forms.push_back(std::move(form));
  for (const char* pattern : {"mapa{,.shared::cluster}.{u32,u64}", "getctarank{,.shared::cluster}.{u32,u64}",
                              "cp.async.mbarrier.arrive{,.noinc}{,.shared,.shared::cta}.b64"})
    for (std::string& form : sim::expand_spelling(pattern)) forms.push_back(std::move(form));
  for (std::string& form : matrix_forms()) forms.push_back(std::move(form));
  // Forms built from several rows or with many optional modifiers.
  for (const char* form :
       {"setp.CMP{.ftz}{.and,.or,.xor}.TYPE p|q",
        "set.CMP{.ftz}{.and,.or,.xor}.{u32,s32,u16,s16,f32,f16,bf16}.TYPE",
        "ld{.weak,.volatile,.relaxed,.acquire}{.cta,.cluster,.gpu,.sys}{.global,.shared,."
        "shared::cluster,.local,."
        "param,.const}{.nc}{."
        "ca,.cg,"
        ".cs,.lu,.cv}{.L1::*,.L2::*}{.v2,.v4}.TYPE",
        "st{.weak,.volatile,.relaxed,.release}{.cta,.cluster,.gpu,.sys}{.global,.shared,."
        "shared::cluster,.local}{."
        "wb,.cg,.cs,.wt}{.v2,."
        "v4}"
        ".TYPE",
        "atom{.relaxed,.acquire,.release,.acq_rel}{.cta,.cluster,.gpu,.sys}{.global,."
        "shared,.shared::cluster}.{add,"
        "exch,cas,min,max,"
        "and,or,xor,"
        "inc,dec}.TYPE",
        "red{.relaxed,.release}{.cta,.cluster,.gpu,.sys}{.global,.shared,.shared::cluster}"
        ".{add,min,max,and,or,xor,"
        "inc,dec}.TYPE",
        "mbarrier.init{.shared,.shared::cta}.b64", "mbarrier.inval{.shared,.shared::cta}.b64",
        "mbarrier.{expect_tx,complete_tx}{.relaxed}{.cta,.cluster}{.shared,.shared::cta,."
        "shared::cluster}.b64",
        "mbarrier.{arrive,arrive_drop}{.expect_tx,.noComplete}{.release,.relaxed}{.cta,."
        "cluster}{.shared,.shared::cta,.shared::cluster}.b64",
        "mbarrier.{test_wait,try_wait}{.parity}{.acquire,.relaxed}{.cta,.cluster}{.shared,."
        "shared::cta}.b64",
        "mbarrier.pending_count.b64", "{min,max}{.ftz}{.NaN}{.abs}.f32 of three numbers",
        "{ldmatrix,stmatrix}.sync.aligned.m8n8.{x1,x2,x4}{.trans}{,.shared,.shared::cta}.b16",
        "mov.{b16,b32,b64} packing and unpacking", "mov.{v2,v4,v8}.TYPE"}) {
    forms.push_back(form);
  }
  std::sort(forms.begin(), forms.end());
  return forms;
}

}  // namespace stitchwork::ptx
