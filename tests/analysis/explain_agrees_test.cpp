// What is recorded of a plan is one story: no decision stands beside its opposite.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "analysis/planners/planner.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(Decisions, NoneStandsBesideItsOpposite) {
  for (const char* model : {"fig7", "softmax_block", "layer_norm_grad", "mlp_training", "adam_tiny",
                            "attention", "bert_tiny", "crnn_tiny", "moe_layer", "unet_block"})
    for (const char* planner : {"xla", "tvm", "astitch", "auto"})
      for (const char* target : {"v100", "h200"}) {
        PlanOptions options;
        options.record_decisions = true;
        const FusionPlan plan = make_plan(testing::dataset(model), device(target), planner, options);
        std::map<std::tuple<std::string, std::string, std::string, std::string>, const Decision*> seen;
        for (const Decision& d : plan.decisions) {
          const auto [other, added] = seen.try_emplace({d.step, d.subject, d.object, d.verdict.rule}, &d);
          EXPECT_EQ(other->second->verdict.ok, d.verdict.ok)
              << model << " " << planner << " " << target << ": " << d.step << " " << d.subject << " "
              << d.object << ": " << other->second->verdict.why << " [" << other->second->verdict.rule
              << "], " << d.verdict.why << " [" << d.verdict.rule << "]";
        }
      }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
