#include "analysis/schedule/plain_mapping.h"

#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "core/base/arithmetic.h"
#include "core/base/error.h"
#include "occupancy_model/hardware.h"

namespace stitchwork {
namespace {

// CUDA Programming Guide: threads a block, on every device.
constexpr int kMaxBlock = 1024;
/// XLA's column reduction: 32 x 32 threads (docs/planners/xla.md).
constexpr int kColumnTile = 32;
/// Threads of an element-wise block: what eager frameworks' element-wise kernels commonly use.
/// XLA's element-wise kernels have as many.
constexpr int kElementBlock = 256;
/// Rows too short to share a warp: a thread each.
/// Shorter than a warp, because lanes without a column would idle.
constexpr std::int64_t kSerialColumns = 32;
/// Elements a thread of a reduction that is split among blocks: PyTorch's least, and most where blocks are
/// few (aten/src/ATen/native/cuda/Reduce.cuh, setReduceConfig).
constexpr std::int64_t kLeastPerThread = 16, kMostPerThread = 256;

Dealt one_task_a_block(const Mapping& mapping) { return {mapping, deal_to(mapping, task_count(mapping))}; }

}  // namespace

Dealt element_mapping(std::int64_t elements, int threads) {
  return one_task_a_block(mapping::Elements{.count = elements, .per_task = threads});
}

Dealt block_a_row_mapping(std::int64_t rows, std::int64_t cols, std::int64_t width) {
  const int threads =
      static_cast<int>(std::clamp<std::int64_t>(ceil_div(width, kWarp) * kWarp, kWarp, kMaxBlock));
  return one_task_a_block(mapping::Rows{rows, cols, mapping::Lanes{.threads = threads}});
}

Dealt column_tile_mapping(std::int64_t rows, std::int64_t cols, int split) {
  return one_task_a_block(mapping::Columns{.results = rows,
                                           .length = cols,
                                           .tile = kColumnTile,
                                           .threads = kColumnTile,
                                           .segments = split,
                                           .atomic = split > 1});
}

Dealt thread_a_row_mapping(std::int64_t rows, std::int64_t cols, int threads) {
  return one_task_a_block(mapping::Rows{rows, cols, mapping::OneThread{threads}});
}

Dealt natural_mapping(const Computation& computation, const Node& node) {
  if (def(node.op).cls != OpClass::kReduce)
    return element_mapping(node.shape.elements_count(), kElementBlock);
  const ReductionSize shape = reduction_size(computation, node.id);
  if (shape.cols < kSerialColumns) return thread_a_row_mapping(shape.rows, shape.cols, kElementBlock);
  if (shape.row_reduce) return block_a_row_mapping(shape.rows, shape.cols, shape.cols);
  return column_tile_mapping(shape.rows, shape.cols, 1);
}

Dealt eager_mapping(const Graph& graph, const Device& device, const Node& node) {
  const Dealt whole = natural_mapping(graph.entry_computation(), node);
  if (!is_reduction(node) || is<mapping::OneThread>(whole.mapping) || !adds_atomically(graph, node))
    return whole;
  const ReductionSize shape = reduction_size(graph.entry_computation(), node.id);
  const std::int64_t elements = ceil_div(shape.cols, std::int64_t{threads_a_row(whole.mapping)});
  const std::int64_t blocks = whole.deal.blocks();
  const std::int64_t held =
      std::int64_t{device.sms} * (device.max_threads_per_sm() / block_threads(whole.mapping));
  const std::int64_t split = std::min(held / blocks, ceil_div(elements, kLeastPerThread));
  if (elements < kMostPerThread || split < 2) return whole;
  if (const auto* rows = as<mapping::Lanes>(whole.mapping))
    return one_task_a_block(mapping::Rows{
        shape.rows, shape.cols,
        mapping::Segments{
            .threads = rows->threads, .vectors = {}, .count = static_cast<int>(split), .atomic = true}});
  return column_tile_mapping(shape.rows, shape.cols, static_cast<int>(split));
}

int block_threads(const Mapping& mapping) {
  const std::int64_t rows = task_rows(mapping);
  const auto [width, unroll] = vectors(mapping);
  if (is<mapping::Elements>(mapping)) return static_cast<int>(ceil_div(rows, std::int64_t{width} * unroll));
  const int threads = static_cast<int>(threads_a_row(mapping) * rows);
  if (!is<mapping::Columns>(mapping)) return threads;
  const Layout layout(mapping, threads);
  return std::max(threads, static_cast<int>(ceil_div(layout.slices * layout.places, width)));
}

void finish_plain_launch(const Computation& computation, KernelPlan& kernel) {
  SW_CHECK(!kernel.groups.empty());
  KernelLaunch& launch = kernel.launch;
  launch.block = 1;
  launch.grid = 1;
  for (const Group& group : kernel.groups) {
    launch.grid = std::max(launch.grid, group.deal.blocks());
    launch.block = std::max(launch.block, block_threads(group.mapping));
  }
  launch.shared_bytes = reduction_workspace_bytes(computation, kernel);
  kernel.shared.clear();
  if (launch.shared_bytes > 0) kernel.shared.push_back({kNoNode, 0, launch.shared_bytes});
}

}  // namespace stitchwork
