#include "analysis/explain/remedy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analysis/planners/planner.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

std::string remedy_of(const char* rule, const char* why) {
  return remedy(device("v100"), {"memory", "x", "", Verdict::no(rule, why)});
}

TEST(Remedy, CarriesTheNumbersAndWhatTheDeviceWouldAdmit) {
  const std::string shared =
      remedy_of("astitch.shared-memory", "needs 51200 bytes of shared memory, 49152 allowed");
  EXPECT_THAT(shared, HasSubstr("2048 bytes less"));
  EXPECT_THAT(shared, HasSubstr("1 block per SM would admit its 51200 bytes"));
  EXPECT_THAT(remedy_of("astitch.shared-memory", "needs 200000 bytes of shared memory, 49152 allowed"),
              HasSubstr("no launch on v100-sxm2 admits 200000 bytes"));
}

TEST(Remedy, TheNumbersOfOpNamesAreNotNumbers) {
  EXPECT_THAT(remedy_of("astitch.max-ops", "reduce.17 and x_9: 600 ops together, 512 allowed"),
              HasSubstr("88 ops would have to go"));
}

TEST(Remedy, WhatWasTakenNeedsNone) {
  EXPECT_EQ(remedy(device("v100"), {"scope", "x", "y", Verdict::yes("xla.fused")}), "");
}

TEST(Remedy, IsKnownForEveryRefusalOfThePlanners) {
  for (const char* model : {"fig5", "fig7", "softmax", "layer_norm", "gelu", "bert_layer", "row_64x30000"}) {
    const Graph graph = testing::dataset(model);
    for (const Planner& row : planners_for(graph)) {
      std::set<std::string> unknown;
      for (const Decision& d : make_plan(graph, device("v100"), row.name, {{}, {}, true}).decisions)
        if (!d.verdict.ok && remedy(device("v100"), d).empty()) unknown.insert(d.verdict.rule);
      EXPECT_THAT(unknown, ::testing::IsEmpty()) << model << " " << row.name;
    }
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
