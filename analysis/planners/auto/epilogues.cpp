#include "analysis/planners/auto/epilogues.h"

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/epilogue.h"
#include "core/base/sorted.h"

namespace stitchwork::automatic {
namespace {

using Call = std::vector<NodeId>;

/// Single calls of a kernel that are looked at. A choice, not measured: each is a kernel to plan.
constexpr std::size_t kMostSingle = 4;

class Absorber {
 public:
  Absorber(const astitch::Nodes& nodes, const std::vector<Candidate>& kernels, const Constraints& constraints)
      : nodes_(nodes), kernels_(kernels), named_(constraints.named()), owner_(nodes.facts.size(), -1) {
    for (std::size_t k = 0; k < kernels.size(); ++k)
      for (const NodeId op : kernels[k].members) owner_[at(op)] = static_cast<int>(k);
    for (const astitch::NodeFacts& facts : nodes.facts) users_.push_back(facts.users);
  }

  std::vector<Absorption> run() const {
    std::map<int, std::vector<std::vector<Call>>> offers;  // by kernel, then by product, the longest first
    for (const Node& node : nodes_.computation->nodes) {
      if (owner_[at(node.id)] >= 0) continue;
      std::vector<Call> calls = calls_with_epilogue(*nodes_.computation, users_, node.id);
      std::ranges::reverse(calls);
      std::erase_if(calls, [&](const Call& call) { return !kernel_of(call); });
      if (!calls.empty()) offers[*kernel_of(calls.front())].push_back(std::move(calls));
    }
    std::vector<Absorption> result;
    for (const auto& [kernel, of_products] : offers) add(kernel, of_products, result);
    return result;
  }

 private:
  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

  /// The kernel that all of the call is of that a kernel would compute.
  std::optional<int> kernel_of(const Call& call) const {
    std::optional<int> kernel;
    for (const NodeId op : call) {
      if (!takes_from_kernels(nodes_.node(op))) continue;
      const int owner = owner_[at(op)];
      if (owner < 0 || contains_sorted(named_, op) || (kernel && *kernel != owner)) return std::nullopt;
      kernel = owner;
    }
    return kernel;
  }

  enum class Adds : std::uint8_t { kNothingThere, kMemory, kOwnValue };

  /// Where what the call adds lies before it: in memory, be it of other calls (`results`, which make the ops
  /// of `taken`), or only once the kernel has run.
  Adds adds(int kernel, const Call& call, const std::vector<NodeId>& taken,
            const std::vector<NodeId>& results) const {
    const std::optional<Epilogue> epilogue = epilogue_of(*nodes_.computation, call);
    Adds result = Adds::kMemory;
    for (const NodeId value : {epilogue->bias, epilogue->addend}) {
      if (value == kNoNode) continue;
      for (const NodeId read : values_read(*nodes_.computation, value)) {
        const int owner = owner_[at(read)];
        if (contains_sorted(taken, read)) {
          if (!contains_sorted(results, read)) return Adds::kNothingThere;
        } else if (owner == kernel) {
          result = Adds::kOwnValue;
        } else if (owner < 0 && nodes_[read].role == PlanRole::kMemory) {
          return Adds::kNothingThere;  // an index map that no kernel stores
        }
      }
    }
    return result;
  }

  /// Whether a member that is left reads one of `values`, be it through calls that make ops of `taken`.
  bool left_reads(int kernel, std::vector<NodeId> values, const std::vector<NodeId>& taken) const {
    std::vector<NodeId> seen;
    while (!values.empty()) {
      const NodeId value = values.back();
      values.pop_back();
      for (const NodeId user : nodes_[value].users) {
        if (contains_sorted(seen, user)) continue;
        insert_sorted(seen, user);
        const bool passes_on =
            contains_sorted(taken, user) || (owner_[at(user)] < 0 && is_index_map(nodes_.node(user)));
        if (passes_on)
          values.push_back(user);
        else if (owner_[at(user)] == kernel)
          return true;
      }
    }
    return false;
  }

  /// The kernel without the sums of those of `wanted`, each product's first that goes with the others.
  /// `own_values`: calls may add what the kernel makes, which then reads none of their results.
  std::optional<Absorption> without(int kernel, const std::vector<std::vector<Call>>& wanted,
                                    bool own_values) const {
    Absorption made{kernel, {}, {}};
    std::vector<NodeId> taken, results, after_kernel;
    for (const std::vector<Call>& of_product : wanted)
      for (const Call& call : of_product) {
        const bool free = std::ranges::none_of(call, [&](NodeId op) {
          return takes_from_kernels(nodes_.node(op)) && contains_sorted(taken, op);
        });
        const Adds from = free ? adds(kernel, call, taken, results) : Adds::kNothingThere;
        if (from == Adds::kNothingThere || (from == Adds::kOwnValue && !own_values)) continue;
        for (const NodeId op : call)
          if (takes_from_kernels(nodes_.node(op))) insert_sorted(taken, op);
        insert_sorted(results, call.back());
        if (from == Adds::kOwnValue) after_kernel.push_back(call.back());
        made.calls.push_back(call);
        break;
      }
    if (made.calls.empty()) return std::nullopt;
    if (left_reads(kernel, after_kernel, taken)) return without(kernel, wanted, false);
    std::vector<NodeId> left;
    std::ranges::copy_if(kernels_[static_cast<std::size_t>(kernel)].members, std::back_inserter(left),
                         [&](NodeId op) { return !contains_sorted(taken, op); });
    if (!left.empty()) made.after = astitch::stitch_op(nodes_, std::move(left));
    return made;
  }

  void add(int kernel, const std::vector<std::vector<Call>>& of_products,
           std::vector<Absorption>& result) const {
    const std::optional<Absorption> all = without(kernel, of_products, true);
    if (!all) return;
    result.push_back(*all);
    std::size_t singles = 0;
    for (const std::vector<Call>& calls : of_products)
      for (const Call& call : calls) {
        if (singles == kMostSingle) return;
        const std::optional<Absorption> one = without(kernel, {{call}}, true);
        if (!one || one->calls == all->calls) continue;
        result.push_back(*one);
        ++singles;
      }
  }

  const astitch::Nodes& nodes_;
  const std::vector<Candidate>& kernels_;
  std::vector<NodeId> named_;  ///< by overrides; ascending
  std::vector<int> owner_;     ///< by node: its kernel; -1: none
  std::vector<std::vector<NodeId>> users_;
};

}  // namespace

std::vector<Absorption> absorptions(const astitch::Nodes& nodes, const std::vector<Candidate>& kernels,
                                    const Constraints& constraints) {
  return Absorber(nodes, kernels, constraints).run();
}

}  // namespace stitchwork::automatic
