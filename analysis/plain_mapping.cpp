#include "analysis/plain_mapping.h"

#include <algorithm>

#include "analysis/facts.h"
#include "analysis/launch.h"
#include "analysis/schedule/layout.h"
#include "core/arithmetic.h"
#include "core/error.h"
#include "occupancy_model/hardware.h"

namespace stitchwork {
namespace {

constexpr int kMaxBlock = 1024;
/// XLA's column reduction: 32 x 32 threads (docs/planners/xla.md).
constexpr int kColumnTile = 32;
/// Threads of an element-wise block: what eager frameworks' element-wise kernels commonly use.
constexpr int kElementBlock = 256;
/// Rows too short to share a warp: a thread each.
constexpr std::int64_t kSerialColumns = 32;

ThreadMapping one_task_a_block(ThreadMapping mapping) {
  mapping.tasks = std::max<std::int64_t>(1, ceil_div(mapping.rows, mapping.rows_per_block)) * mapping.split;
  mapping.tasks_per_block = 1;
  mapping.blocks = mapping.tasks;
  return mapping;
}

}  // namespace

ThreadMapping element_mapping(std::int64_t elements, int threads) {
  ThreadMapping mapping;
  mapping.kind = MappingKind::kElementwise;
  mapping.rows = elements;
  mapping.rows_per_block = threads;
  return one_task_a_block(mapping);
}

ThreadMapping block_a_row_mapping(std::int64_t rows, std::int64_t cols, std::int64_t width) {
  ThreadMapping mapping;
  mapping.kind = MappingKind::kRowPack;
  mapping.rows = rows;
  mapping.cols = cols;
  mapping.threads_per_row =
      static_cast<int>(std::clamp<std::int64_t>(ceil_div(width, kWarp) * kWarp, kWarp, kMaxBlock));
  return one_task_a_block(mapping);
}

ThreadMapping column_tile_mapping(std::int64_t rows, std::int64_t cols, int split) {
  ThreadMapping mapping;
  mapping.kind = MappingKind::kColumn;
  mapping.rows = rows;
  mapping.cols = cols;
  mapping.threads_per_row = kColumnTile;
  mapping.rows_per_block = kColumnTile;
  mapping.split = split;
  if (split > 1) mapping.combine = Combine::kAtomic;
  return one_task_a_block(mapping);
}

ThreadMapping thread_a_row_mapping(std::int64_t rows, std::int64_t cols, int threads) {
  ThreadMapping mapping;
  mapping.kind = MappingKind::kRowSerial;
  mapping.rows = rows;
  mapping.cols = cols;
  mapping.rows_per_block = threads;
  return one_task_a_block(mapping);
}

ThreadMapping natural_mapping(const Computation& computation, const Node& node) {
  if (def(node.op).cls != OpClass::kReduce)
    return element_mapping(node.shape.elements_count(), kElementBlock);
  const ReductionSize shape = reduction_size(computation, node.id);
  if (shape.cols < kSerialColumns) return thread_a_row_mapping(shape.rows, shape.cols, kElementBlock);
  if (shape.row_reduce) return block_a_row_mapping(shape.rows, shape.cols, shape.cols);
  return column_tile_mapping(shape.rows, shape.cols, 1);
}

int block_threads(const ThreadMapping& mapping) {
  switch (mapping.kind) {
    case MappingKind::kElementwise:
      return static_cast<int>(
          ceil_div(mapping.rows_per_block, std::int64_t{mapping.vector} * mapping.unroll));
    case MappingKind::kRowSerial:
      return static_cast<int>(mapping.rows_per_block);
    case MappingKind::kTile:
    case MappingKind::kRowPack:
    case MappingKind::kRowSplit:
      return static_cast<int>(mapping.threads_per_row * mapping.rows_per_block);
    case MappingKind::kColumn: {
      const int threads = static_cast<int>(mapping.threads_per_row * mapping.rows_per_block);
      const Layout layout(mapping, threads);
      return std::max(threads, static_cast<int>(ceil_div(layout.slices * layout.places, mapping.vector)));
    }
  }
  SW_CHECK(false, "mapping kind {}", static_cast<int>(mapping.kind));
}

void finish_plain_launch(const Computation& computation, KernelPlan& kernel) {
  SW_CHECK(!kernel.groups.empty());
  KernelLaunch& launch = kernel.launch;
  launch.block = 1;
  launch.grid = 1;
  for (const Group& group : kernel.groups) {
    launch.grid = std::max(launch.grid, group.mapping.blocks);
    launch.block = std::max(launch.block, block_threads(group.mapping));
  }
  launch.shared_bytes = reduction_workspace_bytes(computation, kernel);
  kernel.shared.clear();
  if (launch.shared_bytes > 0) kernel.shared.push_back({kNoNode, 0, launch.shared_bytes});
}

}  // namespace stitchwork
