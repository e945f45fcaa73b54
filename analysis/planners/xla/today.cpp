// XLA of today on this graph (docs/planners/xla-today.md): normalisations, priority fusion, multi-output
// fusion, then a kernel for every instruction that is left.
#include <fmt/format.h>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/epilogue.h"
#include "analysis/planners/planner.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/planners/xla/imported.h"
#include "analysis/planners/xla/rules.h"
#include "core/base/sorted.h"
#include "core/substitute/derivation.h"
#include "core/substitute/view.h"

namespace stitchwork {
namespace {

/// Of compute capability 8 on Triton, to which XLA gives normalisations, has code.
constexpr int kFirstOfTriton = 8;

const char* emitter(xla::InstructionKind kind) {
  switch (kind) {
    case xla::InstructionKind::kTiles:
      return "kCustom";
    case xla::InstructionKind::kInput:
      return "kInput";
    default:
      return "kLoop";
  }
}

/// XLA's GemmRewriter (FuseVectorBiasAdd, FuseMatrixBiasAdd, FuseReluActivation): a call adds what follows
/// its product and takes ReLU of that, whatever else might be fused with it, but for a parameter, which it
/// might have to overwrite. Its CudnnFusedConvRewriter (FuseBiasOrSideInput, FuseRelu): likewise of a
/// convolution, which overwrites nothing.
std::vector<std::vector<NodeId>> calls_of(const Computation& computation, const std::vector<NodeId>& named) {
  std::vector<std::vector<NodeId>> result;
  std::vector<NodeId> taken;
  const auto users = computation.users();
  for (const Node& node : computation.nodes) {
    const bool overwrites = node.op == Op::kDot;
    std::vector<std::vector<NodeId>> calls = calls_with_epilogue(computation, users, node.id);
    std::erase_if(calls, [&](const std::vector<NodeId>& call) {
      const std::optional<Epilogue> epilogue = epilogue_of(computation, call);
      const NodeId addend = epilogue->addend;
      return epilogue->transpose != kNoNode ||
             (overwrites && addend != kNoNode &&
              computation.node(buffer_of(computation, addend)).op == Op::kParameter) ||
             std::ranges::any_of(call, [&](NodeId op) {
               return contains_sorted(named, op) || (op != call.front() && contains_sorted(taken, op) &&
                                                     takes_from_kernels(computation.node(op)));
             });
    });
    if (calls.empty()) continue;
    for (const NodeId op : calls.back()) insert_sorted(taken, op);
    result.push_back(std::move(calls.back()));
  }
  return result;
}

/// XLA's ReductionSplitter, behind its ReductionDimensionGrouper: what gets no tiled kernel would be a loop
/// of a thread.
bool is_split(const Computation& computation, const Node& node) {
  // XLA's ReductionSplitter: of the longest dimension, of which it takes those side by side for one.
  constexpr std::int64_t kShortest = 8;
  if (node.op != Op::kReduce || node.shape.is_tuple || xla::tiled_reduction(computation, node)) return false;
  const std::vector<std::int64_t>& extents = computation.node(node.operands[0]).shape.dims;
  std::int64_t longest = 1, run = 1;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const bool reduced = std::ranges::count(node.attrs.dimensions, static_cast<std::int64_t>(d)) != 0;
    run = reduced ? run * extents[d] : 1;
    longest = std::max(longest, run);
  }
  return longest > kShortest;
}

}  // namespace

rewriting::RewrittenGraph rewrite_xla_today(const Graph& model, const Device&, const PlanOptions&,
                                            Recorder&) {
  rewriting::Derivation derivation(model);
  const rewriting::Rule& rule = rewriting::rule_named("reduce-split");
  for (const ComputationId id : rewriting::running_computations(model)) {
    const std::string name = model.computations[static_cast<std::size_t>(id)].name;
    for (bool again = true; again;) {  // what is left of one may be split once more
      const Graph& graph = derivation.result().graph;
      const rewriting::View view(graph, rewriting::computation_named(graph, name));
      std::vector<rewriting::Place> at;
      for (const Node& node : view.computation().nodes)
        if (is_split(view.computation(), node) && rule.find_all(view, {node.id})) at.push_back({node.name});
      again = !at.empty();
      if (again) derivation.apply_at(rule, name, std::move(at));
    }
  }
  return derivation.result();
}

FusionPlan plan_xla_today(const Graph& graph, const Device& device, const PlanOptions& options) {
  const Computation& computation = graph.entry_computation();
  xla::Recorder recorder(options.record_decisions, computation);
  const Constraints wanted = constraints(graph, device, options.edits);
  const std::vector<std::vector<NodeId>> calls = calls_of(computation, wanted.named());
  xla::FusionGraph fusion(graph, wanted);
  for (const std::vector<NodeId>& call : calls) fusion.make_call(call);
  if (device.cc_major >= kFirstOfTriton) xla::fuse_normalizations(fusion, recorder);
  xla::priority_fusion(fusion, device, recorder);
  xla::multi_output_fusion_of_today(fusion, recorder);
  std::vector<ImportedKernel> fusions;
  for (int i = 0; i < fusion.size(); ++i) {
    if (!xla::becomes_kernel(fusion, i)) continue;
    const xla::Instruction& one = fusion[i];
    fusions.push_back(
        {computation.node(one.roots.back()).name, emitter(one.kind), fusion.sorted_ops(i), one.roots});
  }
  FusionPlan plan = plan_fusions(graph, device, {"xla-today", "XLA's rules of today"}, fusions,
                                 options.record_decisions, calls);
  std::vector<Decision> decisions = recorder.take();
  if (options.record_decisions)
    for (const std::vector<NodeId>& call : calls)
      decisions.push_back(
          {"epilogue", computation.node(call.back()).name, computation.node(call.front()).name,
           Verdict::yes("xla-today.epilogue",
                        fmt::format("XLA's {} gives it to the call: {}",
                                    computation.node(call.front()).op == Op::kDot ? "GemmRewriter"
                                                                                  : "CudnnFusedConvRewriter",
                                    to_text(computation, *epilogue_of(computation, call))))});
  decisions.insert(decisions.end(), plan.decisions.begin(), plan.decisions.end());
  plan.decisions = std::move(decisions);
  return plan;
}

}  // namespace stitchwork
