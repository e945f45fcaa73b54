// A group's pieces as products of matrices in regions.
#include <algorithm>

#include "analysis/planners/astra/strategies.h"
#include "core/base/at.h"
#include "core/base/error.h"

namespace stitchwork::astra {
namespace {

/// A matrix from the view of its first array on; `cols` are those of an array by itself.
struct Laid {
  CallMatrix matrix;
  std::int64_t stride = 0;
};

Laid laid(const Strategy& strategy, int view, const Matrix& alone) {
  if (view < 0) return {{-1, alone.op, 0}, alone.cols};
  const View& v = strategy.views[at(view)];
  const std::int64_t stride = strategy.regions[at(v.region)].cols;
  return {{v.region, v.op, v.row * stride + v.col}, stride};
}

void add_gemm(FusedCall& call, const Operand& left, const Operand& right, std::int64_t m, std::int64_t n,
              std::int64_t k, const Laid& a, const Laid& b, const Laid& c) {
  call.gemm.m = m;
  call.gemm.n = n;
  call.gemm.k = k;
  call.gemm.a_row = left.contracted == 1 ? a.stride : 1;
  call.gemm.a_col = left.contracted == 1 ? 1 : a.stride;
  call.gemm.b_row = right.contracted == 0 ? b.stride : 1;
  call.gemm.b_col = right.contracted == 0 ? 1 : b.stride;
  call.gemm.c_row = c.stride;
  call.left = a.matrix;
  call.right = b.matrix;
  call.result = c.matrix;
}

int view_of_array(const Strategy& strategy, NodeId op) {
  for (std::size_t v = 0; v < strategy.views.size(); ++v)
    if (strategy.views[v].op == op) return static_cast<int>(v);
  return -1;
}

/// The view in which a group has each of its arrays, where it has them.
int view_in(const Strategy& strategy, const StrategyGroup& group, const Matrix& matrix) {
  for (std::size_t i = 0; i < group.group.left.size(); ++i)
    for (std::size_t q = 0; q < group.group.left[i].size(); ++q)
      if (group.group.left[i][q].matrix == matrix) return group.left[i][q];
  for (std::size_t j = 0; j < group.group.right.size(); ++j)
    for (std::size_t q = 0; q < group.group.right[j].size(); ++q)
      if (group.group.right[j][q].matrix == matrix) return group.right[j][q];
  return view_of_array(strategy, matrix.op);
}

class CallWriter {
 public:
  CallWriter(const Products& products, const std::vector<Ladder>& ladders, const Strategy& strategy,
             const StrategyGroup& group, const Chunk& chunk)
      : products_(products), ladders_(ladders), strategy_(strategy), group_(group), chunk_(chunk) {}

  std::vector<FusedCall> write(const FusionGroup& whole) {
    const FusionGroup& g = group_.group;
    for (int i = 0; i < g.m(); i += chunk_.size[kM])
      for (int j = 0; j < g.n(); j += chunk_.size[kN])
        for (int q = 0; q < g.k(); q += chunk_.size[kK]) add_piece(i, j, q);
    for (const int l : whole.ladders)
      for (const int rung : ladders_[at(l)].rungs) add_given_up(l, rung);
    return std::move(calls_);
  }

 private:
  bool starts(int ladder) const { return ladders_[at(ladder)].start != kNoNode; }

  void add_piece(int i, int j, int q) {
    const FusionGroup& g = group_.group;
    const int is = std::min(g.m(), i + chunk_.size[kM]), js = std::min(g.n(), j + chunk_.size[kN]),
              qs = std::min(g.k(), q + chunk_.size[kK]);
    std::int64_t m = 0, n = 0, k = 0;
    for (int x = i; x < is; ++x) m += g.left[at(x)][at(q)].free();
    for (int y = j; y < js; ++y) n += g.right[at(y)][at(q)].free();
    for (int z = q; z < qs; ++z) k += g.left[at(i)][at(z)].summed();
    FusedCall call;
    call.accumulate = q > 0 || starts(g.ladder(i, j));
    const Operand &left = g.left[at(i)][at(q)], &right = g.right[at(j)][at(q)];
    add_gemm(call, left, right, m, n, k, laid(strategy_, group_.left[at(i)][at(q)], left.matrix),
             laid(strategy_, group_.right[at(j)][at(q)], right.matrix),
             laid(strategy_, group_.result[at(i * g.n() + j)], g.to(i, j)));
    for (int x = i; x < is; ++x)
      for (int y = j; y < js; ++y)
        for (int z = q; z < qs; ++z)
          call.dots.push_back(dot_of(g.ladder(x, y), g.left[at(x)][at(z)], g.right[at(y)][at(z)]));
    made_.insert(made_.end(), call.dots.begin(), call.dots.end());
    calls_.push_back(std::move(call));
  }

  NodeId dot_of(int ladder, const Operand& left, const Operand& right) const {
    for (const int rung : ladders_[at(ladder)].rungs) {
      const Product& product = products_.list[at(rung)];
      if (product.left == left && product.right == right) return product.dot;
    }
    SW_CHECK(false, "a ladder without one of its rungs");
  }
  bool is_open(NodeId dot) const { return std::find(made_.begin(), made_.end(), dot) == made_.end(); }

  void add_given_up(int ladder, int rung) {
    const Product& product = products_.list[at(rung)];
    if (!is_open(product.dot)) return;
    const Matrix to{ladders_[at(ladder)].root, product.m(), product.n()};
    FusedCall call;
    // Of a ladder that went as a whole the first rung starts the sum; of one that lost a rung others did.
    call.accumulate = starts(ladder) || rung_made(ladder);
    const auto place = [&](const Matrix& matrix) {
      return laid(strategy_, view_in(strategy_, group_, matrix), matrix);
    };
    add_gemm(call, product.left, product.right, product.m(), product.n(), product.k(),
             place(product.left.matrix), place(product.right.matrix), place(to));
    call.dots = {product.dot};
    made_.push_back(product.dot);
    calls_.push_back(std::move(call));
  }

  bool rung_made(int ladder) const {
    return std::any_of(ladders_[at(ladder)].rungs.begin(), ladders_[at(ladder)].rungs.end(),
                       [&](int rung) { return !is_open(products_.list[at(rung)].dot); });
  }

  const Products& products_;
  const std::vector<Ladder>& ladders_;
  const Strategy& strategy_;
  const StrategyGroup& group_;
  const Chunk& chunk_;
  std::vector<NodeId> made_;
  std::vector<FusedCall> calls_;
};

}  // namespace

std::vector<FusedCall> fused_calls(const Products& products, const std::vector<Ladder>& ladders,
                                   const FusionGroup& whole, const Strategy& strategy,
                                   const StrategyGroup& group, const Chunk& chunk) {
  return CallWriter(products, ladders, strategy, group, chunk).write(whole);
}

}  // namespace stitchwork::astra
