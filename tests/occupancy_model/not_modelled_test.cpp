#include "occupancy_model/not_modelled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> ids(const char* on, const TimedKernel& kernel) {
  std::vector<std::string> found;
  for (const NotModelled& effect : not_modelled(device(on), kernel)) found.emplace_back(effect.id);
  return found;
}

/// Bound by DRAM and longer than the host takes to dispatch it; nothing of it is left out on V100.
TimedKernel plain() { return {.time = {.total_us = 100, .dram_us = 95, .l2_us = 20, .latency_us = 5}}; }

TEST(NotModelled, APlainKernelLeavesNothingOut) { EXPECT_THAT(ids("v100", plain()), IsEmpty()); }

/// Each effect alone, by the one thing that tells it.
TEST(NotModelled, EveryEffectHasItsCondition) {
  std::set<std::string> seen;
  const auto expect = [&](const std::string& id, auto change, const char* on = "v100") {
    TimedKernel kernel = plain();
    change(kernel);
    EXPECT_THAT(ids(on, kernel), ElementsAre(id));
    seen.insert(id);
  };
  using K = TimedKernel;
  expect("host-dispatch", [](K& k) { k.time.total_us = 33; });
  expect("contended-atomics", [](K& k) { k.same_address_atomics = 2; });
  expect("contended-atomics", [](K& k) { k.atomic_conflicts = 1; });
  expect("loaded-latency", [](K& k) { k.time.latency_us = 96; });
  expect("shared-l1", [](K& k) { k.blocks_per_sm = 2, k.l2_hit_sectors = 1; });
  expect("waits-at-barriers", [](K& k) { k.has_block_barriers = true; });
  expect(
      "grid-barrier-elsewhere", [](K& k) { k.grid_barriers = 1; }, "a100");
  expect("tail", [](K& k) { k.time.tail_us = 11; });
  expect("issue-limits", [](K& k) { k.time.issue_us = 96; });
  for (const char* borrows : {"rtx4090", "h100", "h200", "b200"})
    expect(
        "bandwidth-not-measured", [](K&) {}, borrows);
  expect("spills", [](K& k) { k.spill_bytes = 4; });
  expect("local-memory", [](K& k) { k.local_requests = 1; });
  expect("clusters", [](K& k) { k.cluster_requests = 1; });
  expect("bulk-copies", [](K& k) { k.bulk_copies = 1; });
  expect("index-arithmetic", [](K& k) { k.moves_indices = true; });
  for (const NotModelled& effect : timing_omissions())
    EXPECT_TRUE(seen.contains(std::string(effect.id))) << effect.id;
}

TEST(NotModelled, NothingNearIsMistakenForIt) {
  const auto expect_none = [&](auto change) {
    TimedKernel kernel = plain();
    change(kernel);
    EXPECT_THAT(ids("v100", kernel), IsEmpty());
  };
  using K = TimedKernel;
  expect_none([](K& k) { k.same_address_atomics = 1; });
  expect_none([](K& k) { k.grid_barriers = 1; });  // measured there
  expect_none([](K& k) { k.blocks_per_sm = 8, k.has_block_barriers = true; });
  expect_none([](K& k) { k.blocks_per_sm = 1, k.l2_hit_sectors = 100; });
  expect_none([](K& k) { k.counted = true, k.moves_indices = true; });
  expect_none([](K& k) { k.time.tail_us = 9; });
  for (const char* measured : {"p100-sxm2", "p4", "t4", "l4", "a100"})
    EXPECT_THAT(ids(measured, plain()), IsEmpty()) << measured;
}

TEST(NotModelled, TheDocumentationHasTheTable) {
  std::ifstream in(STITCHWORK_SOURCE_DIR "/docs/timing.md");
  std::stringstream text;
  text << in.rdbuf();
  std::set<std::string_view> seen;
  for (const NotModelled& effect : timing_omissions()) {
    EXPECT_TRUE(seen.insert(effect.id).second) << effect.id;
    EXPECT_THAT(text.str(),
                HasSubstr("| `" + std::string(effect.id) + "` | " + std::string(effect.why) + " |"));
  }
}

TEST(NotModelled, IsALineEach) {
  TimedKernel kernel = plain();
  kernel.spill_bytes = 8;
  EXPECT_EQ(to_text(not_modelled(device("v100"), kernel)),
            "not modelled: spills: registers that the compiler spilled to local memory move no bytes\n");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
