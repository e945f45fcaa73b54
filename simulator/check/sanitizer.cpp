#include "simulator/check/sanitizer.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "simulator/machine/matrix.h"

namespace stitchwork::sim {
namespace {

/// `elements`: of a vector, as many as are looked at.
MemoryForm form_of(std::string_view row, const Inst& inst, std::uint8_t elements) {
  MemoryForm form;
  using Space = MemoryForm::Space;
  if (row == "@async.copy") {  // its writes are looked at when they are waited for
    form.space = Space::kGlobal;
    form.reads = form.opaque = true;
    form.address = 5;
    form.bytes = inst.count;
    return form;
  }
  if (row == "@ldmatrix" || row == "@stmatrix") {
    form.space = Space::kShared;
    form.reads = row == "@ldmatrix";
    form.writes = !form.reads;
    form.opaque = true;
    form.lanes = inst.count == 4 ? ~0u : (1u << 8 * inst.count) - 1;
    form.bytes = 16;
    return form;
  }
  if (row == "@wmma.load" || row == "@wmma.store") {
    form.space = inst.flags != 0 ? Space::kShared : Space::kGeneric;
    form.reads = row == "@wmma.load";
    form.writes = !form.reads;
    form.opaque = form.fragment = true;
    form.address = 0;
    form.bytes = static_cast<std::uint32_t>(WmmaMatrix::of(inst.imm).element_bytes());
    return form;
  }
  const bool load = row.starts_with("@ld."), store = row.starts_with("@st."),
             atom = row.starts_with("@atom.");
  if (!load && !store && !atom) return form;
  const std::string_view rest = row.substr(atom ? 6 : 4);
  form.space = rest.starts_with("global")    ? (atom ? Space::kGeneric : Space::kGlobal)
               : rest.starts_with("generic") ? Space::kGeneric
               : rest.starts_with("shared")  ? Space::kShared
               : rest.starts_with("cluster") ? Space::kCluster
               : rest.starts_with("local")   ? Space::kLocal
                                             : Space::kNone;  // parameters are always set and never written
  form.keeps_memos = form.space == Space::kShared && !atom && elements == inst.count;
  form.reads = load || atom;
  form.writes = store || atom;
  form.bytes = atom ? inst.flags : static_cast<std::uint32_t>(row.back() - '0') * elements;
  return form;
}

/// "sm_75" -> 75, 0 where it cannot be read.
int sm_version(std::string_view target) {
  int version = 0;
  if (target.starts_with("sm_")) std::from_chars(target.data() + 3, target.data() + target.size(), version);
  return version;
}

/// The number of the cluster of a block; without clusters the block's.
std::uint64_t cluster_of(const LaunchContext& context, std::uint32_t block) {
  const Dim3& size = context.cluster;
  if (size.x * size.y * size.z == 1) return block;
  const Dim3 at = block_coordinates(context, block);
  const Dim3& grid = context.launch->grid;
  return at.x / size.x +
         std::uint64_t{grid.x / size.x} * (at.y / size.y + std::uint64_t{grid.y / size.y} * (at.z / size.z));
}

const Inst* looked_at(Strand& s, const Inst* i) {
  BlockSanitizer& checks = BlockSanitizer::of(*s.block->checks);
  checks.look(s, i);
  return checks.original(i).fn[s.masked](s, i);
}
const Inst* looked_at_fence(Strand& s, const Inst* i) {
  BlockSanitizer& checks = BlockSanitizer::of(*s.block->checks);
  checks.fence(s, i);
  return checks.original(i).fn[s.masked](s, i);
}
const Inst* looked_at_proxy_fence(Strand& s, const Inst* i) {
  BlockSanitizer::of(*s.block->checks).proxy_fence(s, i);
  return i + 1;
}
const Inst* looked_at_product(Strand& s, const Inst* i) {
  BlockSanitizer& checks = BlockSanitizer::of(*s.block->checks);
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0 || s.mask[w] == ~0u || s.alive[w] != ~0u) continue;
    if (const Inst* next = await_warp(s, i, Rendezvous::kWholeWarp); next != i) return next;
  }
  checks.look(s, i);
  checks.look_at_product(s, i);
  return checks.original(i).fn[s.masked](s, i);
}
const Inst* looked_at_product_fence(Strand& s, const Inst* i) {
  BlockSanitizer& checks = BlockSanitizer::of(*s.block->checks);
  const Inst* next = checks.original(i).fn[s.masked](s, i);
  if (next == i + 1) checks.product_fence(s);
  return next;
}
const Inst* looked_at_exchange(Strand& s, const Inst* i) {
  BlockSanitizer& checks = BlockSanitizer::of(*s.block->checks);
  const ExchangeForm& form = checks.exchange(i);
  if (const Inst* next = await_members(s, i, i->o[form.members], form.kind); next != i) return next;
  checks.look_at_members(s, i, form);
  checks.look(s, i);
  if (form.kind == Rendezvous::kWarpBarrier) checks.warp_barrier(s);
  return checks.original(i).fn[s.masked](s, i);
}
const Inst* looked_at_warp_barrier(Strand& s, const Inst* i) {
  BlockSanitizer& checks = BlockSanitizer::of(*s.block->checks);
  const Inst* next = checks.original(i).fn[s.masked](s, i);
  if (next == i + 1) checks.warp_barrier(s);
  return next;
}

}  // namespace

ExchangeForm exchange_form(std::string_view row) {
  if (row == "@shuffle") return {"shuffle", Rendezvous::kShuffle, 5, true};
  if (row == "@vote") return {"vote", Rendezvous::kVote, 2};
  if (row == "@match") return {"match", Rendezvous::kMatch, 3};
  if (row == "@redux") return {"redux", Rendezvous::kRedux, 2};
  if (row == "@elect") return {"elect", Rendezvous::kElect, 2};
  if (row == "@warp_barrier") return {"warp barrier", Rendezvous::kWarpBarrier, 0};
  return {};
}

Sanitizers parse_sanitizers(std::string_view text) {
  Sanitizers result;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view name = text.substr(at, end - at);
    if (name == "race")
      result.race = true;
    else if (name == "init")
      result.init = true;
    else if (name == "sync")
      result.sync = true;
    else if (name != "mem")
      throw Error(fmt::format("no sanitizer is called '{}'", name),
                  "known: mem, race, sync, init; several are separated by commas");
    at = end + 1;
  }
  return result;
}

SanitizerCounts& SanitizerCounts::operator+=(const SanitizerCounts& other) {
  mem_accesses += other.mem_accesses;
  race_accesses += other.race_accesses;
  init_accesses += other.init_accesses;
  sync_barriers += other.sync_barriers;
  return *this;
}

Sanitizer::Sanitizer(const LaunchContext& context, Sanitizers what)
    : what(what),
      context(context),
      // Threads of a warp may run apart from Volta on (CUDA C++ Programming Guide, Independent Thread
      // Scheduling).
      lockstep(sm_version(context.module->target) < 70),
      clocks([&context](std::uint32_t block) { return cluster_of(context, block); }),
      original_(context.program),
      program_(*context.program) {
  SW_CHECK(!what.init || context.memory->impl().track_initialised,
           "Sanitizers::init needs a DeviceMemory that tracks what is written");
  forms_.resize(program_.code.size());
  tracked_.assign(program_.code.size(), -1);
  if (what.init) {
    for (std::size_t t = 0; t < program_.tracked.size(); ++t)
      tracked_[program_.tracked[t].inst] = static_cast<std::int32_t>(t);
  }
  if (what.sync && !program_.products.empty()) {
    products_.assign(program_.code.size(), -1);
    for (std::size_t t = 0; t < program_.products.size(); ++t)
      products_[program_.products[t].inst] = static_cast<std::int32_t>(t);
  }
  for (const IsaRow& row : rows_) exchanges_.push_back(exchange_form(row.spelling));
  for (Inst& i : program_.code) {
    const std::string_view row = rows_[program_.rows[i.id]].spelling;
    MemoryForm& form = forms_[i.id];
    form = form_of(row, i, program_.read_elements[i.id]);
    Handler handler = nullptr;
    const bool memory = form.space != MemoryForm::Space::kNone && (what.race || what.init);
    if (memory) form.index = memory_instructions_++;
    if (memory || tracked_[i.id] >= 0 || product_registers(i.id) != nullptr) handler = looked_at;
    if (row == "@proxy_fence" || row == "@async.store" || row.starts_with("@bulk.") ||
        row.starts_with("@tensor.") || row.starts_with("@wgmma"))
      clocks.used = WarpClocks{}.size();
    if (row == "@wgmma") handler = looked_at_product;
    if (row == "@wgmma.fence" && !products_.empty()) handler = looked_at_product_fence;
    if (row == "@fence") handler = looked_at_fence;
    if (row == "@proxy_fence") handler = looked_at_proxy_fence;
    if (row == "@warp_barrier") handler = looked_at_warp_barrier;
    if (what.sync && exchange(i.id).name != nullptr) handler = looked_at_exchange;
    if (handler != nullptr) i.fn[0] = i.fn[1] = handler;
  }
}

void Sanitizer::refuse_events() const {
  throw Error(fmt::format("the race check of kernel '{}' can tell {} accesses apart, and it makes more",
                          context.launch->kernel, Toucher::kMaxEvents),
              "check a smaller input, or leave race out of --sanitize");
}

std::unique_ptr<BlockChecks> Sanitizer::of_block(const BlockRun& block) {
  return std::make_unique<BlockSanitizer>(*this, block);
}

void use_sanitizer(LaunchContext& context, Sanitizer& sanitizer) {
  context.checks = &sanitizer;
  use_program(context, sanitizer.program());
}

bool Sanitizer::meets(const Sanitizer& other) const {
  for (std::size_t i = 0; i < std::min(shadows_.size(), other.shadows_.size()); ++i)
    if (shadows_[i].meets(other.shadows_[i])) return true;
  return false;
}

/// Of several threads, each may have cells of as many bytes as the memory they are of: rows that begin within
/// sectors need half of that, scattered stores three times.
RaceShadow& Sanitizer::shadow(std::uint64_t window, std::uint64_t bytes) {
  const auto index = static_cast<std::size_t>(window - kFirstAllocation);
  if (index >= shadows_.size()) shadows_.resize(index + 1);
  if (!shadows_[index].covers(bytes)) {
    shadows_[index] = RaceShadow(bytes);
    if (undo != nullptr) shadows_[index].bound_cells(bytes);
  }
  return shadows_[index];
}

std::string Sanitizer::describe(const AccessEvent& e, int lane, bool wrote,
                                std::uint64_t seen_from_block) const {
  const Dim3& size = context.launch->block;
  std::string who;
  if (e.block != seen_from_block) {
    const Dim3 at = block_coordinates(context, e.block);
    who = fmt::format("block ({},{},{}), ", at.x, at.y, at.z);
  }
  if (e.warp >= kMaxWarps) {
    who += rows_[program_.rows[e.inst]].spelling == std::string_view("@async.store") ? "an asynchronous store"
                                                                                     : "a bulk copy";
  } else if (lane == Toucher::kSeveral) {
    who += fmt::format("several threads of warp {}", e.warp);
  } else {
    const std::uint32_t t = e.warp * 32u + static_cast<std::uint32_t>(lane);
    who += fmt::format("thread ({},{},{})", t % size.x, t / size.x % size.y, t / size.x / size.y);
  }
  const std::string cuda = cuda_location(context, e.inst);
  return fmt::format("{} {} at PTX line {}{}", who, wrote ? "wrote" : "read",
                     context.program->positions[e.inst].line, cuda.empty() ? "" : " (" + cuda + ")");
}

}  // namespace stitchwork::sim
