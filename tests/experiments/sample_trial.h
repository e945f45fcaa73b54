// Trials made by hand, for tests of what stores and shows them: no planner, compiler or simulator is needed.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"
#include "experiments/trial.h"

namespace stitchwork::testing {

/// A fresh folder of the running test.
inline std::string test_folder() {
  const ::testing::TestInfo* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) /
                                       (std::string(info->test_suite_name()) + "_" + info->name());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

/// A graph as if it were a file's, by the graph's name.
inline Model model_of(Graph graph) {
  Model model;
  model.graph = std::move(graph);
  model.graph.source = model.graph.name;
  model.graph.source_sha256 = sha256_hex(to_text(model.graph));
  return model;
}

/// What the error says that is thrown.
inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// `ops` element-wise ops in a chain: tanh.0, tanh.1, ...
inline Model sample_model(int ops, const std::string& source = "chain.hlo") {
  std::string text = "HloModule chain\nENTRY e {\n  x = f32[1024] parameter(0)\n";
  for (int i = 0; i < ops; ++i)
    text += fmt::format("  {}tanh.{} = f32[1024] tanh({})\n", i + 1 == ops ? "ROOT " : "", i,
                        i == 0 ? std::string("x") : fmt::format("tanh.{}", i - 1));
  text += "}\n";
  Model model;
  model.graph = parse_hlo(text, source);
  model.graph.source = source;
  model.graph.source_sha256 = sha256_hex(text);
  return model;
}

/// The model's ops dealt to `kernels` kernels in order, every scheme in turn, with counters that follow from
/// the kernel's number.
inline TrialResult sample_result(const Model& model, const TrialSpec& spec, int kernels) {
  TrialResult result;
  FusionPlan& plan = result.executable.plan;
  plan.model_path = model.graph.source;
  plan.model_sha256 = model.graph.source_sha256;
  plan.device = spec.device;
  plan.planner = spec.planner;
  plan.counts = {.memory_kernels = kernels, .library_calls = 4, .copies = 1, .memsets = 0};
  plan.predicted_us = 3.5 * kernels;
  result.executable.compiler = "hand 1.0";
  std::vector<NodeId> ops;
  for (const Node& node : model.graph.entry_computation().nodes)
    if (node.op != Op::kParameter) ops.push_back(node.id);
  for (int i = 0; i < kernels; ++i) {
    KernelPlan k;
    k.id = fmt::format("k{}", i);
    k.name = fmt::format("tanh_{}", i);
    const std::size_t begin = ops.size() * i / kernels, end = ops.size() * (i + 1) / kernels;
    for (std::size_t j = begin; j < end; ++j) {
      k.ops.push_back(ops[j]);
      k.schemes[ops[j]] = static_cast<Scheme>(j % 6);
    }
    k.launch.grid = 80 + i;
    k.launch.block = 1024;
    k.launch.shared_bytes = 512 * (i % 3);
    k.launch.grid_barriers = i % 2;
    plan.kernels.push_back(k);
    CompiledKernel compiled;
    compiled.source_sha256 = sha256_hex(k.name);
    result.executable.kernels.push_back(compiled);
    KernelRun run;
    run.counters.inst_executed = 1'000'000 + 1000 * i;
    run.counters.inst_fp_32 = 2'000'000 + 1000 * i;
    run.counters.dram_read_transactions = 100'000 + i;
    run.counters.dram_write_transactions = 50'000 + i;
    run.counters.achieved_occupancy = 0.75;
    run.counters.sm_efficiency = 0.5;
    run.registers = 32 + i % 8;
    run.time_us = 2.5 + i % 7;
    run.method = spec.sampled              ? Method::kSampled
                 : spec.backend == "model" ? Method::kModelled
                 : spec.backend == "cuda"  ? Method::kMeasured
                                           : Method::kSimulated;
    result.run.kernels.push_back(run);
    result.run.total_us += run.time_us + 1;
  }
  result.check = CheckResult{.ok = true, .max_abs_error = 1e-6, .max_rel_error = 2e-6, .message = ""};
  result.plan_ms = 1.5;
  result.compile_ms = 250;
  result.run_ms = 40;
  return result;
}

}  // namespace stitchwork::testing
