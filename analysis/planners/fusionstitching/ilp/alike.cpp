#include "analysis/planners/fusionstitching/ilp/alike.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "analysis/forms/auto_forms.h"
#include "core/base/error.h"

namespace stitchwork::fusionstitching {
namespace {

/// Corresponding ops of two patterns that are alike, and of what they read.
class Correspondence {
 public:
  Correspondence(const Computation& computation, const std::vector<NodeId>& from,
                 const std::vector<NodeId>& to) {
    SW_CHECK(from.size() == to.size(), "{} and {} ops are not alike", from.size(), to.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      to_[from[i]] = to[i];
      const auto& operands = computation.node(from[i]).operands;
      for (std::size_t o = 0; o < operands.size(); ++o) {
        to_.emplace(operands[o], computation.node(to[i]).operands[o]);
      }
    }
  }

  void rename(NodeId& id) const {
    if (const auto at = to_.find(id); at != to_.end()) id = at->second;
  }
  void rename(std::vector<NodeId>& ids) const {
    for (NodeId& id : ids) rename(id);
    std::sort(ids.begin(), ids.end());
  }
  template <typename Value>
  void rename(std::map<NodeId, Value>& values) const {
    std::map<NodeId, Value> result;
    for (auto& [id, value] : values) {
      NodeId renamed = id;
      rename(renamed);
      result.emplace(renamed, std::move(value));
    }
    values = std::move(result);
  }

 private:
  std::map<NodeId, NodeId> to_;
};

}  // namespace

std::string pattern_key(const astitch::Nodes& nodes, const std::vector<NodeId>& evaluated,
                        const std::vector<NodeId>& outputs) {
  KernelPlan kernel;
  kernel.ops = evaluated;
  std::string key = automatic::signature({&nodes, nullptr, nullptr, &kernel, nullptr, {evaluated, outputs}});
  for (const NodeId id : evaluated) {
    const auto& dot = nodes.node(id).attrs.dot;
    if (!dot) continue;
    key += fmt::format(" {}|{}|{}|{}", fmt::join(dot->lhs_batch, ","), fmt::join(dot->rhs_batch, ","),
                       fmt::join(dot->lhs_contracting, ","), fmt::join(dot->rhs_contracting, ","));
  }
  return key;
}

KernelPlan renamed(const Computation& computation, const KernelPlan& kernel, const std::vector<NodeId>& from,
                   const std::vector<NodeId>& to) {
  const Correspondence as(computation, from, to);
  KernelPlan result = kernel;
  as.rename(result.ops);
  as.rename(result.outputs);
  for (Group& group : result.groups) {
    as.rename(group.dominant);
    for (auto* ids : {&group.sub_dominants, &group.across, &group.one_pass, &group.ops}) as.rename(*ids);
  }
  as.rename(result.schemes);
  as.rename(result.levels);
  as.rename(result.in_phase);
  for (auto* slots : {&result.shared, &result.scratch})
    for (MemorySlot& slot : *slots) as.rename(slot.op);
  for (Residence& residence : result.resident) {
    as.rename(residence.op);
    as.rename(residence.group);
  }
  std::stable_sort(result.resident.begin(), result.resident.end(),
                   [](const Residence& a, const Residence& b) { return a.op < b.op; });
  for (Tile& tile : result.tiles) {
    as.rename(tile.op);
    as.rename(tile.group);
  }
  as.rename(result.shrunk);
  return result;
}

}  // namespace stitchwork::fusionstitching
