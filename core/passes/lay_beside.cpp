#include "core/passes/lay_beside.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/at.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

using Dims = std::vector<std::int64_t>;

std::int64_t elements_in(std::span<const std::int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

/// How many leading dimensions are the rows.
std::size_t row_dims(const Node& concat) {
  return static_cast<std::size_t>(std::max<std::int64_t>(1, concat.attrs.dimensions.at(0)));
}

Beside::Block matrix_of(const Dims& dims, std::size_t row_dims) {
  const std::span<const std::int64_t> all(dims);
  return {0, 0, elements_in(all.first(row_dims)), elements_in(all.subspan(row_dims))};
}

/// The op whose buffer it is: reshapes are other names.
NodeId owner_of(const Computation& computation, NodeId id) {
  while (computation.node(id).op == Op::kReshape || computation.node(id).op == Op::kBitcast)
    id = computation.node(id).operands[0];
  return id;
}

/// Extents by which an array of `dims` is a block of so many cols in rows of `pitch` elements; nothing where
/// its dimensions do not part into rows and cols, or the rest of a row is no multiple of what lies below.
std::optional<Dims> extents_in(const Dims& dims, std::int64_t cols, std::int64_t pitch) {
  if (cols == pitch) return dims;
  for (std::size_t first = 0; first < dims.size(); ++first) {
    const std::span<const std::int64_t> all(dims);
    const std::int64_t below = elements_in(all.subspan(first + 1));
    if (elements_in(all.subspan(first)) != cols || pitch % below != 0) continue;
    Dims extents = dims;
    extents[first] = pitch / below;
    return extents;
  }
  return std::nullopt;
}

/// A number in every element, a broadcast constant.
bool is_number(const Computation& computation, NodeId op) {
  for (NodeId id = op;; id = computation.node(id).operands[0]) {
    const Node& node = computation.node(id);
    if (has_own_place(node)) return false;
    if (node.op == Op::kConstant) return !node.shape.is_tuple && node.shape.elements_count() == 1;
    if (node.op != Op::kBroadcast && node.op != Op::kReshape && node.op != Op::kBitcast) return false;
  }
}

bool overlap(const Beside::Block& a, const Beside::Block& b) {
  return a.row < b.row + b.rows && b.row < a.row + a.rows && a.col < b.col + b.cols && b.col < a.col + a.cols;
}

}  // namespace

/// A parameter, or computed by a kernel, element for element; read by nothing that wants it dense.
bool Beside::may_be_block(NodeId op) const {
  const Node& node = computation_.node(op);
  const OpDef& row = def(node.op);
  if (node.shape.is_tuple || node.shape.elements_count() == 0) return false;
  const bool kernels = row.execution == Execution::kGenerated && row.cls != OpClass::kReduce &&
                       node.op != Op::kCopy && node.op != Op::kUpdateInPlace;
  if (!kernels && node.op != Op::kParameter && node.op != Op::kConcatInPlace) return false;
  std::vector<std::pair<NodeId, bool>> open;  // who reads it; under another name
  for (const NodeId user : users_[at(op)]) open.emplace_back(user, false);
  while (!open.empty()) {
    const auto [id, renamed] = open.back();
    open.pop_back();
    const Node& user = computation_.node(id);
    if (user.op == Op::kReshape || user.op == Op::kBitcast) {
      for (const NodeId next : users_[at(id)]) open.emplace_back(next, true);
      continue;
    }
    // Products take matrices whose rows lie apart.
    const bool blocks = def(user.op).execution == Execution::kGenerated || user.op == Op::kConcatInPlace ||
                        (user.op == Op::kDot && !renamed) ||
                        (user.op == Op::kTuple && node.op != Op::kParameter);
    if (!blocks || user.op == Op::kCopy || (renamed && id == computation_.root)) return false;
  }
  return op != computation_.root;
}

std::optional<std::vector<Beside::Piece>> Beside::pieces(NodeId concat) const {
  const Node& node = computation_.node(concat);
  const bool rows = node.attrs.dimensions.at(0) == 0;
  std::vector<Piece> result;
  std::int64_t next = 0;
  for (const NodeId operand : node.operands) {
    Piece piece;
    piece.op = owner_of(computation_, operand);
    piece.own = is_number(computation_, operand) || !may_be_block(piece.op);
    piece.block = matrix_of(computation_.node(operand).shape.dims, row_dims(node));
    (rows ? piece.block.row : piece.block.col) = next;
    next += rows ? piece.block.rows : piece.block.cols;
    result.push_back(piece);
  }
  if (std::ranges::all_of(result, &Piece::own)) return std::nullopt;
  return result;
}

std::optional<Beside::At> Beside::place_of(NodeId op) const {
  const auto found = cluster_of_.find(op);
  if (found == cluster_of_.end()) return std::nullopt;
  return At{found->second, clusters_.at(found->second).arrays.at(op)};
}

Beside::Block Beside::Cluster::box() const {
  Block first = leaves.front().block, last = first;
  std::int64_t end_row = 0, end_col = 0;
  for (const Leaf& leaf : leaves) {
    first.row = std::min(first.row, leaf.block.row);
    first.col = std::min(first.col, leaf.block.col);
  }
  for (const Leaf& leaf : leaves) {
    end_row = std::max(end_row, leaf.block.row + leaf.block.rows);
    end_col = std::max(end_col, leaf.block.col + leaf.block.cols);
  }
  return {first.row, first.col, end_row - first.row, end_col - first.col};
}

/// The cluster in which the concatenation is at (0, 0), with all that its pieces lie beside.
std::optional<Beside::Cluster> Beside::joined(NodeId concat, const std::vector<Piece>& pieces) const {
  std::map<int, std::pair<std::int64_t, std::int64_t>> shifts;  // by cluster
  const auto pin = [&](NodeId op, const Block& wanted) {
    const auto known = cluster_of_.find(op);
    if (known == cluster_of_.end()) return true;
    const Block& has = clusters_.at(known->second).arrays.at(op);
    if (has.rows != wanted.rows || has.cols != wanted.cols) return false;
    const std::pair shift(wanted.row - has.row, wanted.col - has.col);
    return shifts.try_emplace(known->second, shift).first->second == shift;
  };
  const Node& node = computation_.node(concat);
  const Block whole = matrix_of(node.shape.dims, row_dims(node));
  if (!pin(concat, whole)) return std::nullopt;
  for (const Piece& piece : pieces)
    if (!piece.own && !pin(piece.op, piece.block)) return std::nullopt;
  Cluster result;
  const auto take = [&](const Cluster::Leaf& leaf) {
    for (const Cluster::Leaf& other : result.leaves) {
      if (!overlap(other.block, leaf.block)) continue;
      return other.op == leaf.op && other.own == leaf.own && other.block == leaf.block;
    }
    result.leaves.push_back(leaf);
    return true;
  };
  for (const auto& [c, shift] : shifts) {
    const Cluster& of = clusters_.at(c);
    for (const auto& [op, block] : of.arrays)
      result.arrays[op] = {block.row + shift.first, block.col + shift.second, block.rows, block.cols};
    for (Cluster::Leaf leaf : of.leaves) {
      leaf.block.row += shift.first;
      leaf.block.col += shift.second;
      if (!take(leaf)) return std::nullopt;
    }
  }
  for (const Piece& piece : pieces) {
    if (!piece.own && !result.arrays.try_emplace(piece.op, piece.block).second) {
      if (result.arrays.at(piece.op) != piece.block) return std::nullopt;  // twice in one concatenation
      continue;
    }
    if (!take({piece.op, piece.own, piece.block})) return std::nullopt;
  }
  result.arrays[concat] = whole;
  return result;
}

bool Beside::holds(const Cluster& cluster) const {
  // Holes between blocks are memory that nobody uses. A choice, not measured: no more of it than is used.
  constexpr std::int64_t kMostRoom = 2;
  const Block box = cluster.box();
  std::int64_t used = 0;
  for (const Cluster::Leaf& leaf : cluster.leaves) used += leaf.block.rows * leaf.block.cols;
  return box.rows * box.cols <= kMostRoom * used &&
         std::ranges::all_of(cluster.arrays, [&](const auto& array) {
           return extents_in(computation_.node(array.first).shape.dims, array.second.cols, box.cols)
               .has_value();
         });
}

bool Beside::holds() const {
  return std::ranges::all_of(clusters_, [&](const auto& cluster) { return holds(cluster.second); });
}

void Beside::take(Cluster cluster) {
  for (const auto& [op, block] : cluster.arrays) {
    if (const auto old = cluster_of_.find(op); old != cluster_of_.end()) clusters_.erase(old->second);
    cluster_of_[op] = next_;
  }
  clusters_[next_++] = std::move(cluster);
}

bool Beside::add(NodeId concat, bool within_room) {
  const auto list = pieces(concat);
  if (!list || list->size() < 2 || !may_be_block(concat)) return false;
  std::optional<Cluster> cluster = joined(concat, *list);
  if (!cluster || (within_room && !holds(*cluster))) return false;
  take(std::move(*cluster));
  return true;
}

void Beside::settle(Computation& computation) const {
  for (const auto& [number, cluster] : clusters_) {
    const Block box = cluster.box();
    // A parameter is there before the first step and stays, and so does the matrix that it lies in.
    const auto parameter = std::ranges::find_if(cluster.arrays, [&](const auto& array) {
      return computation.node(array.first).op == Op::kParameter;
    });
    const NodeId owner = (parameter == cluster.arrays.end() ? cluster.arrays.begin() : parameter)->first;
    const Shape matrix = Shape::array(computation.node(owner).shape.dtype, {box.rows, box.cols});
    for (const auto& [op, block] : cluster.arrays) {
      Node& node = computation.nodes[at(op)];
      const auto extents = extents_in(node.shape.dims, block.cols, box.cols);
      SW_CHECK(extents.has_value(), "{} is no block of a matrix", node.name);
      const std::int64_t offset = (block.row - box.row) * box.cols + block.col - box.col;
      node.attrs.placed = std::make_shared<PlacedArray>(
          PlacedArray{owner, matrix, offset, block.cols, *extents, has_own_place(node)});
    }
  }
}

std::vector<NodeId> concats_in_place(const Computation& computation, std::vector<NodeId> concats) {
  std::ranges::stable_sort(concats, std::greater<>(),
                           [&](NodeId id) { return computation.node(id).shape.byte_size(); });
  Beside beside(computation);
  std::set<NodeId> tried;
  std::vector<NodeId> taken;
  for (const NodeId root : concats) {
    std::vector<NodeId> inner{root};  // what each is made of behind it
    for (std::size_t i = 0; i < inner.size(); ++i)
      for (const NodeId operand : computation.node(inner[i]).operands)
        if (computation.node(operand).op == Op::kConcatenate) inner.push_back(operand);
    for (auto id = inner.rbegin(); id != inner.rend(); ++id)
      if (tried.insert(*id).second && beside.add(*id, true)) taken.push_back(*id);
  }
  std::ranges::sort(taken);
  return taken;
}

void lay_beside(Computation& computation) {
  const auto in_place = [](const Node& node) { return node.op == Op::kConcatInPlace; };
  if (std::ranges::none_of(computation.nodes, in_place)) return;
  Beside beside(computation);
  for (const Node& node : computation.nodes)
    if (in_place(node) && !beside.add(node.id))
      throw Error("the operands of '" + node.name + "' cannot lie beside each other");
  for (Node& node : computation.nodes)
    if (!has_own_place(node)) node.attrs.placed = nullptr;
  beside.settle(computation);
}

}  // namespace stitchwork
