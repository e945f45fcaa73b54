#include "core/base/interrupt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "analysis/json/plan_json.h"
#include "analysis/planners/planner.h"
#include "core/base/file.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace TEST_FILE {

struct Stop {};

TEST(InterruptedPlanning, EndsAtAnyPointAndPlansTheSameAfterwards) {
  const std::string file = std::string(STITCHWORK_SOURCE_DIR) + "/datasets/bert_layer.hlo";
  const Graph graph = canonicalize(parse_hlo(read_file(file), file));
  for (const Planner& row : planners_for(graph)) {
    const auto text = [&] {
      return plan_to_json(graph, make_plan(graph, device("v100-sxm2"), row.name)).dump();
    };
    const std::string wanted = text();
    std::atomic<long> points = 0;
    {
      const Interruptible counting([&] { ++points; });
      EXPECT_EQ(text(), wanted) << row.name;
    }
    EXPECT_GT(points, 20) << row.name;
    // Threads that price the same kernel at once both pass its points, so two runs differ by a few of them.
    for (const long at : {1L, points / 3, points - points / 10}) {
      std::atomic<long> passed = 0;
      const Interruptible ending([&] {
        if (++passed >= at) throw Stop{};
      });
      EXPECT_THROW(text(), Stop) << row.name << " at " << at;
      // Each other thread comes to one more point at most.
      EXPECT_GE(passed, at) << row.name;
      EXPECT_LT(passed, at + std::max(1u, std::thread::hardware_concurrency())) << row.name;
    }
    EXPECT_EQ(text(), wanted) << row.name;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
