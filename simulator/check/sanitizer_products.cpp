// What the sanitizers look at in matrix products of a warpgroup (wgmma.h): what they read in shared memory,
// and their registers between issue and wait.
#include <algorithm>
#include <bit>

#include "core/base/error.h"
#include "simulator/check/apart.h"
#include "simulator/check/sanitizer.h"

namespace stitchwork::sim {
namespace {

constexpr std::uint32_t kProductChunk = 16;

}  // namespace

void BlockSanitizer::product_reads(Strand& s, const Inst* i, int warp, std::vector<std::uint64_t>& chunks,
                                   WarpProducts& products) {
  std::sort(chunks.begin(), chunks.end());
  BlockClocks::Time time;
  if (launch_.what.race) {
    look_at_deferred();
    copies_in_bulk_ = true;
    time = clocks_.next_bulk(kBulkReads);
    clocks_.next_bulk(kBulkWrites);  // in step with it, as of bulk stores
    products.reads.emplace_back(products.issued, time.clock);
  }
  for (std::size_t k = 0; k < chunks.size();) {
    const std::uint64_t from = chunks[k];
    std::uint64_t end = from + kProductChunk;
    while (++k < chunks.size() && chunks[k] <= end) end = chunks[k] + kProductChunk;
    MemoryForm reads;
    reads.reads = true;
    reads.bytes = static_cast<std::uint32_t>(end - from);
    const Access source{s, i, reads, warp, 0, from, from, shared_accesses_, this};
    if (launch_.what.init) check_range_initialised(source, shared_written_, end - from);
    if (!launch_.what.race) continue;
    check_not_being_written(source, "has wgmma read", end - from);
    check_range(source, shared_shadow_, end - from);
    mark_range(shared_accesses_, shared_shadow_, from, end - from,
               bulk_event(shared_events_, i, kBulkReads, time), false, block_warp(s, warp));
  }
}

/// Races for a map are not looked for: fences of its proxy order what reads it.
void BlockSanitizer::tensor_map_written(std::uint64_t address) {
  Allocation& allocation = *launch_.context.memory->impl().find(address);
  const std::uint64_t offset = address & kAllocationOffsetMask;
  if (launch_.undo != nullptr) launch_.undo->keep(address >> kAllocationShift, offset, TensorMap::kBytes);
  if (!allocation.written.empty()) allocation.written.set(offset, TensorMap::kBytes, true);
}

void BlockSanitizer::products_waited(int warp, std::uint32_t completed) {
  if (!launch_.what.race) return;
  const int first = warp / kWarpgroupWarps * kWarpgroupWarps;
  for (int w = first; w < first + kWarpgroupWarps; ++w) {
    auto& reads = block_.bulk->products[static_cast<std::size_t>(w)].reads;
    const auto behind = std::partition_point(reads.begin(), reads.end(),
                                             [&](const auto& read) { return read.first <= completed; });
    if (behind == reads.begin()) continue;
    clocks_.bulk_waited(warp, kBulkReads, std::prev(behind)->second);
    if (w == warp) reads.erase(reads.begin(), std::prev(behind));  // the last one stays for the others
  }
}

BlockSanitizer::ProductRegister& BlockSanitizer::product_register(int number, int warp) {
  const std::size_t warps = (block_.threads + 31) / 32;
  if (product_registers_.empty()) product_registers_.resize(launch_.program().product_names.size() * warps);
  return product_registers_[static_cast<std::size_t>(number) * warps + static_cast<std::size_t>(warp)];
}

std::uint32_t BlockSanitizer::completed_products(int warp) const {
  const auto& products = block_.bulk->products;
  return products.empty() ? 0 : products[static_cast<std::size_t>(warp)].completed;
}

void BlockSanitizer::raise_product_register(Strand& s, const Inst* i, int w, int number, const char* verb,
                                            const ProductRegister& r, bool reads) {
  raise_finding(
      s, i, FindingKind::kUnsetRegister,
      fmt::format("{} {}, which the wgmma at PTX line {} {}, with no wgmma.wait_group for it in between",
                  verb, launch_.program().product_names[static_cast<std::size_t>(number)],
                  launch_.context.program->positions[r.inst].line, reads ? "reads" : "sets")
          .c_str(),
      w, std::countr_zero(s.mask[w]));
}

/// An ordinary instruction touches registers that wgmma uses.
void BlockSanitizer::look_at_product_registers(Strand& s, const Inst* i, const ptx::TrackedInst& t) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    const int warp = block_warp(s, w);
    const std::uint32_t completed = completed_products(warp);
    for (int k = 0; k < 6; ++k) {
      const bool use = t.uses >> k & 1, def = t.defs >> k & 1;
      if (!use && !def) continue;
      ProductRegister& r = product_register(t.registers[k], warp);
      if (r.set_by > completed)
        raise_product_register(s, i, w, t.registers[k], use ? "uses" : "changes", r, false);
      if (!def) continue;
      if (r.read_by > completed) raise_product_register(s, i, w, t.registers[k], "changes", r, true);
      r.changed = ++product_clock_;
    }
  }
}

void BlockSanitizer::product_fence(const Strand& s) {
  product_fences_.resize((block_.threads + 31) / 32);
  for (int w = s.first_warp; w < s.last_warp; ++w)
    if (s.mask[w] != 0) product_fences_[static_cast<std::size_t>(block_warp(s, w))] = ++product_clock_;
}

/// A product is about to be issued, whose operands go on in the instructions behind it.
void BlockSanitizer::look_at_product(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp && launch_.what.sync; ++w)
    if (s.mask[w] != 0 && product_fences_[static_cast<std::size_t>(block_warp(s, w))] == 0)
      raise_finding(s, i, FindingKind::kUnsetRegister,
                    "has wgmma run before the first wgmma.fence of its warp", w, 0);
  for (std::uint32_t part = 0; part < i->aux; ++part) {
    if (const ptx::TrackedInst* t = launch_.tracked(i->id + part); t != nullptr && part > 0)
      set_registers(s, *t);
    const ptx::TrackedInst* t = launch_.product_registers(i->id + part);
    if (!launch_.what.sync || t == nullptr) continue;
    for (int w = s.first_warp; w < s.last_warp; ++w) {
      if (s.mask[w] == 0) continue;
      const int warp = block_warp(s, w);
      const std::uint32_t completed = completed_products(warp);
      const auto& products = block_.bulk->products;
      const std::uint32_t number =
          1 + (products.empty() ? 0 : products[static_cast<std::size_t>(warp)].issued);
      for (int k = 0; k < 6; ++k) {
        const bool def = t->defs >> k & 1,
                   a = (t->uses >> k & 1) && static_cast<int>(part) * 6 + k < i->count;
        if (!def && !a) continue;
        ProductRegister& r = product_register(t->registers[k], warp);
        if (a && r.set_by > completed)
          raise_product_register(s, i, w, t->registers[k], "uses as A", r, false);
        if (r.changed > product_fences_[static_cast<std::size_t>(warp)])
          raise_finding(
              s, i, FindingKind::kUnsetRegister,
              fmt::format("has wgmma use {}, which was changed with no wgmma.fence in between",
                          launch_.program().product_names[static_cast<std::size_t>(t->registers[k])])
                  .c_str(),
              w, 0);
        r.inst = i->id;
        (def ? r.set_by : r.read_by) = number;
      }
    }
  }
}

}  // namespace stitchwork::sim
