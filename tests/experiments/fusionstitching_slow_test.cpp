// FusionStitching of 2019 over all datasets, held to unfused, XLA, AStitch and the fewest
// kernels possible, by the model.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "analysis/facts/bound.h"
#include "core/base/parallel.h"
#include "experiments/model.h"
#include "experiments/trial_metrics.h"

namespace stitchwork {
namespace TEST_FILE {

using Numbers = std::map<std::string, double, std::less<>>;

Numbers modelled(const Model& model, const std::string& planner,
                 const std::map<std::string, std::string>& knobs = {}) {
  TrialSpec spec;
  spec.planner = planner;
  spec.options.knobs = knobs;
  spec.backend = "model";
  Numbers numbers;
  for (const TrialMetric& one : trial_metrics(model, spec, run_trial(model, spec)))
    numbers[std::string(one.metric)] = one.value;
  return numbers;
}

TEST(FusionStitchingDatasets, ByExecutionNoneIsSlowerThanUnfusedOrMuchThanXla) {
  const std::vector<Dataset>& all = datasets();
  struct Of {
    Numbers fs, xla, unfused;
  };
  std::vector<Of> numbers(all.size());
  parallel_for(all.size(), [&](std::size_t i) {
    const Model model = load_model(all[i].name);
    numbers[i] = {modelled(model, "fusionstitching", {{"score", "execution"}, {"launch_cost", "device"}}),
                  modelled(model, "xla"), modelled(model, "unfused")};
  });
  double sum = 0;
  int n = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].name);
    const auto& [fs, xla, unfused] = numbers[i];
    EXPECT_LE(fs.at("total_us"), unfused.at("total_us") * (1 + 1e-9));
    EXPECT_LE(fs.at("total_us"), 1.02 * xla.at("total_us"));
    EXPECT_LE(fs.at("dynamic_memory_kernels"), xla.at("dynamic_memory_kernels"));
    const double before = xla.at("dynamic_kernel_us"), after = fs.at("dynamic_kernel_us");
    if (!(before > 0) || !(after > 0)) continue;  // all calls, or all products taken into none
    sum += std::log(after / before);
    ++n;
  }
  ASSERT_GT(n, 0);
  EXPECT_LE(std::exp(sum / n), 0.75) << "memory-intensive time over XLA's";
}

TEST(FusionStitchingDatasets, WithoutProductsHaveNoFewerKernelsThanAnyPlanNeedsOrAStitchHas) {
  for (const Dataset& dataset : datasets()) {
    if (dataset.large) continue;
    SCOPED_TRACE(dataset.name);
    const Model model = load_model(dataset.name);
    const Numbers astitch = modelled(model, "astitch"),
                  unpacked = modelled(model, "fusionstitching-no-products", {{"packing", "off"}}),
                  fs = modelled(model, "fusionstitching-no-products");
    const double fewest = kernel_bound(model.graph).kernels;
    EXPECT_LE(fewest, fs.at("memory_kernels"));
    EXPECT_LE(astitch.at("memory_kernels"), unpacked.at("memory_kernels"));
    for (const char* equal : {"softmax", "layer_norm", "gelu"})
      if (dataset.name == equal) {
        EXPECT_EQ(astitch.at("memory_kernels"), fs.at("memory_kernels"));
      }
    EXPECT_LE(modelled(model, "fusionstitching-2018").at("memory_kernels"),
              modelled(model, "fusionstitching-2018", {{"roof", "layer"}}).at("memory_kernels"));
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
