// Random graphs after random steps give what they gave, and the steps repeated give the same graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/evaluate/judge.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "core/substitute/derivation.h"
#include "core/substitute/view.h"
#include "tests/core/substitute_support.h"
#include "tests/support/fuzz.h"
#include "tests/support/shrink_hlo.h"

namespace stitchwork {
namespace TEST_FILE {

using rewriting::Derivation;
using rewriting::Exactness;
using rewriting::Rule;

constexpr int kSteps = 20;

/// A random rule that holds somewhere, at a random place. False: none does.
bool random_step(Derivation& derivation, std::mt19937& random, bool moves_alone,
                 std::map<std::string_view, int>& taken) {
  std::vector<const Rule*> rules;
  for (const Rule& rule : rewriting::rules())
    if (!moves_alone || rule.exactness == Exactness::kMoves) rules.push_back(&rule);
  std::ranges::shuffle(rules, random);
  const Graph& graph = derivation.result().graph;
  const rewriting::View view(graph, graph.entry);
  const auto size = static_cast<std::uint32_t>(view.computation().size());
  const std::uint32_t first = static_cast<std::uint32_t>(random()) % size;
  for (const Rule* rule : rules)
    for (std::uint32_t i = 0; i < size; ++i) {
      const auto node = static_cast<NodeId>((first + i) % size);
      if (!rule->find(view, node)) continue;
      ++taken[rule->name];
      const std::string computation = view.computation().name, op = view.node(node).name;
      return derivation.apply(*rule, computation, op);
    }
  return false;
}

/// Up to kSteps of them; tidied where the graph has grown much.
Derivation random_steps(const Graph& model, std::uint32_t seed, bool moves_alone,
                        std::map<std::string_view, int>& taken) {
  std::mt19937 random(seed);
  Derivation derivation(model);
  const std::size_t most = 2 * model.entry_computation().nodes.size() + 20;
  for (int step = 0; step < kSteps && random_step(derivation, random, moves_alone, taken); ++step)
    if (derivation.result().graph.entry_computation().nodes.size() > most) derivation.tidy();
  return derivation;
}

/// Arrays of few elements may be parts of large ones, which take long.
bool is_small(const Graph& graph) {
  return std::ranges::all_of(graph.entry_computation().nodes,
                             [](const Node& node) { return node.shape.elements_count() <= 1 << 16; });
}

/// What is wrong with a random derivation of this module; "" if nothing.
std::string wrong(const std::string& text, std::uint32_t seed, bool moves_alone,
                  std::map<std::string_view, int>& taken) {
  Graph model = canonicalize(parse_hlo(text, "random.hlo"));
  if (!is_small(model)) return "";
  if (!moves_alone) model = testing::with_wide_floats(std::move(model));  // rounding would hide what is wrong
  const Derivation derivation = random_steps(model, seed, moves_alone, taken);
  const Graph& rewritten = derivation.result().graph;
  validate(rewritten);
  testing::expect_consistent(derivation.result());
  if (to_text(rewriting::replay(model, derivation.result().steps).graph) != to_text(rewritten))
    return "the steps repeated give another graph";
  if (moves_alone) {
    const std::vector<Literal> inputs = generate_inputs(model, seed);
    return testing::difference(evaluate(rewritten, inputs), evaluate(model, inputs));
  }
  Judge judge(model, generate_inputs(model, seed));
  return judge.check(evaluate(rewritten, judge.inputs())).message;
}

void expect_true(std::uint32_t seed, bool moves_alone, std::map<std::string_view, int>& taken) {
  testing::RandomGraphOptions options = testing::fuzz_options(seed);
  options.dots = !moves_alone;  // sums of products depend on the order of their terms
  if (!moves_alone) options.types = false;
  const std::string text = testing::random_hlo(seed, options);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const std::string what = wrong(text, seed, moves_alone, taken);
  if (what.empty()) return;
  std::map<std::string_view, int> again;
  const std::string least = testing::shrink_hlo(
      text, [&](const std::string& part) { return !wrong(part, seed, moves_alone, again).empty(); });
  ADD_FAILURE() << "seed " << seed << ": " << what << "\n" << least;
}

TEST(SubstituteRandom, GraphsGiveTheSameBitsAfterMoves) {
  std::map<std::string_view, int> taken;
  const testing::FuzzRange range = testing::fuzz_range(0, 500);
  for (std::uint32_t seed = range.first; seed < range.end && !HasFailure(); ++seed)
    expect_true(seed, true, taken);
  if (!range.chosen) {
    EXPECT_GE(taken.size(), 8u);
  }
}

TEST(SubstituteRandom, GraphsGiveTheSameAfterAnySteps) {
  std::map<std::string_view, int> taken;
  const testing::FuzzRange range = testing::fuzz_range(1000, 500);
  for (std::uint32_t seed = range.first; seed < range.end && !HasFailure(); ++seed)
    expect_true(seed, false, taken);
  if (!range.chosen) {
    EXPECT_GE(taken.size(), 16u);
  }
  for (const auto& [rule, times] : taken) RecordProperty(std::string(rule), times);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
