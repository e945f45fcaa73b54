// What a workload's kernels do in the simulator, against the least they could.
#pragma once

#include <cstring>
#include <map>
#include <string>

#include "codegen/settle.h"
#include "tests/codegen/harness.h"
#include "tests/codegen/workloads.h"

namespace stitchwork::testing {

/// Summed over the kernels of a plan; registers, spills and bytes in flight: the worst kernel's.
struct Judged {
  std::size_t kernels = 0;
  double least_sectors = 0;    ///< each input read once, each output written once
  double scratch_sectors = 0;  ///< of what the kernels' plans put into scratch
  double dram_sectors = 0;
  double ideal_load_sectors = 0,
         load_sectors = 0;  ///< bytes the lanes ask for / 32; sectors of their requests
  double ideal_store_sectors = 0, store_sectors = 0;  ///< likewise
  double instructions = 0;                            ///< of warps
  double bank_conflicts = 0;
  std::int64_t spill_bytes = 0;
  int registers = 0;
  std::uint64_t block_barriers = 0, grid_barriers = 0;
  double bytes_in_flight = 0;  ///< an SM
  double time_us = 0;
  std::vector<Literal> outputs;

  double traffic() const { return dram_sectors / least_sectors; }
  double load_spread() const { return load_sectors / ideal_load_sectors; }
  double store_spread() const { return store_sectors / ideal_store_sectors; }
};

/// Inputs of any size at once; their values are of no account to what is counted, but indices must be in
/// range.
inline Literal filler(const Shape& shape) {
  Literal literal = Literal::zeros(shape);
  constexpr std::int64_t kPattern = 1021;
  const std::int64_t elements = shape.elements_count(), first = std::min(elements, kPattern);
  for (std::int64_t i = 0; i < first; ++i) {
    if (is_floating(shape.dtype))
      literal.set_double(i, 0.25 + static_cast<double>(i * 37 % 101) / 101);
    else
      literal.set_int(i, i % 2);
  }
  const auto bytes = static_cast<std::size_t>(byte_size(shape.dtype));
  for (std::int64_t i = first; i < elements; i += kPattern)
    std::memcpy(&literal.bytes[static_cast<std::size_t>(i) * bytes], literal.bytes.data(),
                static_cast<std::size_t>(std::min(kPattern, elements - i)) * bytes);
  return literal;
}

inline std::vector<Literal> fillers(const Graph& graph) {
  std::vector<Literal> inputs;
  const Computation& entry = graph.entry_computation();
  for (const NodeId parameter : entry.parameters) inputs.push_back(filler(entry.node(parameter).shape));
  return inputs;
}

inline double least_sectors(const Graph& graph) {
  double sectors = 0;
  const auto add = [&](const Shape& shape) { sectors += static_cast<double>((shape.byte_size() + 31) / 32); };
  const Computation& entry = graph.entry_computation();
  for (const Node& node : entry.nodes)
    if (node.op == Op::kParameter) add(node.shape);
  const Node& root = entry.node(entry.root);
  if (root.op != Op::kTuple) add(root.shape);
  for (const NodeId result : root.op == Op::kTuple ? root.operands : std::vector<NodeId>{})
    add(entry.node(result).shape);
  return sectors;
}

/// Plans with AStitch, settles spills, runs. A finding of the simulator fails the test. `sampled`: a few
/// waves of blocks stand for all, in kernels without a grid barrier; there are no outputs then.
inline Judged judge(const Graph& graph, const Device& target,
                    const std::map<std::string, std::string>& knobs = {}, bool sampled = false) {
  const Replan replan = [&](const std::vector<Edit>& edits) {
    PlanOptions options;
    options.knobs = knobs;
    options.edits = edits;
    return make_plan(graph, target, "astitch", options);
  };
  CompileOptions compile_options;
  const Executable executable = compile_settled(graph, target, replan({}), replan, compile_options);
  const std::vector<Literal> inputs = fillers(graph);
  RunOptions run_options;
  run_options.sampled = sampled;
  RunResult run = run_simulated(graph, target, executable, inputs, run_options);
  for (const sim::Finding& finding : run.findings)
    ADD_FAILURE() << name(finding.kind) << " in " << finding.kernel << ": " << finding.message;
  Judged result;
  result.kernels = run.kernels.size();
  result.least_sectors = least_sectors(graph);
  for (const KernelPlan& kernel : executable.plan.kernels)
    result.scratch_sectors += static_cast<double>(kernel.launch.scratch_bytes) / 32;
  result.time_us = run.total_us;
  result.outputs = std::move(run.outputs);
  for (const KernelRun& kernel : run.kernels) {
    const sim::Counters& c = kernel.counters;
    result.dram_sectors += static_cast<double>(c.dram_read_transactions + c.dram_write_transactions);
    result.ideal_load_sectors += static_cast<double>(c.gld_bytes) / 32;
    result.load_sectors += static_cast<double>(c.gld_transactions);
    result.ideal_store_sectors += static_cast<double>(c.gst_bytes) / 32;
    result.store_sectors += static_cast<double>(c.gst_transactions);
    result.instructions += static_cast<double>(c.inst_executed);
    result.bank_conflicts += static_cast<double>(c.shared_bank_conflicts);
    result.spill_bytes = std::max(result.spill_bytes, kernel.spill_bytes.value_or(0));
    result.registers = std::max(result.registers, kernel.registers);
    result.block_barriers += c.block_barriers;
    result.grid_barriers += c.grid_barriers;
    result.bytes_in_flight = result.bytes_in_flight == 0
                                 ? kernel.bytes_in_flight
                                 : std::min(result.bytes_in_flight, kernel.bytes_in_flight);
  }
  return result;
}

}  // namespace stitchwork::testing
