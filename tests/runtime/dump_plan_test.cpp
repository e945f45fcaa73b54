// A compiler's dump as a plan: its steps, counts and times, and what of the model its kernels compute.
#include "runtime/program/dump_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/plan/control_flow.h"
#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/sorted.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "core/passes/trip_count.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const fs::path kDumps = fs::path(STITCHWORK_SOURCE_DIR) / "tests/data/dumps";

struct Planned {
  explicit Planned(const std::string& folder)
      : dump(read_dump(folder)),
        model(canonicalize(read_graph(dump.model))),
        plan(plan_of(dump, model, model)) {}

  const Computation& ops() const { return model.entry_computation(); }
  /// Names of the model's ops that the kernel computes.
  std::set<std::string> ops_of(const KernelPlan& kernel) const {
    std::set<std::string> names;
    for (const NodeId op : kernel.ops)
      for (const NodeId of : model_ops(plan, op)) names.insert(ops().node(of).name);
    return names;
  }

  Dump dump;
  Graph model;
  FusionPlan plan;
};

/// What holds of every dump, whoever compiled it.
void expect_whole(const Planned& planned) {
  const auto& [dump, model, plan] = planned;
  const Script& script = dump.script;
  ASSERT_EQ(plan.steps.size(), script.steps.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    constexpr StepKind kKinds[] = {StepKind::kKernel, StepKind::kMemset, StepKind::kCopy, StepKind::kLibrary};
    EXPECT_EQ(step.kind, kKinds[static_cast<std::size_t>(script.steps[s].kind)]);
    if (step.kind != StepKind::kKernel) {
      EXPECT_DOUBLE_EQ(step.predicted_us, modelled_us(script.steps[s], device(dump.device)));
      continue;
    }
    const KernelPlan& kernel = plan.kernels[at(step.kernel)];
    const auto& launch = std::get<sim::KernelStep>(script.program.steps[s].what).launch;
    ASSERT_TRUE(kernel.code.has_value());
    EXPECT_EQ(kernel.code->entry, launch.kernel);
    EXPECT_EQ(kernel.code->module, script.steps[s].module);
    EXPECT_EQ(kernel.code->product, script.steps[s].product);
    EXPECT_EQ(kernel.launch.grid, static_cast<std::int64_t>(launch.grid.count()));
    EXPECT_EQ(kernel.launch.block, static_cast<int>(launch.block.count()));
    EXPECT_TRUE(kernel.groups.empty());
    EXPECT_TRUE(std::ranges::is_sorted(kernel.ops));
    EXPECT_FALSE(kernel.ops.empty()) << kernel.name;
    for (const NodeId op : kernel.outputs) EXPECT_TRUE(contains_sorted(kernel.ops, op));
    EXPECT_FALSE(kernel.code->timed.has_value());
  }
  const DumpCounts counts = counts_of(script);
  EXPECT_EQ(plan.counts.memory_kernels, counts.memory_kernels);
  EXPECT_EQ(plan.counts.product_kernels, counts.product_kernels);
  EXPECT_EQ(plan.counts.library_calls, counts.library_calls);
  EXPECT_EQ(plan.counts.copies, counts.copies);
  EXPECT_EQ(plan.counts.memsets, counts.memsets);
  // Every op of the model runs in a step, is only another name or an immediate, or is said to be gone.
  std::set<NodeId> steps;
  for (const KernelPlan& kernel : plan.kernels) steps.insert(kernel.ops.begin(), kernel.ops.end());
  for (const PlanStep& step : plan.steps) steps.insert(step.nodes.begin(), step.nodes.end());
  std::set<NodeId> placed;
  for (const NodeId op : steps)
    for (const NodeId of : model_ops(plan, op)) placed.insert(of);
  const Computation& entry = model.entry_computation();
  for (const Node& node : entry.nodes) {
    if (plan_role(node) == PlanRole::kSource || plan_role(node) == PlanRole::kAlias ||
        is_immediate(entry, node.id) || placed.contains(node.id))
      continue;
    if (plan.peer->gone.contains(node.name)) continue;
    // What is left is only looked at otherwise: no step moves it.
    const NodeId now = planned_op(plan, node.id);
    ASSERT_NE(now, kNoNode) << node.name;
    const Op op = planned_graph(model, plan).entry_computation().node(now).op;
    EXPECT_TRUE(def(op).cls == OpClass::kLayout || def(op).cls == OpClass::kSource) << node.name;
  }
}

/// Elements of every op that both graphs compute, in any order: a compiler may have another layout.
void expect_values(const Planned& planned) {
  const auto& [dump, model, plan] = planned;
  const Graph& compiled = planned_graph(model, plan);
  const std::vector<Literal> inputs = generate_inputs(model, 0);
  const auto values_of = [&](const Graph& graph) {
    std::map<NodeId, std::vector<double>> values;
    evaluate(graph, inputs, [&](const Node& node, const Literal& value) {
      // A choice: of larger arrays their reductions tell.
      constexpr std::int64_t kMostElements = 1 << 16;
      if (value.shape.is_tuple || value.shape.elements_count() > kMostElements ||
          graph.entry_computation().find(node.name) != node.id)
        return;
      std::vector<double>& own = values[node.id];
      own.clear();
      for (std::int64_t i = 0; i < value.shape.elements_count(); ++i) own.push_back(value.get_double(i));
      std::ranges::sort(own);
    });
    return values;
  };
  const auto ours = values_of(model), theirs = values_of(compiled);
  const rewriting::Origins& origins = plan.rewritten->origins[at(compiled.entry)];
  int compared = 0;
  for (const auto& [op, wanted] : ours) {
    const NodeId now = origins.now[at(op)];
    if (now == kNoNode || !theirs.contains(now)) continue;
    const std::vector<double>& given = theirs.at(now);
    ASSERT_EQ(given.size(), wanted.size()) << planned.ops().node(op).name;
    double largest = 1e-6;
    for (const double value : wanted)
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    bool same = true;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      same &= wanted[i] == given[i] || std::abs(wanted[i] - given[i]) <= 1e-3 * largest ||
              (std::isnan(wanted[i]) && std::isnan(given[i]));
    EXPECT_TRUE(same) << planned.ops().node(op).name << " is not "
                      << compiled.entry_computation().node(now).name;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST(DumpPlan, HasEveryStepAndPlacesEveryOp) {
  for (const char* name : {"softmax-a100", "softmax-v100", "layer_norm-a100", "layer_norm-v100", "fig7-a100",
                           "fig7-v100", "mlp-a100", "conv_grad-a100", "bert_layer-a100"}) {
    SCOPED_TRACE(name);
    const Planned planned((kDumps / name).string());
    expect_whole(planned);
    EXPECT_EQ(planned.plan.planner, "xla jaxlib 0.10.2");
  }
}

TEST(DumpPlan, LinkedOpsHaveTheModelsValues) {
  for (const char* name : {"fig7-v100", "mlp-a100", "conv_grad-a100", "bert_layer-a100"}) {
    SCOPED_TRACE(name);
    expect_values(Planned((kDumps / name).string()));
  }
}

/// Dumps of larger models, made by scripts/peers/xla, in the folder that STITCHWORK_DUMPS names.
TEST(DumpPlan, HoldsOfDumpsElsewhere) {
  const char* folder = std::getenv("STITCHWORK_DUMPS");
  if (folder == nullptr) GTEST_SKIP() << "STITCHWORK_DUMPS names no folder of dumps";
  int tried = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!is_dump(entry.path().string())) continue;
    SCOPED_TRACE(entry.path().string());
    try {
      read_dump(entry.path().string());
    } catch (const Error& error) {  // calls that nobody here knows
      std::printf("%s\n", error.message().c_str());
      continue;
    }
    const Planned planned(entry.path().string());
    expect_whole(planned);
    const Computation& compiled = planned_graph(planned.model, planned.plan).entry_computation();
    const bool runs =
        std::ranges::none_of(compiled.nodes, [](const Node& node) { return node.op == Op::kCustomCall; });
    if (runs) expect_values(planned);
    int unlinked = 0;
    for (const auto& [op, why] : planned.plan.peer->gone) unlinked += why.starts_with("not linked") ? 1 : 0;
    // A choice: of a hundred ops of a model at most two may be without a place that is known.
    EXPECT_LE(unlinked, 0.02 * planned.ops().size() + 1) << ::testing::PrintToString(planned.plan.peer->gone);
    ++tried;
  }
  EXPECT_GT(tried, 0);
}

TEST(DumpPlan, KernelsHaveTheModelsOps) {
  const Planned fig7((kDumps / "fig7-a100").string());
  std::map<std::string, std::set<std::string>> kernels;
  for (const KernelPlan& kernel : fig7.plan.kernels) kernels[kernel.name] = fig7.ops_of(kernel);
  EXPECT_THAT(kernels.at("loop_power_fusion"), UnorderedElementsAre("divide.1", "broadcast.5", "power.1"));
  EXPECT_THAT(kernels.at("loop_multiply_fusion"),
              UnorderedElementsAre("broadcast.6", "broadcast.7", "multiply.1"));
  EXPECT_EQ(fig7.plan.kernels[0].code->kind, "input fusion");
  // Computed by two kernels.
  const NodeId broadcast = planned_op(fig7.plan, fig7.ops().find("broadcast.6"));
  for (const KernelPlan& kernel : fig7.plan.kernels)
    if (const auto scheme = kernel.schemes.find(broadcast); scheme != kernel.schemes.end()) {
      EXPECT_EQ(scheme->second, Scheme::kRecomputed);
    }

  // A product with what follows it is one library call.
  const Planned mlp((kDumps / "mlp-a100").string());
  const PlanStep& call = mlp.plan.steps[0];
  std::set<std::string> names;
  for (const NodeId op : call.nodes)
    for (const NodeId of : model_ops(mlp.plan, op)) names.insert(mlp.ops().node(of).name);
  EXPECT_THAT(names, Contains("max.3"));
  EXPECT_EQ(call.id, "lib:cublas-lt-matmul.3");

  const Planned softmax((kDumps / "softmax-a100").string());
  ASSERT_EQ(softmax.plan.kernels.size(), 1u);
  EXPECT_EQ(softmax.plan.kernels[0].code->kind, "triton fusion");
  EXPECT_THAT(softmax.plan.peer->gone, IsEmpty()) << ::testing::PrintToString(softmax.plan.peer->gone);
}

TEST(DumpPlan, HasTheTimesOfARun) {
  for (const char* name : {"fig7-v100", "mlp-a100", "conv_grad-a100", "bert_layer-a100"}) {
    Planned planned((kDumps / name).string());
    const Device& target = device(planned.dump.device);
    set_inputs(planned.dump, generate_inputs(planned.model, 0));
    const ScriptResult ran = run_script(planned.dump.script, target, {});
    add_times(planned.plan, planned.dump, ran, target);
    EXPECT_TRUE(planned.plan.peer->simulated);
    double sum = 0;
    ASSERT_EQ(planned.plan.steps.size(), ran.program.steps.size());
    for (std::size_t s = 0; s < planned.plan.steps.size(); ++s) {
      EXPECT_EQ(planned.plan.steps[s].predicted_us, ran.program.steps[s].time_us);
      sum += planned.plan.steps[s].predicted_us + (s > 0 ? target.launch_gap_us : 0);
    }
    EXPECT_NEAR(planned.plan.predicted_us, sum, 1e-9 * sum);
    EXPECT_EQ(planned.plan.predicted_us, ran.program.total_us);
    for (const KernelPlan& kernel : planned.plan.kernels) {
      EXPECT_EQ(kernel.predicted_us, kernel.code->timed->time.total_us);
      EXPECT_GT(kernel.code->dram_bytes, 0);
    }
  }
}

TEST(DumpPlan, LoopsTakeWhatTheirTripsTook) {
  Planned scan((kDumps / "scan-a100").string());
  const Device& target = device(scan.dump.device);
  set_inputs(scan.dump, generate_inputs(scan.model, 0));
  const ScriptResult ran = run_script(scan.dump.script, target, {});
  add_times(scan.plan, scan.dump, ran, target);
  EXPECT_EQ(scan.plan.predicted_us, ran.program.total_us);
  double sum = 0;
  for (std::size_t s = 0; s < scan.plan.steps.size(); ++s)
    sum += scan.plan.steps[s].predicted_us + (s > 0 ? target.launch_gap_us : 0);
  EXPECT_NEAR(sum, ran.program.total_us, 1e-9 * sum);
  for (const ComputationPlan& part : scan.plan.computations) {
    EXPECT_TRUE(part.plan.peer->simulated);
    for (const KernelPlan& kernel : part.plan.kernels) EXPECT_GT(kernel.predicted_us, 0);
  }
}

/// A scan in a scan: its trips are steps one after another, in the plan it is a control step and its body.
TEST(DumpPlan, HasLoopsAsControlSteps) {
  const Planned scan((kDumps / "scan-a100").string());
  const FusionPlan& plan = scan.plan;
  ASSERT_EQ(plan.computations.size(), 2u);  // callees first
  const auto trips = [](const FusionPlan& of) {
    std::vector<std::int64_t> found;
    for (const PlanStep& step : of.steps)
      if (step.kind == StepKind::kControl) found.push_back(step.trips.value_or(-1));
    return found;
  };
  EXPECT_THAT(trips(plan), ::testing::ElementsAre(3));
  EXPECT_THAT(trips(plan.computations[1].plan), ::testing::ElementsAre(2));
  EXPECT_THAT(trips(plan.computations[0].plan), IsEmpty());
  const DumpCounts launches = counts_of(scan.dump.script);
  EXPECT_EQ(plan.counts.dynamic_memory_kernels, launches.memory_kernels);
  EXPECT_EQ(plan.counts.memory_kernels, 8);
  EXPECT_EQ(plan.counts.product_kernels, 1);

  const std::vector<StepPlace> places = step_places(plan);
  ASSERT_EQ(places.size(), scan.dump.script.steps.size());
  for (std::size_t s = 0; s < places.size(); ++s) {
    const FusionPlan& of = places[s].part < 0 ? plan : plan.computations[at(places[s].part)].plan;
    const PlanStep& step = of.steps.at(places[s].step);
    const std::string& instruction = scan.dump.script.steps[s].instruction;
    if (step.kind == StepKind::kKernel)
      EXPECT_EQ(of.kernels[at(step.kernel)].code->instruction, instruction);
    else
      EXPECT_EQ(step.id, "copy:" + instruction);
  }
}

/// Elements of every op of a computation and of what its loops run, of each run, in any order.
using Runs = std::map<std::pair<ComputationId, NodeId>, std::vector<std::vector<double>>>;

std::vector<Literal> run_all(const Graph& graph, ComputationId id, const std::vector<Literal>& inputs,
                             Runs& runs) {
  const Graph own = entered(graph, id);
  const Computation& computation = own.entry_computation();
  std::map<NodeId, Literal> tuples;
  std::vector<Literal> results = evaluate(own, inputs, [&](const Node& node, const Literal& value) {
    if (computation.find(node.name) != node.id) return;  // of a computation that it applies
    if (value.shape.is_tuple) {
      tuples[node.id] = value;
      return;
    }
    std::vector<double>& run = runs[{id, node.id}].emplace_back();
    for (std::int64_t i = 0; i < value.shape.elements_count(); ++i) run.push_back(value.get_double(i));
    std::ranges::sort(run);
  });
  for (const Node& node : computation.nodes) {
    if (node.op != Op::kWhile) continue;
    Literal state = tuples.at(node.operands[0]);
    const std::int64_t trips = trip_count(own, computation, node).value();
    for (std::int64_t trip = 0; trip < trips; ++trip)
      state.elements = run_all(graph, node.attrs.computations[1], {state}, runs);
  }
  return results;
}

/// What ops in loops are linked to has the model's values, trip by trip.
TEST(DumpPlan, LinkedOpsInLoopsHaveTheModelsValues) {
  const Planned scan((kDumps / "scan-a100").string());
  const Graph& compiled = planned_graph(scan.model, scan.plan);
  const std::vector<Literal> inputs = generate_inputs(scan.model, 0);
  Runs ours, theirs;
  run_all(scan.model, scan.model.entry, inputs, ours);
  run_all(compiled, compiled.entry, inputs, theirs);
  int compared = 0;
  for (const ComputationPlan& part : scan.plan.computations) {
    const rewriting::Origins& origins = scan.plan.rewritten->origins[at(part.computation)];
    const Computation& now = compiled.computation(part.computation);
    const ComputationId id = rewriting::computation_named(scan.model, now.name);
    ASSERT_NE(id, -1) << now.name;
    for (const Node& node : scan.model.computation(id).nodes) {
      const NodeId gives = origins.now.at(at(node.id));
      if (gives == kNoNode || node.shape.is_tuple) continue;
      const auto &a = ours.at({id, node.id}), &b = theirs.at({part.computation, gives});
      EXPECT_EQ(a.size(),
                now.name == compiled.computation(scan.plan.computations[0].computation).name ? 6u : 3u);
      ASSERT_EQ(a.size(), b.size()) << node.name;
      for (std::size_t run = 0; run < a.size(); ++run)
        EXPECT_THAT(b[run], ::testing::Pointwise(::testing::DoubleNear(1e-4), a[run]))
            << node.name << " is not " << now.node(gives).name << " in run " << run;
      ++compared;
    }
    for (const KernelPlan& kernel : part.plan.kernels) EXPECT_FALSE(kernel.ops.empty()) << kernel.name;
  }
  EXPECT_GT(compared, 20);
  EXPECT_THAT(scan.plan.peer->gone, IsEmpty()) << ::testing::PrintToString(scan.plan.peer->gone);
}

/// Of a model by another name for everything, which computes the same.
TEST(DumpPlan, IsOfWhateverModelComputesTheSame) {
  const Dump dump = read_dump((kDumps / "fig7-a100").string());
  const Graph given = canonicalize(read_graph(dump.model));
  const Graph ours =
      canonicalize(read_graph((fs::path(STITCHWORK_SOURCE_DIR) / "datasets/fig7.hlo").string()));
  const FusionPlan plan = plan_of(dump, given, ours);
  EXPECT_EQ(plan.model_sha256, ours.source_sha256);
  for (const Node& node : ours.entry_computation().nodes)
    EXPECT_NE(planned_op(plan, node.id), kNoNode) << node.name;
  const NodeId power = planned_op(plan, ours.entry_computation().find("power.1"));
  EXPECT_TRUE(plan.kernels[1].schemes.contains(power));

  const auto refusal = [&](const std::string& text) -> std::string {
    try {
      plan_of(dump, given, canonicalize(parse_hlo(text, "other.hlo")));
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  std::string text = to_text(ours);
  const std::size_t at_power = text.find(" power(");
  EXPECT_THAT(refusal(text.replace(at_power, 7, " atan2(")),
              HasSubstr("is no dump of other.hlo: the model does not compute its power.1"));
  EXPECT_THAT(refusal("HloModule m\nENTRY e { x = f32[2] parameter(0)  ROOT n = f32[2] negate(x) }"),
              HasSubstr("it has 4 parameters, the model 1"));
}

/// Peers without a module of HLO between: their steps name the model's ops.
TEST(DumpPlan, OfAPeerWithoutAModuleHasTheOpsThatItsStepsName) {
  const fs::path folder = fs::path(::testing::TempDir()) / "dump_plan_of_another_peer";
  fs::remove_all(folder);
  fs::copy(kDumps / "fig7-a100", folder);
  nlohmann::json document = nlohmann::json::parse(read_file((folder / "dump.json").string()));
  document["peer"] = "inductor";
  document["versions"] = {{"inductor", "2.15.0"}};
  document.erase("optimised");
  nlohmann::json& steps = document["program"]["steps"];
  steps[0]["ops"] = {"broadcast.4", "add.2", "reduce.14"};
  steps[1]["ops"] = {"divide.1", "power.1", "what_is_this"};
  steps[2]["ops"] = {"add.2", "reduce.2"};  // op_names, too
  steps[3]["ops"] = nlohmann::json::array();
  for (nlohmann::json& step : steps) step.erase("instruction");
  std::ofstream(folder / "dump.json") << document;
  const Planned planned(folder.string());
  const FusionPlan& plan = planned.plan;
  EXPECT_EQ(plan.planner, "inductor 2.15.0");
  EXPECT_EQ(plan.rewritten, nullptr);
  EXPECT_EQ(planned.ops_of(plan.kernels[1]), (std::set<std::string>{"divide.1", "power.1"}));
  EXPECT_THAT(plan.kernels[1].code->not_linked_to, ::testing::ElementsAre("what_is_this"));
  EXPECT_THAT(planned.ops_of(plan.kernels[2]), Contains("reduce.15"));
  EXPECT_TRUE(plan.kernels[3].ops.empty());
  EXPECT_TRUE(plan.peer->gone.contains("multiply.1"));
  EXPECT_FALSE(plan.peer->gone.contains("power.1"));
  fs::remove_all(folder);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
