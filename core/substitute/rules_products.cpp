// Several products as one: fuse-products. The planners of Astra name the dots (docs/planners/astra.md).
#include <algorithm>
#include <map>
#include <set>

#include "core/base/at.h"
#include "core/substitute/editor.h"
#include "core/substitute/families.h"
#include "core/substitute/matrix_side.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {
namespace {

/// An operand: an array and how it is a matrix.
struct Factor {
  NodeId op = kNoNode;
  MatrixSide side;
  bool operator<(const Factor& other) const { return op < other.op; }
  bool operator==(const Factor&) const = default;
};

/// left * right, the value of `result`: the dot, or a transpose that alone reads it, its sides swapped.
struct Term {
  NodeId dot = kNoNode, result = kNoNode;
  Factor left, right;
};

/// The sum of `terms` in the tree of adds below `root`; of one term `root` is its result.
struct SumOfProducts {
  NodeId root = kNoNode;
  std::vector<Term> terms;
  std::vector<Factor> lefts() const {
    std::vector<Factor> result;
    for (const Term& term : terms) result.push_back(term.left);
    return result;
  }
  std::vector<Factor> rights() const {
    std::vector<Factor> result;
    for (const Term& term : terms) result.push_back(term.right);
    return result;
  }
};

/// Sums whose products one makes: at [i * rights + j] that of lefts i and rights j.
struct Grid {
  std::vector<SumOfProducts> sums;
  std::vector<std::vector<Factor>> lefts, rights;  ///< as many each as a sum has terms
};

/// What a reshape is another name of.
NodeId unshaped(const View& view, NodeId id) {
  while (view.node(id).op == Op::kReshape) id = view.node(id).operands[0];
  return id;
}

std::optional<Term> term_of(const View& view, NodeId id) {
  const Node& dot = view.node(id);
  if (dot.op != Op::kDot || !dot.attrs.dot || !dot.attrs.dot->lhs_batch.empty() ||
      !is_real(dot.shape.dtype) || dot.shape.elements_count() == 0)
    return std::nullopt;
  const DotDims dims = with_sorted_contraction(*dot.attrs.dot);
  Term term{id, id, {}, {}};
  for (const std::size_t side : {0, 1}) {
    const Node& operand = view.operand(dot, side);
    const auto matrix =
        matrix_side(operand.shape.dims, side == 0 ? dims.lhs_contracting : dims.rhs_contracting);
    if (!matrix || operand.shape.dtype != dot.shape.dtype || matrix->summed() == 0) return std::nullopt;
    (side == 0 ? term.left : term.right) = {unshaped(view, operand.id), *matrix};
  }
  if (view.readers(id).size() != 1) return term;
  const Node& reader = view.node(view.readers(id)[0]);
  if (reader.op == Op::kTranspose && reader.attrs.dimensions == Dims{1, 0} &&
      view.only_read_by(id, reader.id)) {
    term.result = reader.id;
    std::swap(term.left, term.right);
  }
  return term;
}

/// Whether all of `leaves` are in the tree of adds below `root`: inner adds are read there alone.
bool sums(const View& view, NodeId root, std::set<NodeId> leaves) {
  std::vector<NodeId> open{root};
  while (!open.empty()) {
    const Node& add = view.node(open.back());
    open.pop_back();
    if (add.op != Op::kAdd || (add.id != root && view.readers(add.id).size() != 1)) return false;
    if (add.operands[0] == add.operands[1]) continue;
    for (const NodeId read : add.operands) {
      if (!view.only_read_by(read, add.id) || !view.node(read).shape.compatible(add.shape)) continue;
      if (leaves.erase(read) == 0 && view.node(read).op == Op::kAdd) open.push_back(read);
    }
  }
  return leaves.empty();
}

/// The ops of a match: dots alone, or an add and the dots that it sums.
std::vector<SumOfProducts> sums_of(const View& view, const std::vector<NodeId>& ops) {
  std::vector<SumOfProducts> result;
  std::set<NodeId> seen;
  bool in_sum = false;
  for (const NodeId id : ops) {
    if (!seen.insert(id).second) return {};
    if (view.node(id).op == Op::kAdd) {
      result.push_back({id, {}});
      in_sum = true;
      continue;
    }
    const std::optional<Term> term = term_of(view, id);
    if (!term) return {};
    if (!in_sum) result.push_back({term->result, {}});
    result.back().terms.push_back(*term);
  }
  for (const SumOfProducts& sum : result) {
    if (sum.terms.empty()) return {};
    if (!in_sum) continue;
    std::set<NodeId> leaves;
    for (const Term& term : sum.terms) leaves.insert(term.result);
    if (leaves.size() != sum.terms.size() || !sums(view, sum.root, leaves)) return {};
  }
  return result;
}

/// Ops of which some are summed start with an add, so that all dots belong to one.
std::optional<Grid> grid_of(const View& view, const std::vector<NodeId>& ops) {
  Grid grid;
  std::map<std::pair<std::size_t, std::size_t>, SumOfProducts> places;
  const auto place_in = [](std::vector<std::vector<Factor>>& lists, std::vector<Factor> list) {
    const auto found = std::ranges::find(lists, list);
    const auto place = static_cast<std::size_t>(found - lists.begin());
    if (found == lists.end()) lists.push_back(std::move(list));
    return place;
  };
  const std::vector<SumOfProducts> sums = sums_of(view, ops);
  if (sums.empty() || (sums.size() == 1 && sums[0].terms.size() == 1)) return std::nullopt;
  const Term& first = sums[0].terms[0];
  const Node& like = view.node(first.dot);
  for (const SumOfProducts& sum : sums) {
    if (sum.terms.size() != sums[0].terms.size()) return std::nullopt;
    for (const Term& term : sum.terms) {
      const Node& dot = view.node(term.dot);
      if (dot.shape.dtype != like.shape.dtype || dot.attrs.other != like.attrs.other ||
          term.left.side.contracted != first.left.side.contracted ||
          term.right.side.contracted != first.right.side.contracted)
        return std::nullopt;
    }
    const std::size_t i = place_in(grid.lefts, sum.lefts()), j = place_in(grid.rights, sum.rights());
    if (!places.try_emplace({i, j}, sum).second) return std::nullopt;
  }
  if (places.size() != grid.lefts.size() * grid.rights.size()) return std::nullopt;
  // Along an axis all have one extent of what they sum over, term by term.
  for (const auto* lists : {&grid.lefts, &grid.rights})
    for (const std::vector<Factor>& list : *lists)
      for (std::size_t q = 0; q < list.size(); ++q)
        if (list[q].side.summed() != grid.lefts[0][q].side.summed() ||
            list[q].side.free() != list[0].side.free())
          return std::nullopt;
  for (auto& [place, sum] : places) grid.sums.push_back(std::move(sum));
  return grid;
}

/// The matrices of all lists as one.
NodeId appended(Editor& editor, const std::vector<std::vector<Factor>>& lists) {
  std::vector<NodeId> all;
  const auto contracted = at(lists[0][0].side.contracted);
  for (const std::vector<Factor>& list : lists) {
    std::vector<NodeId> parts;
    for (const Factor& factor : list) {
      const Dims dims{factor.side.rows, factor.side.cols};
      parts.push_back(editor.dims(factor.op) == dims ? factor.op : editor.emit().reshape(factor.op, dims));
    }
    all.push_back(editor.concatenate(parts, contracted));
  }
  return editor.concatenate(all, 1 - contracted);
}

NodeId block(Editor& editor, NodeId matrix, std::int64_t row, std::int64_t rows, std::int64_t col,
             std::int64_t cols) {
  if (editor.dims(matrix) == Dims{rows, cols}) return matrix;
  Attributes attributes;
  attributes.slice = {{row, row + rows, 1}, {col, col + cols, 1}};
  return editor.add(Op::kSlice, editor.shape(matrix).dtype, {rows, cols}, {matrix}, std::move(attributes));
}

/// The tree of adds below `id` without those leaves; kNoNode: nothing is left of it.
NodeId rest_of(Editor& editor, NodeId id, const std::set<NodeId>& leaves, bool is_root) {
  const View& view = editor.view();
  if (leaves.contains(id)) return kNoNode;
  const Node& add = view.node(id);
  if (add.op != Op::kAdd || add.operands[0] == add.operands[1] || (!is_root && view.readers(id).size() != 1))
    return id;
  NodeId parts[2];
  for (const std::size_t side : {0, 1}) {
    const NodeId read = add.operands[side];
    parts[side] = view.only_read_by(read, id) ? rest_of(editor, read, leaves, false) : read;
  }
  if (parts[0] == add.operands[0] && parts[1] == add.operands[1] && !is_root) return id;
  if (parts[0] == kNoNode || parts[1] == kNoNode) return parts[0] == kNoNode ? parts[1] : parts[0];
  return editor.add(Op::kAdd, add.shape.dtype, add.shape.dims, {parts[0], parts[1]});
}

}  // namespace

std::optional<Match> find_fuse_products(const View&, NodeId) { return std::nullopt; }

std::optional<Match> find_all_fuse_products(const View& view, const std::vector<NodeId>& ops) {
  if (!grid_of(view, ops)) return std::nullopt;
  return Match{ops};
}

void apply_fuse_products(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Grid grid = *grid_of(view, match.at);
  const Term& first = grid.sums[0].terms[0];
  const Dims left{first.left.side.contracted}, right{first.right.side.contracted};
  const NodeId all = editor.dot(appended(editor, grid.lefts), appended(editor, grid.rights),
                                {{}, {}, left, right}, view.node(first.dot));
  std::int64_t row = 0;
  for (std::size_t i = 0; i < grid.lefts.size(); ++i) {
    const std::int64_t rows = grid.lefts[i][0].side.free();
    std::int64_t col = 0;
    for (std::size_t j = 0; j < grid.rights.size(); ++j) {
      const std::int64_t cols = grid.rights[j][0].side.free();
      const SumOfProducts& sum = grid.sums[i * grid.rights.size() + j];
      const Node& root = view.node(sum.root);
      const NodeId part = block(editor, all, row, rows, col, cols);
      NodeId value =
          root.shape.dims == Dims{rows, cols} ? part : editor.emit().reshape(part, root.shape.dims);
      if (root.op == Op::kAdd && sum.terms[0].result != sum.root) {
        std::set<NodeId> leaves;
        for (const Term& term : sum.terms) leaves.insert(term.result);
        const NodeId rest = rest_of(editor, sum.root, leaves, true);
        if (rest != kNoNode) value = editor.add(Op::kAdd, root.shape.dtype, root.shape.dims, {rest, value});
      }
      editor.replace(sum.root, value);
      col += cols;
    }
    row += rows;
  }
}

}  // namespace stitchwork::rewriting
