// Concatenations whose operands are computed where they have them: concat-in-place
// (core/passes/lay_beside.h).
#include <map>
#include <tuple>

#include "core/base/at.h"
#include "core/base/error.h"
#include "core/passes/lay_beside.h"
#include "core/substitute/editor.h"
#include "core/substitute/families.h"

namespace stitchwork::rewriting {
namespace {

/// Where arrays lie once `concats` are in place, too; nothing where they cannot be.
std::optional<Beside> laid(const View& view, const std::vector<NodeId>& concats) {
  Beside beside(view.computation());
  for (const Node& node : view.computation().nodes)
    if (node.op == Op::kConcatInPlace && !beside.add(node.id)) return std::nullopt;
  for (const NodeId id : concats)
    if (view.node(id).op != Op::kConcatenate || !beside.add(id)) return std::nullopt;
  if (!beside.holds()) return std::nullopt;
  return beside;
}

}  // namespace

std::optional<Match> find_concat_in_place(const View&, NodeId) { return std::nullopt; }

std::optional<Match> find_all_concat_in_place(const View& view, const std::vector<NodeId>& ops) {
  if (ops.empty() || !laid(view, ops)) return std::nullopt;
  return Match{ops};
}

void apply_concat_in_place(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Beside beside = *laid(view, match.at);
  // One array of its own for all concatenations that have the value there.
  std::map<std::tuple<int, std::int64_t, std::int64_t>, NodeId> own;
  for (const NodeId id : match.at) {
    const Node& concat = view.node(id);
    const auto pieces = beside.pieces(id);
    const auto at_matrix = beside.place_of(id);
    SW_CHECK(pieces && at_matrix, "{} has no place", concat.name);
    std::vector<NodeId> operands = concat.operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!(*pieces)[i].own) continue;
      const Beside::Block& block = (*pieces)[i].block;
      const std::tuple key(at_matrix->matrix, at_matrix->block.row + block.row,
                           at_matrix->block.col + block.col);
      const auto [known, fresh] = own.try_emplace(key, kNoNode);
      if (fresh) known->second = editor.with_own_place(operands[i]);
      operands[i] = known->second;
    }
    Attributes attributes;
    attributes.dimensions = concat.attrs.dimensions;
    editor.replace(id, editor.add(Op::kConcatInPlace, concat.shape.dtype, concat.shape.dims, operands,
                                  std::move(attributes)));
  }
}

}  // namespace stitchwork::rewriting
