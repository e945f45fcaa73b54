// What auto computes again is right: graphs in two halves that a matrix product lies between, the second of
// which reads what the first had on its way, on devices whose memory is so slow that nothing is stored that
// can be had otherwise.
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "analysis/planners/planner.h"
#include "codegen/compile/compiler.h"
#include "codegen/compile/process.h"
#include "codegen/executable.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "runtime/run.h"
#include "tests/support/fuzz.h"

namespace stitchwork {
namespace TEST_FILE {

constexpr int kGraphs = 120, kFewest = 30;

/// Random ops of square arrays, one line each.
class TwoHalves {
 public:
  explicit TwoHalves(std::uint32_t seed)
      : random_(seed), side_(16 + 8 * static_cast<int>(random_() % 7)), array_(of("f32")) {}

  std::string text() {
    line("zero", "f32[] constant(0)");
    for (int p = 0; p < 3; ++p)
      value(line("p" + std::to_string(p), array_ + " parameter(" + std::to_string(p) + ")"));
    for (int i = 0; i < 12; ++i) add_op();
    const std::string product = fresh();
    value(line(product,
               array_ + " dot(" + any() + ", p0), lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
    for (int i = 0; i < 8; ++i) add_op();
    std::string results, types;
    for (const std::string& one : {product, values_.back(), values_[values_.size() - 2], any()}) {
      results += (results.empty() ? "" : ", ") + one;
      types += (types.empty() ? "" : ", ") + array_;
    }
    return "HloModule halves\nadd { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) "
           "}\n"
           "ENTRY main {\n" +
           text_ + "ROOT t = (" + types + ") tuple(" + results + ")\n}\n";
  }

 private:
  std::string of(const std::string& type) const {
    return type + "[" + std::to_string(side_) + "," + std::to_string(side_) + "]";
  }
  std::string fresh() { return "v" + std::to_string(next_++); }
  std::string line(const std::string& name, const std::string& op) {
    text_ += name + " = " + op + "\n";
    return name;
  }
  void value(const std::string& name) { values_.push_back(name); }
  /// Mostly the last ones, so that there is something on the way.
  std::string any() {
    const std::size_t back = random_() % 3 == 0 ? random_() % values_.size()
                                                : random_() % std::min<std::size_t>(values_.size(), 4);
    return values_[values_.size() - 1 - back];
  }
  void add_op() {
    const std::string name = fresh();
    switch (random_() % 9) {
      case 0: {
        const std::string mask =
            line(fresh(), of("pred") + " compare(" + any() + ", " + any() + "), direction=LT");
        return value(line(name, array_ + " select(" + mask + ", " + any() + ", " + any() + ")"));
      }
      case 1: {
        const std::string narrow = line(fresh(), of("bf16") + " convert(" + any() + ")");
        return value(line(name, array_ + " convert(" + narrow + ")"));
      }
      case 2: {
        const std::string rows = "f32[" + std::to_string(side_) + "]";
        const std::string dim = std::to_string(random_() % 2);
        const std::string sum =
            line(fresh(), rows + " reduce(" + any() + ", zero), dimensions={" + dim + "}, to_apply=add");
        const std::string small = line(fresh(), rows + " tanh(" + sum + ")");
        const std::string wide = line(fresh(), array_ + " broadcast(" + small + "), dimensions={" +
                                                   std::to_string(random_() % 2) + "}");
        return value(line(name, array_ + " subtract(" + any() + ", " + wide + ")"));
      }
      case 3:
        return value(line(name, array_ + " transpose(" + any() + "), dimensions={1,0}"));
      case 4:
      case 5:
        return value(line(name, array_ + (random_() % 2 == 0 ? " tanh(" : " sine(") + any() + ")"));
      default:
        return value(
            line(name, array_ + (random_() % 2 == 0 ? " add(" : " multiply(") + any() + ", " + any() + ")"));
    }
  }

  std::mt19937 random_;
  int side_, next_ = 0;
  std::string array_, text_;
  std::vector<std::string> values_;
};

std::set<NodeId> stored(const FusionPlan& plan) {
  std::set<NodeId> result;
  for (const KernelPlan& kernel : plan.kernels) result.insert(kernel.outputs.begin(), kernel.outputs.end());
  return result;
}

TEST(RecomputeRuns, WhatIsComputedAgainIsRight) {
  if (!find_nvrtc() && !find_clang()) GTEST_SKIP() << "neither NVRTC nor clang is installed";
  const TemporaryFolder kernels;
  CompileOptions compile_options;
  compile_options.cache_dir = kernels.path().string();
  compile_options.ptxas = false;
  RunOptions run_options;
  run_options.sanitize = {.race = true, .init = true};
  int again = 0;
  for (std::uint32_t seed = 0; seed < kGraphs; ++seed) {
    const std::string text = TwoHalves(seed).text();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const Graph graph = canonicalize(parse_hlo(text, "halves.hlo"));
    std::mt19937 random(seed);
    Device slow = testing::some_share(random);
    slow.dram_gb_s /= 1000;
    const std::map<std::string, std::string> calls = {{"products", "off"}};
    const FusionPlan plan = make_plan(graph, slow, "auto", {.knobs = calls});
    const FusionPlan without =
        make_plan(graph, slow, "auto", {.knobs = {{"products", "off"}, {"recompute", "off"}}});
    if (stored(plan) == stored(without)) continue;
    ++again;
    testing::Reference reference(graph, testing::fuzz_inputs(graph, seed));
    const RunResult run = run_simulated(graph, slow, compile(graph, slow, plan, compile_options),
                                        reference.inputs(), run_options);
    EXPECT_EQ(reference.problem(run.outputs), "");
    for (const auto& finding : run.findings) ADD_FAILURE() << finding.kernel << ": " << finding.message;
  }
  std::cout << again << " of " << kGraphs << " graphs compute something again\n";
  EXPECT_GE(again, kFewest);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
