// Small matrix products inside stitched kernels, where FusionStitching puts them (2018, section 3.2; 2019,
// section 4.1): a kernel computes such a dot as a reduction, and its launch, the library's latency and what
// it would store are saved.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/judge/judge.h"
#include "analysis/plan/plan.h"
#include "analysis/plan/recorder.h"
#include "analysis/stitching/nodes.h"

namespace stitchwork::automatic {

/// A model's kernels, and its calls of several ops; the other products that no kernel lists are calls of
/// their own.
struct Planned {
  std::vector<KernelPlan> kernels;
  std::vector<std::vector<NodeId>> calls;
  std::vector<Decision> decisions;
  std::string_view how = "with library calls";  ///< it has products
  double error = 0;  ///< by how much more than estimated its kernels may take, relative
};

/// Dots whose library calls are launch and latency for a good part, and that generated code may compute in
/// less time, ascending.
std::vector<NodeId> small_products(const Graph& graph, const Device& device);

/// Dots of a batch whose library calls move bytes for most of their time, and that generated code may compute
/// in less, ascending: where rows of a batch stay in a block, what they give is not stored (FusionStitching
/// 2019, Figure 1).
std::vector<NodeId> streamed_products(const Graph& graph, const Device& device);

/// Of each part of the model, ops that kernels or calls of some plan tie together, what takes least time by
/// more than the judge of kernels and the times of calls can be wrong, else as the first plan has it. `nodes`
/// has the products that kernels compute as members. Where parts together would wait for each other, those
/// that gain least stay as they are.
Planned cheaper_parts(const astitch::Nodes& nodes, const Device& device, const PlanJudge& judge, bool tf32,
                      std::vector<Planned> plans);

}  // namespace stitchwork::automatic
