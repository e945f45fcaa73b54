#include "analysis/verify/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/json/plan_json.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"
#include "tests/support/paper.h"

namespace stitchwork {
namespace TEST_FILE {

using Json = nlohmann::ordered_json;
using ::testing::Contains;
using testing::dataset;
using ::testing::HasSubstr;

/// A plan of fig7 (or of another dataset), edited as by hand, and what verify says of it.
class Edited {
 public:
  explicit Edited(const std::string& planner = "astitch", const std::string& model = "fig7")
      : Edited(dataset(model), planner) {}
  Edited(Graph graph, const std::string& planner) : graph_(std::move(graph)) {
    json = plan_to_json(graph_, make_plan(graph_, device("v100"), planner, testing::paper(planner)));
  }

  Json& kernel(int i = 0) { return json["kernels"][static_cast<std::size_t>(i)]; }
  /// The group that `op` leads.
  Json& group(const std::string& op, int k = 0) {
    for (Json& group : kernel(k)["groups"])
      if (group["dominant"] == op) return group;
    throw Error("no such group");
  }

  std::vector<std::string> rules() const {
    std::vector<std::string> names;
    for (const Verdict& v : verdicts()) names.push_back(v.rule);
    return names;
  }
  std::string why(const std::string& rule) const {
    for (const Verdict& v : verdicts())
      if (v.rule == rule) return v.why;
    return "";
  }
  std::vector<Verdict> verdicts() const {
    return verify(graph_, device("v100"), plan_from_json(graph_, json.dump(), "plan.json"));
  }
  const Graph& graph() const { return graph_; }

  Json json;

 private:
  Graph graph_;
};

void erase(Json& list, const std::string& value) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i] == value) list.erase(i--);
}

TEST(Verify, AcceptsWhatPlannersMake) {
  for (const char* planner : {"unfused", "xla", "astitch"})
    EXPECT_TRUE(Edited(planner).rules().empty()) << planner;
}

TEST(Verify, RefusesAnotherDevice) {
  Edited plan;
  plan.json["device"] = "t4";
  EXPECT_THAT(plan.rules(), Contains("verify.device"));
}

TEST(Verify, RefusesAnOpNobodyComputes) {
  Edited plan("xla");
  for (Json* list : {&plan.kernel(0)["ops"], &plan.kernel(0)["groups"][0]["ops"]}) erase(*list, "add.1");
  plan.kernel(0)["schemes"].erase("add.1");
  plan.kernel(0)["levels"].erase("add.1");
  EXPECT_THAT(plan.why("verify.missing-op"), HasSubstr("add.1"));
}

TEST(Verify, RefusesACycleAndTellsIt) {
  // reduce.2's kernel is moved into power.1's: the pair then needs and feeds nothing wrong, so instead let
  // reduce.1's kernel also compute multiply.1, which needs power.1, which needs reduce.1.
  Edited plan("xla");
  Json &first = plan.kernel(0), &last = plan.kernel(3);
  for (const char* op : {"broadcast.2", "broadcast.3", "multiply.1"}) {
    first["ops"].push_back(op);
    first["schemes"][op] = last["schemes"][op];
    first["levels"][op] = 0;
  }
  first["groups"].push_back(last["groups"][0]);
  first["outputs"].push_back("multiply.1");
  const auto total = std::max(first["grid"].get<int>(), last["grid"].get<int>());
  first["grid"] = total;
  plan.json["kernels"].erase(3);
  plan.json["steps"].erase(3);
  EXPECT_THAT(plan.why("verify.cycle"), HasSubstr("k0 needs k1 needs k0"));
}

TEST(Verify, RefusesStepsOutOfOrder) {
  Edited plan("xla");
  std::swap(plan.json["steps"][0], plan.json["steps"][1]);
  EXPECT_THAT(plan.why("verify.order"), HasSubstr("reduce.1"));
}

TEST(Verify, RefusesAKernelLaunchedTwiceOrNever) {
  Edited twice("xla");
  twice.json["steps"].push_back(twice.json["steps"][3]);
  EXPECT_THAT(twice.why("verify.step"), HasSubstr("2 times"));
  Edited never("xla");
  never.json["steps"].erase(3);
  EXPECT_THAT(never.why("verify.step"), HasSubstr("0 times"));
}

TEST(Verify, RefusesAKernelOfProductsForWhatIsNone) {
  Edited plan("xla");
  plan.json["steps"][0]["variant"] = "tiled-64x64";
  EXPECT_THAT(plan.why("verify.step"), HasSubstr("tiled-64x64 of a product, which it is not"));
}

TEST(Verify, RefusesAnOpInNoGroup) {
  Edited plan("xla");
  erase(plan.kernel(0)["groups"][0]["ops"], "broadcast.1");
  EXPECT_THAT(plan.why("verify.op-in-no-group"), HasSubstr("broadcast.1"));
}

TEST(Verify, RefusesAnOutputThatIsNotMaterialised) {
  Edited plan("xla");
  plan.kernel(0)["outputs"] = {"add.1"};
  EXPECT_THAT(plan.why("verify.output"), HasSubstr("add.1"));
}

TEST(Verify, RefusesAMissingOutput) {
  Edited plan("xla");
  plan.kernel(0)["outputs"] = Json::array();
  EXPECT_THAT(plan.rules(), Contains("verify.output"));
}

TEST(Verify, RefusesWrongTaskArithmetic) {
  Edited plan;
  const auto deal = [](Json& mapping, int tasks, int blocks) {
    mapping["tasks"] = tasks;
    mapping["blocks"] = blocks;
    mapping["tasks_per_block"] = 1;
  };
  deal(plan.group("reduce.1")["mapping"], 7, 7);
  EXPECT_THAT(plan.why("verify.mapping.tasks"), HasSubstr("not 7"));
  Edited blocks;
  Json& mapping = blocks.group("reduce.1")["mapping"];
  deal(mapping, mapping["tasks"], 100000);
  EXPECT_THAT(blocks.rules(), Contains("verify.mapping.blocks"));
}

TEST(Verify, RefusesAMappingOfAnotherDomain) {
  Edited plan;
  plan.group("reduce.1")["mapping"]["cols"] = 128;
  EXPECT_THAT(plan.why("verify.mapping.domain"), HasSubstr("4096 rows of 256"));
}

TEST(Verify, RefusesMoreThreadsThanTheBlockHas) {
  Edited plan("xla");
  plan.kernel(0)["block"] = 128;
  EXPECT_THAT(plan.rules(), Contains("verify.mapping.threads"));
}

TEST(Verify, RefusesTooMuchSharedMemory) {
  Edited plan;
  plan.kernel()["shared_bytes"] = 200000;
  EXPECT_THAT(plan.why("verify.shared-memory"), HasSubstr("200000"));
}

TEST(Verify, RefusesTooManyRegisters) {
  Edited plan;
  plan.kernel()["register_bound"] = 255;
  EXPECT_THAT(plan.why("verify.registers"), HasSubstr("65536"));
}

TEST(Verify, RefusesAGridThatCannotBeResident) {
  Edited plan;
  plan.kernel()["grid"] = 4000;
  EXPECT_THAT(plan.why("verify.residency"), HasSubstr("4000 blocks"));
}

TEST(Verify, CountsOnNoMoreBlocksAnSmThanTheCompilerIsToldOf) {
  // Registers would let more be resident, but nothing keeps the compiler to them.
  Edited plan;
  const auto grid = plan.kernel()["grid"].get<std::int64_t>();
  ASSERT_GT(plan.kernel()["grid_barriers"].get<int>(), 0);
  plan.kernel()["register_bound"] = 16;
  EXPECT_TRUE(plan.rules().empty());
  plan.kernel()["blocks_per_sm"] = (grid - 1) / 80;
  EXPECT_THAT(plan.why("verify.residency"), HasSubstr("limited by the plan's blocks an SM"));
}

TEST(Verify, RefusesAGridTooSmallForAGroup) {
  Edited plan;
  plan.kernel()["grid"] = 10;
  EXPECT_THAT(plan.rules(), Contains("verify.grid"));
}

TEST(Verify, RefusesTheWrongNumberOfBarriers) {
  Edited plan;
  plan.kernel()["grid_barriers"] = 1;
  EXPECT_THAT(plan.why("verify.barriers"), HasSubstr("2 grid barriers, not 1"));
}

TEST(Verify, RefusesAGlobalValueReadInItsOwnPhase) {
  Edited plan;
  for (auto& [op, level] : plan.kernel()["levels"].items()) level = 0;
  plan.kernel()["grid_barriers"] = 0;
  EXPECT_THAT(plan.why("verify.level"), HasSubstr("at least 1"));
}

/// Of 200 tasks two read each other's row: wherever they are, both are found.
TEST(Verify, RefusesTwoTasksThatReadEachOthersRows) {
  for (const int row : {0, 40, 133, 198}) {
    Edited plan(testing::graph_of(fmt::format(R"(
      p = f32[200,4096] parameter(0)
      z = f32[] constant(0)
      s = f32[200] reduce(p, z), dimensions={{1}}, to_apply=sum
      a = f32[{0}] slice(s), slice={{[0:{0}]}}
      b = f32[1] slice(s), slice={{[{0}:{1}]}}
      c = f32[1] slice(s), slice={{[{1}:{2}]}}
      d = f32[{3}] slice(s), slice={{[{2}:200]}}
      e = f32[200] concatenate(a, c, b, d), dimensions={{0}}
      g = f32[200,4096] broadcast(e), dimensions={{0}}
      ROOT r = f32[200,4096] subtract(p, g))",
                                              row, row + 1, row + 2, 198 - row)),
                "astitch");
    Json& kernel = plan.kernel();
    ASSERT_EQ(kernel["schemes"]["s"], "global");  // else as if every task read its own row
    kernel["schemes"]["s"] = "regional";
    for (auto& [op, level] : kernel["levels"].items()) level = 0;
    kernel["grid_barriers"] = 0;
    kernel["scratch"] = kernel["resident"] = Json::array();
    kernel["shared"].push_back({{"op", "s"}, {"offset", 256}, {"bytes", 4}});
    kernel["shared_bytes"] = 260;
    EXPECT_THAT(plan.why("verify.locality"),
                HasSubstr(fmt::format("task {} makes elements {}..{}", row, row, row)));
  }
}

TEST(Verify, RefusesARegionalValueReadByAnotherBlock) {
  Edited plan;
  ASSERT_EQ(plan.kernel()["schemes"]["power.1"], "global");
  plan.kernel()["schemes"]["power.1"] = "regional";
  EXPECT_THAT(plan.rules(), Contains("verify.locality"));
}

TEST(Verify, RefusesARegionalValueWithoutASlot) {
  Edited plan;
  ASSERT_EQ(plan.kernel()["schemes"]["reduce.1"], "regional");
  Json slots = Json::array();
  for (const Json& slot : plan.kernel()["shared"])
    if (slot["op"] != "reduce.1") slots.push_back(slot);
  plan.kernel()["shared"] = slots;
  EXPECT_THAT(plan.why("verify.slot"), HasSubstr("reduce.1"));
}

TEST(Verify, RefusesAValueOfItsOwnPhaseThatCannotBeHadThere) {
  // The sums of layer_norm_grad's rows are read in their blocks at once, and by the column sums a phase
  // later, where these are a group of their own.
  const auto why = [](const std::string& rule, const auto& edit) {
    Edited plan("astitch-no-dominant-merging", "layer_norm_grad_tiny");
    EXPECT_TRUE(plan.verdicts().empty());
    EXPECT_EQ(plan.kernel()["in_phase"]["reduce.18"], "regional");
    edit(plan.kernel());
    return plan.why(rule);
  };
  EXPECT_THAT(why("verify.level", [](Json& kernel) { kernel["in_phase"].erase("reduce.18"); }),
              HasSubstr("reduce.18 (global, level 0)"));
  EXPECT_THAT(why("verify.scheme", [](Json& kernel) { kernel["in_phase"]["reduce.64"] = "regional"; }),
              HasSubstr("reduce.64 is regional in its phase, which only a global or resident value can be"));
  EXPECT_THAT(why("verify.scheme", [](Json& kernel) { kernel["in_phase"]["reduce.18"] = "local"; }),
              HasSubstr("reduce.18 is reduced by several threads"));
  EXPECT_THAT(why("verify.slot",
                  [](Json& kernel) {
                    for (Json& slot : kernel["shared"])
                      if (slot["op"] == "reduce.18") slot["bytes"] = 1;
                  }),
              HasSubstr("reduce.18"));
  EXPECT_THAT(why("verify.slot",
                  [](Json& kernel) {
                    for (Json& slot : kernel["scratch"])
                      if (slot["op"] == "reduce.18") slot["bytes"] = 1;
                  }),
              HasSubstr("reduce.18"));
}

TEST(Verify, RefusesAnInlinedOpWithAStitchedScheme) {
  Edited plan;
  plan.kernel()["schemes"]["add.1"] = "regional";
  EXPECT_THAT(plan.why("verify.scheme"), HasSubstr("add.1"));
}

TEST(Verify, RefusesASchemeOfAForeignOp) {
  Edited plan("xla");
  plan.kernel(0)["schemes"]["multiply.1"] = "local";
  EXPECT_THAT(plan.why("verify.scheme"), HasSubstr("multiply.1"));
}

TEST(Verify, RefusesAReductionReadAsALocalValue) {
  Edited plan;
  plan.kernel()["schemes"]["reduce.1"] = "local";
  EXPECT_THAT(plan.why("verify.scheme"), HasSubstr("reduce.1"));
}

TEST(Verify, RefusesASlotOutsideTheMemoryAskedFor) {
  Edited plan;
  plan.kernel()["shared"][0]["offset"] = 1 << 20;
  EXPECT_THAT(plan.rules(), Contains("verify.slot"));
}

TEST(Verify, RefusesValuesThatShareBytesWhileBothAreNeeded) {
  const Graph graph = dataset("softmax");
  FusionPlan plan = make_plan(graph, device("v100"), "astitch", testing::paper("astitch", {}));
  std::vector<MemorySlot>& slots = plan.kernels.at(0).shared;
  ASSERT_EQ(slots.size(), 4u);  // the maximum, with -inf, the sum, the workspace
  const auto problem = [&] {
    const std::vector<Verdict> problems = verify(graph, device("v100"), plan);
    return problems.empty() ? std::string() : problems[0].why;
  };
  const std::int64_t apart = std::exchange(slots[1].offset, slots[0].offset);
  EXPECT_THAT(problem(),
              AllOf(HasSubstr("made in step 0, read by maximum.11 in step 1"), HasSubstr("made in step 1"),
                    HasSubstr("share shared memory while both are needed")));
  slots[1].offset = apart;
  ASSERT_EQ(slots[3].op, kNoNode);
  slots[3].offset = slots[0].offset;
  EXPECT_THAT(problem(), AllOf(HasSubstr("the workspace"), HasSubstr("reduces in step 0")));
}

TEST(Verify, RefusesAMissingWorkspace) {
  Edited plan("xla");
  plan.kernel(0)["shared"] = Json::array();
  EXPECT_THAT(plan.rules(), Contains("verify.workspace"));
}

TEST(Verify, RefusesAtomicsWithoutAMemset) {
  const Graph graph = dataset("column_sum");
  FusionPlan plan = make_plan(graph, device("v100"), "xla");
  ASSERT_EQ(plan.steps.at(0).kind, StepKind::kMemset);
  plan.steps.erase(plan.steps.begin());
  std::vector<std::string> rules;
  for (const Verdict& v : verify(graph, device("v100"), plan)) rules.push_back(v.rule);
  EXPECT_THAT(rules, Contains("verify.memset"));
}

TEST(Verify, RefusesAMissingLibraryCall) {
  const Graph graph = dataset("bert_layer");
  FusionPlan plan = make_plan(graph, device("v100"), "xla");
  std::erase_if(plan.steps, [&](const PlanStep& s) {
    return s.kind == StepKind::kLibrary && &s != &plan.steps.back() && s.nodes[0] % 2 == 0;
  });
  std::vector<std::string> rules;
  for (const Verdict& v : verify(graph, device("v100"), plan)) rules.push_back(v.rule);
  EXPECT_THAT(rules, Contains("verify.missing-step"));
}

TEST(Verify, RequireValidThrowsTheFirstProblemAndTheirNumber) {
  Edited plan;
  plan.kernel()["grid"] = 10;
  plan.json["device"] = "t4";
  try {
    require_valid(plan.graph(), device("v100"), plan_from_json(plan.graph(), plan.json.dump(), "p.json"),
                  "p.json");
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.file(), "p.json");
    EXPECT_THAT(e.message(), HasSubstr("not a valid plan"));
    EXPECT_THAT(e.message(), HasSubstr("more)"));
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
