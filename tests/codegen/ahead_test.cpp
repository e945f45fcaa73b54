// What a task loads that waits for nothing it computes is asked for together, in its first step.
#include <algorithm>
#include <set>

#include "tests/codegen/planned.h"
#include "tests/codegen/workloads.h"
#include "tests/support/golden_tensors.h"

namespace stitchwork {
namespace TEST_FILE {

struct Loads {
  int first = 0,
      later = 0;  ///< values loaded from inputs by the first step of the first task loop; by others
};

/// Of the values that depend on as many of (row, col) as `depth` says, and on the row or not. `in_registers`:
/// rows are neither staged nor shared by a cluster's blocks.
Loads loads_of(const char* workload, std::int64_t rows, std::int64_t cols, int depth, bool of_rows = true,
               bool in_registers = false) {
  const Graph graph = testing::graph_of(testing::workload(workload).hlo({rows, cols, "f32"}));
  PlanOptions options;
  if (in_registers) options.knobs = {{"tiles", "off"}, {"clusters", "off"}};
  const FusionPlan plan = make_plan(graph, device("h200"), "astitch", options);
  const Schedule kernel = build_schedule(graph, plan.kernels.at(0));
  Loads result;
  const TaskLoop& loop = kernel.phases.at(0).loops.at(0);
  for (const Step& step : loop.steps)
    for (const int v : step.order) {
      const Value& value = step.values[static_cast<std::size_t>(v)];
      if (value.kind != ValueKind::kLoad || value.restored >= 0 || value.row_result >= 0) continue;
      if (value.depth != depth || value.offset.uses_dim(0) != of_rows) continue;
      if (kernel.buffers[static_cast<std::size_t>(value.buffer)].space != MemorySpace::kGlobalInput) continue;
      ++(&step == &loop.steps.front() ? result.first : result.later);
    }
  return result;
}

TEST(LoadsAhead, ALossesLabelsComeWithItsRows) {
  const Loads labels = loads_of("cross_entropy", 4096, 1024, 1);
  EXPECT_EQ(labels.first, 1);
  EXPECT_EQ(labels.later, 0);
}

TEST(LoadsAhead, AGradientsArraysComeTogether) {
  const Loads arrays = loads_of("rms_norm_grad", 4096, 1024, 2);
  EXPECT_EQ(arrays.first, 2);
  EXPECT_EQ(arrays.later, 0);
}

TEST(LoadsAhead, AScaleComesWithTheRowsWhereRegistersHoldIt) {
  for (const auto& [workload, rows, cols, later] :
       {std::tuple{"rms_norm_grad", 750000, 32, 0}, std::tuple{"layer_norm_grad", 512, 50257, 1}}) {
    SCOPED_TRACE(workload);
    EXPECT_EQ(loads_of(workload, rows, cols, 2, false, true).later > 0, later > 0);
  }
}

TEST(LoadsAhead, AreLeftWhereRegistersDoNotHoldThem) {
  const Loads arrays = loads_of("rms_norm_grad", 512, 50257, 2, true, true);
  EXPECT_EQ(arrays.first, 1);
  EXPECT_GE(arrays.later, 1);
}

TEST(LoadsAhead, AVectorsElementsShareTheScaleOfTheirChannel) {
  const Graph graph = testing::graph_of(testing::workload("group_norm").hlo({4096, 1024, "bf16"}));
  const FusionPlan plan = make_plan(graph, device("h200"), "astitch");
  const Schedule kernel = build_schedule(graph, plan.kernels.at(0));
  int same = 0;
  for (const Step& step : kernel.phases.at(0).loops.at(0).steps)
    for (const Value& value : step.values) same += value.ahead && value.same;
  EXPECT_EQ(same, 2);  // scale and offset
}

TEST(LoadsAhead, WhatStepsTakeFromRegistersWasPutThere) {
  // dy of layer_norm_grad_tiny is loaded ahead of a step that keeps it for a third.
  for (const std::string& name : testing::golden_datasets()) {
    const Graph graph = testing::dataset(name);
    for (const char* target : {"v100", "h200"})
      for (const KernelPlan& plan : make_plan(graph, device(target), "astitch").kernels) {
        const Schedule kernel = build_schedule(graph, plan);
        std::set<int> put, taken;
        for (const Phase& phase : kernel.phases)
          for (const TaskLoop& loop : phase.loops)
            for (const Step& step : loop.steps)
              for (const int v : step.order) {
                const Value& value = step.values[static_cast<std::size_t>(v)];
                if (value.restored >= 0) taken.insert(value.restored);
                if (value.restored < 0 && value.kept >= 0) put.insert(value.kept);
              }
        EXPECT_TRUE(std::includes(put.begin(), put.end(), taken.begin(), taken.end()))
            << name << " on " << target << ": " << plan.name;
      }
  }
}

TEST(LoadsAhead, GiveWhatTheReferenceGives) {
  SKIP_WITHOUT_COMPILER();
  const auto judge = [](const std::string& name, std::int64_t rows, std::int64_t cols, const char* dtype) {
    SCOPED_TRACE(fmt::format("{} of {} x {} {}", name, rows, cols, dtype));
    const Graph graph = testing::graph_of(testing::workload(name).hlo({rows, cols, dtype}));
    for (const char* target : {"v100", "h200"})
      testing::expect_clean_and_right(graph, generate_inputs(graph, 0), device(target), {"astitch"});
  };
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    for (const char* name : {"cross_entropy", "rms_norm_grad", "layer_norm_grad"})
      for (const auto& [rows, cols] : {std::pair{300, 256}, std::pair{70, 1032}, std::pair{1001, 33}})
        judge(name, rows, cols, dtype);
    for (const auto& [rows, cols] : {std::pair{64, 256}, std::pair{96, 80}})
      judge("group_norm", rows, cols, dtype);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
