#include "analysis/planners/fusionstitching/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "analysis/facts/choices.h"
#include "analysis/facts/facts.h"
#include "analysis/judge/sketch.h"
#include "analysis/planners/fusionstitching/kernel.h"
#include "analysis/schedule/layout.h"
#include "core/base/arithmetic.h"
#include "core/base/sorted.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::fusionstitching {
namespace {

/// Instructions of an access with its address, of a step of a shuffle with its arithmetic, and what a block
/// adds to combine its warps. A choice, not measured: the figures of the sketch of domains
/// (analysis/judge/sketch.cpp).
constexpr double kAccessInstructions = 5, kShuffleInstructions = 2, kBlockReduceInstructions = 30;
/// Of a product's step along the contracted dim.
/// Derived from the code printed: two loads, their addresses kept by additions, a multiply-add, the loop.
constexpr double kProductInstructions = 6;
/// Of a warp without elements: it comes to the guard and to the end. A choice, not measured: the sketch's
/// figure (analysis/judge/sketch.cpp).
constexpr double kIdleInstructions = 8;
/// Of a lane in a 128-byte request.
/// Derived from 128 bytes for the 32 lanes of a warp.
constexpr double kLaneBytes = 4;

/// Arrays that a thread loads from for one element, one after the other without waiting.
double loads_an_element(const Node& node) {
  return chooses_operand(node.op) ? 1 : static_cast<double>(std::max<std::size_t>(1, node.operands.size()));
}

bool is_reduce(const Node& node) { return def(node.op).cls == OpClass::kReduce; }

/// What the op's kernel reads and writes, each array once.
double bytes_of(const Computation& computation, const Node& node) {
  std::vector<NodeId> operands = node.operands;
  sort_unique(operands);
  double bytes = static_cast<double>(node.shape.byte_size());
  for (const NodeId operand : operands)
    if (!is_immediate(computation, operand))
      bytes += static_cast<double>(computation.node(operand).shape.byte_size());
  return bytes;
}

/// Of one warp that has elements in a task, and how many of a block's do.
struct WarpWork {
  double instructions = 0, loads = 0, arithmetic = 0, warps = 0;
};

WarpWork warp_work(const Computation& computation, const Node& node, const Chunking& chunks, int threads,
                   int warps) {
  WarpWork work;
  const std::int64_t chunk = chunks.elements();
  double elements = static_cast<double>(ceil_div(chunk, threads));
  work.warps = static_cast<double>(ceil_div(std::min<std::int64_t>(chunk, threads), kWarp));
  if (is_reduced(node) && chunks.one_range()) {
    const Dealt dealt = chunk_mapping(computation, node, chunk, threads, warps);
    const Layout layout(dealt.mapping, threads);
    elements = static_cast<double>(layout.elements() * layout.turns);
    const std::int64_t sharing = layout.threads_a_row;
    const auto shuffles = std::bit_width(static_cast<std::uint64_t>(std::min<std::int64_t>(sharing, kWarp)));
    const double combining =
        kShuffleInstructions * shuffles +
        (sharing > kWarp || is<mapping::Columns>(dealt.mapping) ? kBlockReduceInstructions : 0);
    const double own = node.op == Op::kDot ? kProductInstructions : kAccessInstructions + 1;
    work.instructions = elements * own + static_cast<double>(layout.turns) * combining;
    work.loads = elements * (node.op == Op::kDot ? 2 : 1);
    work.arithmetic = elements;
    work.warps =
        static_cast<double>(ceil_div(std::min<std::int64_t>(layout.rows_a_turn * sharing, threads), kWarp));
  } else {
    const double inputs = loads_an_element(node);
    // Of a choice between operands a comparison each, but for the last.
    const double own = chooses_operand(node.op) ? static_cast<double>(node.operands.size())
                                                : std::max<double>(1, def(node.op).instructions);
    work = {elements * (kAccessInstructions * (inputs + 1) + own), elements * inputs, elements * own,
            work.warps};
  }
  return work;
}

/// Sectors that requests of chunks touch, over those of their bytes: a chunk is a range of elements, or of
/// columns in each row.
double sector_spread(const Node& node, const Chunking& chunks) {
  const std::int64_t bytes = chunks.part * byte_size(node.shape.dtype);
  return static_cast<double>(round_up(bytes, std::int64_t{kSectorBytes})) / static_cast<double>(bytes);
}

}  // namespace

double modelled_us(const Computation& computation, const Device& device, const Node& node,
                   const Chunking& chunks, int threads, int warps) {
  const WarpWork warp = warp_work(computation, node, chunks, threads, warps);
  const double all = static_cast<double>(chunks.blocks) * warp.warps;
  KernelWork work;
  work.grid_blocks = chunks.blocks;
  work.threads_per_block = threads;
  work.blocks_per_sm = std::max(1, occupancy(device, threads, kAssumedRegisters, 0).blocks_per_sm);
  work.dram_sectors = bytes_of(computation, node) / kSectorBytes;
  work.l2_sectors = work.dram_sectors * sector_spread(node, chunks);
  const double idle = static_cast<double>(chunks.blocks) * threads / kWarp - all;
  work.warp_instructions = all * warp.instructions + idle * kIdleInstructions;
  work.fp32_warp_instructions = all * warp.arithmetic;
  work.ldst_warp_instructions = work.global_accesses = all * warp.loads;
  // A product's operands are read again and again: from memory once, then from the caches.
  if (node.op == Op::kDot) work.global_accesses = bytes_of(computation, node) / (kWarp * kLaneBytes);
  work.independent_loads =
      loads_an_element(node) * std::max(1.0, static_cast<double>(byte_size(node.shape.dtype)) / kLaneBytes);
  return sketch_us(device, work);
}

OpTimes::OpTimes(const Graph& graph, const Computation& computation, const Device& device,
                 const PerformanceLibrary* library)
    : graph_(graph),
      computation_(computation),
      device_(device),
      library_(library),
      kind_(computation.nodes.size(), -1) {}

std::string OpTimes::kind_of(const Node& node) const {
  std::string text = fmt::format("{} {}", def(node.op).name, to_text(node.shape));
  for (const NodeId operand : node.operands)
    text += fmt::format(" {}{}", is_immediate(computation_, operand) ? "=" : "",
                        to_text(computation_.node(operand).shape));
  if (node.operands.size() == 2 && node.operands[0] == node.operands[1]) text += " same";
  if (is_reduce(node)) text += fmt::format(" {}", fmt::join(node.attrs.dimensions, ","));
  if (node.attrs.dot)
    text += fmt::format(" {} {}", fmt::join(node.attrs.dot->lhs_contracting, ","),
                        fmt::join(node.attrs.dot->lhs_batch, ","));
  if (library_ == nullptr) return text;
  const auto op = key_op(graph_, computation_, node);
  return op ? text + " " + to_text(*op) : text;
}

int OpTimes::kind(NodeId op) {
  int& kind = kind_[static_cast<std::size_t>(op)];
  if (kind < 0)
    kind = kinds_.emplace(kind_of(computation_.node(op)), static_cast<int>(kinds_.size())).first->second;
  return kind;
}

const PerformanceLibrary::Entry* OpTimes::find(const KeyOp& op, const Schedule& schedule, int threads,
                                               int warps) {
  std::string key = to_text(LibraryKey{op, schedule, threads, warps});
  const auto found = library_->entries.find(key);
  if (found != library_->entries.end()) return &found->second;
  misses_.insert(std::move(key));
  return nullptr;
}

const OpTimes::BySize& OpTimes::best(NodeId op, const Schedule& schedule) {
  const Node& node = computation_.node(op);
  const auto [at, fresh] = known_.try_emplace({kind(op), schedule.split_dim, schedule.sword, schedule.type});
  if (!fresh) return at->second;
  const auto chunks = chunking(schedule, node.shape.dims);
  std::optional<KeyOp> key;
  const auto named = library_ == nullptr ? std::nullopt : key_schedule(node.shape.dims, schedule);
  if (named) key = key_op(graph_, computation_, node);
  for (std::size_t s = 0; s < kBlockSizes.size(); ++s) {
    Best& best = at->second[s];
    for (const int warps : row_warps(computation_, node, kBlockSizes[s])) {
      const PerformanceLibrary::Entry* entry = key ? find(*key, *named, kBlockSizes[s], warps) : nullptr;
      const Best here = entry != nullptr
                            ? Best{entry->us, warps, entry->method}
                            : Best{modelled_us(computation_, device_, node, *chunks, kBlockSizes[s], warps),
                                   warps, kModelledText};
      if (warps == 1 || here.us < best.us) best = here;
    }
  }
  return at->second;
}

}  // namespace stitchwork::fusionstitching
