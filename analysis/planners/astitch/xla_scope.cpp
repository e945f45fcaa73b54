#include "analysis/planners/astitch/xla_scope.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/forms/launches.h"
#include "analysis/forms/vectors.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/schedule/inlined_kernel.h"
#include "analysis/schedule/plain_mapping.h"
#include "analysis/stitching/launch.h"

namespace stitchwork::astitch {
namespace {

Dealt mapping_of(const Nodes& nodes, const std::vector<NodeId>& roots, NodeId leader,
                 const MappingLimits& limits, Recorder& recorder) {
  const auto reduces = [&](NodeId id) { return def(nodes.node(id).op).cls == OpClass::kReduce; };
  // One that stitching takes for an element-wise op, or cannot compute, still has a reduction's domain here.
  if (reduces(leader) && !nodes[leader].reduction)
    return natural_mapping(*nodes.computation, nodes.node(leader));
  Dealt dealt = map_dominant(nodes, leader, limits);
  const int split = segments(dealt.mapping);
  if (split == 1) return dealt;
  const auto whole = std::find_if(roots.begin(), roots.end(), [&](NodeId root) {
    return reduces(root) && !adds_atomically(*nodes.graph, nodes.node(root));
  });
  if (whole == roots.end()) {
    if (auto* rows = as<mapping::Segments>(dealt.mapping)) rows->atomic = true;
    if (auto* columns = as<mapping::Columns>(dealt.mapping)) columns->atomic = true;
    return dealt;
  }
  recorder.add("mapping", nodes.name(*whole), "", [&] {
    return Verdict::no(
        "astitch.split-needs-atomics",
        fmt::format("its rows would be split over {} blocks, but atomics only add up sums from zero", split));
  });
  const ReductionShape& shape = *nodes[leader].reduction;
  return shape.row_reduce ? map_row_reduction(shape.rows, shape.cols, limits, 1)
                          : map_column_reduction(shape.rows, shape.cols, limits, 1);
}

}  // namespace

std::vector<KernelPlan> map_xla_kernels(const Nodes& nodes, const Device& device, const Options& options,
                                        Recorder& recorder) {
  const Computation& computation = *nodes.computation;
  xla::Recorder fusions(recorder.enabled(), computation);
  std::vector<KernelPlan> kernels;
  for (const xla::Instruction& fused : xla::fused_kernels(*nodes.graph, options.constraints, fusions)) {
    const MappingLimits limits = mapping_limits(nodes, {fused.ops, fused.roots}, device, options, 0,
                                                {.staging = false, .clusters = false});
    const NodeId leader = xla::leading_root(computation, fused.roots);
    kernels.push_back(inlined_kernel(computation, fused.ops, fused.roots, leader,
                                     mapping_of(nodes, fused.roots, leader, limits, recorder)));
    if (limits.tuned_for != nullptr) {
      settle_vectors(computation, device, kernels.back());
      part_diverging_vectors(*nodes.graph, device, kernels.back());
    }
  }
  mark_recomputed(kernels);
  recorder.append(fusions.take());
  return kernels;
}

}  // namespace stitchwork::astitch
