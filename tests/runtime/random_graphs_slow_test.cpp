// The whole road on random graphs: every planner's kernels, compiled, run in the simulator and compared with
// the evaluator. STITCHWORK_FUZZ_SEEDS (how many) and STITCHWORK_FUZZ_FIRST (from which on) run other graphs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "analysis/planner.h"
#include "codegen/compiler.h"
#include "codegen/executable.h"
#include "codegen/process.h"
#include "core/evaluator.h"
#include "core/hlo_text.h"
#include "core/inputs.h"
#include "core/passes.h"
#include "runtime/run.h"
#include "tests/support/random_graph.h"

namespace stitchwork {
namespace {

constexpr std::uint32_t kSeeds = 80;  // about a minute on two cores

std::uint32_t setting(const char* name, std::uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

/// Few SMs: small tensors then take several tasks a block, split rows and need grid barriers.
Device few_sms(std::string_view id, int sms) {
  Device result = device(id);
  result.sms = sms;
  return result;
}

testing::RandomGraphOptions options_of(std::uint32_t seed) {
  testing::RandomGraphOptions options;
  options.ops = 3 + static_cast<int>(seed * 7 % 22);
  options.max_elements = seed % 5 == 0 ? 1 << 8 : seed % 5 < 3 ? 1 << 12 : 1 << 14;
  options.types = seed % 3 != 0;
  options.gathers = seed % 4 != 0;
  return options;
}

/// Integers beyond the ranges that indices have, so that clamping shows.
std::vector<Literal> inputs_of(const Graph& graph, std::uint32_t seed) {
  InputOverrides overrides;
  const Computation& computation = graph.entry_computation();
  for (std::size_t p = 0; p < computation.parameters.size(); ++p) {
    const DType dtype = computation.node(computation.parameters[p]).shape.dtype;
    if (!is_integral(dtype)) continue;
    Distribution& distribution = overrides[std::to_string(p)];
    distribution.kind = Distribution::Kind::kIndex;
    distribution.low = is_signed_integer(dtype) ? -9 : 0;
    distribution.high = 40;
  }
  return generate_inputs(graph, seed, overrides);
}

/// The inputs, each float off by some units of its last place.
std::vector<Literal> disturbed(std::vector<Literal> inputs) {
  for (Literal& input : inputs) {
    const DType dtype = input.shape.dtype;
    if (!is_floating(dtype)) continue;
    const double unit = dtype == DType::kF64   ? 1e-15
                        : dtype == DType::kF32 ? 1e-6
                        : dtype == DType::kF16 ? 2e-3
                                               : 1e-2;
    for (std::int64_t i = 0; i < input.shape.elements_count(); ++i)
      input.set_double(i, input.get_double(i) * (1 + (i % 3 == 0 ? unit : i % 3 == 1 ? -unit : unit / 2)));
  }
  return inputs;
}

/// What is right, and how far rounding alone can move it.
class Reference {
 public:
  Reference(const Graph& graph, std::vector<Literal> inputs)
      : graph_(graph), inputs_(std::move(inputs)), outputs_(evaluate(graph, inputs_)) {}

  const std::vector<Literal>& inputs() const { return inputs_; }

  int cancelled() const { return cancelled_; }

  /// "" if `actual` is right.
  std::string problem(const std::vector<Literal>& actual) {
    if (actual.size() != outputs_.size())
      return fmt::format("{} outputs, {} are right", actual.size(), outputs_.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const CheckResult check = check_output(actual[i], outputs_[i]);
      if (check.ok) continue;
      if (!within_noise(actual[i], i)) return fmt::format("output {}: {}", i, check.message);
      ++cancelled_;
    }
    return "";
  }

 private:
  /// Sums that cancel: the error is of the size that the smallest changes of the inputs make.
  bool within_noise(const Literal& actual, std::size_t output) {
    const Literal& right = outputs_[output];
    if (!is_floating(right.shape.dtype) || !actual.shape.compatible(right.shape)) return false;
    if (disturbed_.empty()) disturbed_ = evaluate(graph_, disturbed(inputs_));
    double noise = 0, error = 0;
    for (std::int64_t i = 0; i < right.shape.elements_count(); ++i) {
      const double a = actual.get_double(i), r = right.get_double(i);
      const double moved = std::abs(disturbed_[output].get_double(i) - r);
      if (std::isfinite(moved)) noise = std::max(noise, moved);
      if (std::isfinite(a) && std::isfinite(r))
        error = std::max(error, std::abs(a - r));
      else if (!(std::isnan(a) ? std::isnan(r) : a == r))
        return false;
    }
    return error <= 4 * noise;
  }

  const Graph& graph_;
  std::vector<Literal> inputs_, outputs_, disturbed_;
  int cancelled_ = 0;
};

/// What the plans of all graphs had: a test that never crosses a barrier says nothing of barriers.
struct Coverage {
  int kernels = 0, barriers = 0, splits = 0, vertical = 0, columns = 0, regional = 0;

  void add(const FusionPlan& plan) {
    for (const KernelPlan& kernel : plan.kernels) {
      ++kernels;
      barriers += kernel.launch.grid_barriers > 0;
      for (const Group& group : kernel.groups) {
        splits += group.mapping.split > 1;
        vertical += group.mapping.tasks_per_block > 1;
        columns += group.mapping.kind == MappingKind::kColumn;
      }
      for (const auto& [op, scheme] : kernel.schemes) regional += scheme == Scheme::kRegional;
    }
  }
};

/// Plans, compiles and runs; what went wrong, or "".
std::string outcome(const Graph& graph, Reference& reference, const Device& device, const Planner& row,
                    const PlanOptions& options, const CompileOptions& compile_options, Coverage& coverage) {
  try {
    const FusionPlan plan = make_plan(graph, device, row.name, options);
    coverage.add(plan);
    const RunResult run =
        run_simulated(graph, device, compile(graph, device, plan, compile_options), reference.inputs());
    if (!run.findings.empty())
      return fmt::format("{} in {}: {}", name(run.findings[0].kind), run.findings[0].kernel,
                         run.findings[0].message);
    return reference.problem(run.outputs);
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(RandomGraphs, EveryPlannersKernelsComputeWhatTheGraphMeans) {
  if (!find_nvrtc() && !find_clang()) GTEST_SKIP() << "neither NVRTC nor clang is installed";
  const Device devices[] = {device("v100"), few_sms("t4", 2)};
  const TemporaryFolder kernels;  // planners and devices share many of them
  CompileOptions compile_options;
  compile_options.cache_dir = kernels.path().string();
  compile_options.ptxas = false;

  Coverage coverage;
  int cancelled = 0;
  const std::uint32_t first = setting("STITCHWORK_FUZZ_FIRST", 0);
  const std::uint32_t end = first + setting("STITCHWORK_FUZZ_SEEDS", kSeeds);
  for (std::uint32_t seed = first; seed < end; ++seed) {
    const std::string text = testing::random_hlo(seed, options_of(seed));
    std::optional<Graph> graph;
    std::optional<Reference> reference;
    ASSERT_NO_THROW({
      graph = canonicalize(parse_hlo(text, "random.hlo"));
      reference.emplace(*graph, inputs_of(*graph, seed));
    }) << "seed "
       << seed << "\n"
       << text;
    for (const Device& where : devices)
      for (const Planner& row : planners()) {
        if (row.name == "unfused" && seed % 8 != 0) continue;  // a kernel an op: slow and seldom different
        std::vector<std::pair<std::string, PlanOptions>> variants = {{"", {}}};
        if (!row.knobs.empty()) {
          const std::string_view knob = row.knobs[seed % row.knobs.size()];
          for (const Knob& known : knobs())
            for (std::string_view value : known.values)
              if (known.name == knob && value != known.default_value)
                variants.push_back(
                    {fmt::format(", {}={}", knob, value), {{{std::string(knob), std::string(value)}}}});
        }
        for (const auto& [what, options] : variants) {
          const std::string problem =
              outcome(*graph, *reference, where, row, options, compile_options, coverage);
          EXPECT_EQ(problem, "") << "seed " << seed << ", " << row.name << what << " for " << where.id
                                 << " with " << where.sms << " SMs\n"
                                 << text;
        }
      }
    cancelled += reference->cancelled();
  }
  std::cout << fmt::format(
      "{} kernels; {} with grid barriers; groups: {} split, {} of several tasks a block, {} by columns; "
      "{} regional values; {} sums that cancel\n",
      coverage.kernels, coverage.barriers, coverage.splits, coverage.vertical, coverage.columns,
      coverage.regional, cancelled);
  EXPECT_GT(coverage.barriers, 0);
  EXPECT_GT(coverage.splits, 0);
  EXPECT_GT(coverage.vertical, 0);
  EXPECT_GT(coverage.columns, 0);
  EXPECT_GT(coverage.regional, 0);
}

}  // namespace
}  // namespace stitchwork
