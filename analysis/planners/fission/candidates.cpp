#include "analysis/planners/fission/candidates.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "analysis/forms/auto_forms.h"
#include "analysis/judge/cost.h"
#include "analysis/judge/judge.h"
#include "analysis/judge/library_cost.h"
#include "analysis/planners/fission/extract.h"
#include "analysis/planners/tvm/forward_graph.h"
#include "analysis/schedule/inlined_kernel.h"
#include "analysis/schedule/plain_mapping.h"
#include "core/base/at.h"
#include "core/base/interrupt.h"

namespace stitchwork::fission {
namespace {

/// Whether a kernel may compute the primitive inside: where TVM makes one function, all but its result are
/// injective.
bool may_be_inside(const astitch::Nodes& nodes, NodeId op) {
  return tvm::kind_of(nodes.node(op)) <= tvm::Kind::kInjective && !nodes[op].isolated;
}

/// Drops those for which another stores the same, reads nothing beyond and costs no more.
void drop_dominated(std::vector<Candidate>& of_sink) {
  std::ranges::stable_sort(of_sink, {}, &Candidate::us);
  std::vector<Candidate> kept;
  for (const Candidate& candidate : of_sink)
    if (std::ranges::none_of(kept, [&](const Candidate& k) { return (k.inputs & ~candidate.inputs) == 0; }))
      kept.push_back(candidate);
  of_sink = std::move(kept);
}

}  // namespace

std::vector<NodeId> primitives_of(const Window& window, Mask set) {
  std::vector<NodeId> result;
  for (; set != 0; set &= set - 1) result.push_back(window.ops[at(std::countr_zero(set))]);
  std::ranges::sort(result);
  return result;
}

Mask inputs_of(const Window& window, Mask set) {
  Mask result = 0;
  for (Mask rest = set; rest != 0; rest &= rest - 1) result |= window.producers[at(std::countr_zero(rest))];
  return result & ~set;
}

std::vector<Mask> cones(const Window& window, int sink, Mask inner, int ops, std::size_t most) {
  std::vector<Mask> found{only(sink)};
  std::unordered_set<Mask> seen{only(sink)};
  for (std::size_t next = 0; next < found.size(); ++next) {
    const Mask set = found[next];
    if (std::popcount(set) >= ops) continue;
    for (Mask more = inputs_of(window, set) & inner; more != 0; more &= more - 1) {
      const Mask larger = set | only(std::countr_zero(more));
      if (found.size() == most) return found;
      if (seen.insert(larger).second) found.push_back(larger);
    }
  }
  return found;
}

bool is_convex(const Window& window, Mask set) {
  for (Mask rest = set; rest != 0; rest &= rest - 1) {
    const int i = std::countr_zero(rest);
    Mask through = window.outside[at(i)];
    for (Mask read = window.producers[at(i)] & ~set; read != 0; read &= read - 1)
      through |= window.ancestors[at(std::countr_zero(read))];
    if ((through & set) != 0) return false;
  }
  return true;
}

bool Prices::is_copy(const std::vector<NodeId>& primitives) const {
  return primitives.size() == 1 && nodes_.node(primitives[0]).op == Op::kCopy &&
         with_index_maps(nodes_, primitives).size() == 1;
}

KernelPlan Prices::kernel(const std::vector<NodeId>& primitives, NodeId sink) const {
  const Computation& computation = *nodes_.computation;
  KernelPlan result = inlined_kernel(computation, with_index_maps(nodes_, primitives), {sink}, sink,
                                     natural_mapping(computation, computation.node(sink)));
  result.outputs = {sink};
  return result;
}

double Prices::us(const KernelPlan& kernel) const {
  return modelled_judge().worth(*nodes_.graph, device_, {&kernel, 1}).us;
}

std::optional<double> Prices::us(const std::vector<NodeId>& primitives, NodeId sink) {
  if (is_copy(primitives))
    return transfer_us(device_, call_bytes(*nodes_.computation, nodes_.node(sink), true)) +
           device_.launch_gap_us;
  const std::vector<NodeId> ops = with_index_maps(nodes_, primitives);
  const std::string key = automatic::signature(*nodes_.graph, ops, {sink});
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  std::optional<double> result;
  if (primitives.size() == 1 || is_one_function(extract(*nodes_.graph, ops, {sink})))
    result = us(kernel(primitives, sink));
  const std::lock_guard lock(mutex_);
  return known_.emplace(key, result).first->second;
}

std::vector<Candidate> candidates(const Window& window, Prices& prices, const CandidateLimits& limits,
                                  const std::vector<Cone>& known) {
  Mask inner = 0;
  for (int i = 0; i < window.size(); ++i)
    if (may_be_inside(prices.nodes(), window.ops[at(i)])) inner |= only(i);
  const std::size_t most = static_cast<std::size_t>(std::max(1, limits.window / window.size()));
  std::vector<Candidate> result;
  for (int sink = 0; sink < window.size(); ++sink) {
    std::vector<Candidate> of_sink;
    for (const Mask set : cones(window, sink, inner, limits.ops, most)) {
      interruption_point();
      if (limits.convex && !is_convex(window, set)) continue;
      const std::optional<double> us = prices.us(primitives_of(window, set), window.ops[at(sink)]);
      if (us) of_sink.push_back({sink, set, inputs_of(window, set), *us});
    }
    for (const Cone& cone : known)
      if (cone.sink == sink && std::popcount(cone.ops) > 1)
        of_sink.push_back({sink, cone.ops, inputs_of(window, cone.ops),
                           prices.us(prices.kernel(primitives_of(window, cone.ops), window.ops[at(sink)]))});
    drop_dominated(of_sink);
    result.insert(result.end(), of_sink.begin(), of_sink.end());
  }
  return result;
}

}  // namespace stitchwork::fission
