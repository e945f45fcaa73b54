// What a modelled mini-batch tells: times of the calls of a space, with what has to be done around them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/planners/astra/space_tree.h"
#include "occupancy_model/library.h"

namespace stitchwork::astra {

/// A call of a group, with the arrays that it appends and those that it leaves.
struct PricedCall {
  std::vector<NodeId> dots;         ///< lefts, rights, then rungs in the order of the group
  std::vector<int> ladders;         ///< whose results it makes, or rungs of
  bool sums = false;                ///< of each ladder several rungs
  std::vector<NodeId> left, right;  ///< arrays, in order; several are appended first
  std::vector<double> us;           ///< by variant: the call and a launch gap
  /// Appending operands, of which other groups may have the same, and copying results that something wants
  /// dense.
  double around_us = 0;
};

/// The ops of a call as the rule fuse-products takes them; empty where it is a product by itself.
std::vector<NodeId> fused_ops(const Space& space, const PricedCall& call);

/// Modelled, of a call by the variant of that name (TreeOptions::variants), us.
double library_us(const Device& device, const MatrixProduct& product, std::string_view variant);

/// Modelled times of a space's products, for all options of its tree. Operands of fused calls are appended by
/// kernels, as in the paper's TensorFlow prototype, whose runtime takes no strided tensors (section 5.4); a
/// list of arrays that several groups append is appended once, and its time divided among them.
class CallPrices {
 public:
  /// `rest_us`: of a mini-batch, what is no product.
  CallPrices(const Graph& graph, const Device& device, const Space& space, const TreeOptions& options,
             bool tf32, double rest_us);

  /// Calls of a group of a strategy in a chunk.
  const std::vector<PricedCall>& calls(std::size_t strategy, int group, const std::string& chunk) const {
    return calls_.at({strategy, group}).at(chunk);
  }
  /// By chunk.
  const std::map<std::string, std::vector<PricedCall>>& group(std::size_t strategy, int number) const {
    return calls_.at({strategy, number});
  }
  /// By variant, with a launch gap.
  const std::vector<double>& dot_us(NodeId dot) const { return dots_.at(dot); }

  /// Of every variable and fork of the bindings, us: of a group the sum over its calls; of the strategy the
  /// mini-batch.
  std::map<std::string, double> measure(const Bindings& bindings) const;

 private:
  struct Appending {
    double us = 0;
    std::set<int> groups;
    std::map<std::pair<int, std::string>, int> uses;  ///< by group and chunk: calls that want it
  };
  PricedCall priced(const FusedCall& call, const Gemm& gemm) const;
  std::vector<double> variants_us(NodeId dot, const Gemm& gemm) const;
  double results_us(const PricedCall& call) const;
  void add_group(std::size_t strategy, const StrategyGroup& group);
  void share_appending(std::size_t strategy);

  const Computation& computation_;
  const Device& device_;
  const Space& space_;
  const TreeOptions& options_;
  bool tf32_;
  double rest_us_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<int> ladder_of_;                ///< by product
  std::map<NodeId, std::size_t> product_of_;  ///< by dot
  std::map<NodeId, std::vector<double>> dots_;
  std::map<std::pair<std::size_t, int>, std::map<std::string, std::vector<PricedCall>>> calls_;
};

}  // namespace stitchwork::astra
