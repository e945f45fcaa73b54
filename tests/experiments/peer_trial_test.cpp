// A run of a compiler's dump as a trial: what the store has of it, beside planners' trials.
#include "experiments/peer_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "experiments/trial_metrics.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;

const fs::path kDumps = fs::path(STITCHWORK_SOURCE_DIR) / "tests/data/dumps";

TEST(PeerTrial, HasWhatATrialHas) {
  const Model model = load_model("fig7");
  Peer peer = load_peer((kDumps / "fig7-v100").string(), model);
  const Device& target = device("v100");
  const TrialSpec spec = spec_of(peer, target);
  const std::string key = trial_key(model, spec);
  PeerRun run = run_peer(peer, trial_inputs(model, spec), target, {});
  const double total = run.result.program.total_us;
  // The settings are known before the run, and are the same of the same dump wherever it lies.
  EXPECT_EQ(trial_key(model, spec_of(peer, target)), key);
  EXPECT_EQ(spec.planner, "xla jaxlib 0.10.2");

  const TrialResult result = trial_of(peer, model, target, std::move(run), {});
  ASSERT_EQ(result.run.kernels.size(), 4u);
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(result.run.kernels[k].method, Method::kSimulated);
    EXPECT_GT(result.run.kernels[k].counters.dram_read_transactions, 0u);
    EXPECT_EQ(result.executable.kernels[k].entry, peer.plan.kernels[k].code->entry);
  }
  std::map<std::string, TrialMetric> metrics;
  for (const TrialMetric& metric : trial_metrics(model, spec, result))
    metrics.emplace(std::string(metric.metric), metric);
  EXPECT_EQ(metrics.at("memory_kernels").value, 4);
  EXPECT_EQ(metrics.at("total_us").value, total);
  EXPECT_EQ(metrics.at("kernel_us").method, "simulated");
  EXPECT_EQ(metrics.at("dram_bytes").method, "simulated");
  EXPECT_EQ(metrics.at("predicted_us").method, "simulated + modelled");
  EXPECT_EQ(metrics.at("reduction_kernels").value, 2);
  double dram = 0;
  for (const KernelRun& kernel : result.run.kernels)
    dram += 32.0 * static_cast<double>(kernel.counters.dram_read_transactions +
                                       kernel.counters.dram_write_transactions);
  EXPECT_EQ(metrics.at("dram_bytes").value, dram);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
