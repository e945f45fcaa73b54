#include <algorithm>
#include <map>

#include "analysis/plan/assemble.h"
#include "analysis/verify/verify_internal.h"
#include "core/base/at.h"

namespace stitchwork::verification {
namespace {

/// A placed array as rows and columns of its matrix.
struct Block {
  NodeId op = kNoNode;
  std::int64_t row = 0, col = 0, rows = 0, cols = 0;
};

std::int64_t pitch(const PlacedArray& placed) { return placed.matrix.dims.back(); }

Block block_of(const Node& node) {
  const PlacedArray& placed = *node.attrs.placed;
  return {node.id, placed.offset / pitch(placed), placed.offset % pitch(placed),
          node.shape.elements_count() / placed.cols, placed.cols};
}

void check_inside(const Node& node, Report& report) {
  const PlacedArray& placed = *node.attrs.placed;
  const Block block = block_of(node);
  if (placed.offset < 0 || block.col + block.cols > pitch(placed) ||
      (block.row + block.rows) * pitch(placed) > placed.matrix.elements_count())
    report.add("place", "{} of {} rows and {} columns leaves its matrix {} at element {}", node.name,
               block.rows, block.cols, to_text(placed.matrix), placed.offset);
}

/// Operands of a concatenation in place lie where it has them.
void check_concat(const Computation& computation, const Node& concat, Report& report) {
  if (concat.attrs.placed == nullptr) {
    report.add("place", "{} has no place, and nothing computes it", concat.name);
    return;
  }
  const PlacedArray& whole = *concat.attrs.placed;
  const bool below = concat.attrs.dimensions.at(0) == 0;
  std::int64_t offset = whole.offset;
  for (const NodeId operand : concat.operands) {
    const Node& owner = computation.node(buffer_of(computation, operand));
    const PlacedArray* placed = owner.attrs.placed.get();
    if (placed == nullptr || placed->owner != whole.owner || placed->offset != offset)
      report.add("place", "{} does not lie where {} has it, at element {} of its matrix", owner.name,
                 concat.name, offset);
    if (placed == nullptr) return;
    offset += below ? owner.shape.elements_count() / placed->cols * pitch(whole) : placed->cols;
  }
}

/// Arrays that are computed share no element.
void check_apart(const Computation& computation, std::vector<Block> blocks, Report& report) {
  std::ranges::sort(blocks, {}, &Block::row);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    for (std::size_t j = i + 1; j < blocks.size() && blocks[j].row < blocks[i].row + blocks[i].rows; ++j)
      if (blocks[i].col < blocks[j].col + blocks[j].cols && blocks[j].col < blocks[i].col + blocks[i].cols)
        report.add("place", "{} and {} lie over each other in one matrix",
                   computation.node(blocks[i].op).name, computation.node(blocks[j].op).name);
}

}  // namespace

void check_places(const Computation& computation, Report& report) {
  std::map<NodeId, std::vector<Block>> matrices;
  const std::size_t before = report.problems.size();
  for (const Node& node : computation.nodes) {
    if (node.op == Op::kConcatInPlace) check_concat(computation, node, report);
    if (node.attrs.placed == nullptr) continue;
    check_inside(node, report);
    if (node.op != Op::kConcatInPlace) matrices[node.attrs.placed->owner].push_back(block_of(node));
  }
  if (report.problems.size() > before) return;
  for (auto& [owner, blocks] : matrices) check_apart(computation, std::move(blocks), report);
}

}  // namespace stitchwork::verification
