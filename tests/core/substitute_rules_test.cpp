// Every rule of the table is true, and refuses where a precondition fails: random instances of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/evaluate/evaluator.h"
#include "core/evaluate/judge.h"
#include "core/hlo/hlo_text.h"
#include "core/substitute/derivation.h"
#include "core/substitute/view.h"
#include "tests/core/substitute_instances_macros.h"
#include "tests/core/substitute_support.h"

namespace stitchwork {
namespace TEST_FILE {

using rewriting::Derivation;
using rewriting::Exactness;
using rewriting::Rule;
using testing::InstanceRow;
using testing::InstanceText;

constexpr std::uint32_t kInstances = 300;

std::vector<InstanceRow> all_rows() {
  std::vector<InstanceRow> rows;
  for (const auto* part : {&testing::instances::moves(), &testing::instances::dots(),
                           &testing::instances::sums(), &testing::instances::macros()})
    rows.insert(rows.end(), part->begin(), part->end());
  return rows;
}

class SubstituteRules : public ::testing::TestWithParam<std::string_view> {
 protected:
  static const InstanceRow& row() {
    static const std::vector<InstanceRow> rows = all_rows();
    const auto found = std::ranges::find(rows, GetParam(), &InstanceRow::rule);
    if (found == rows.end()) throw std::logic_error("no instances");
    return *found;
  }
  static const Rule& rule() { return rewriting::rule_named(GetParam()); }
  static bool has_halves(const Graph& graph) {
    return std::ranges::any_of(graph.entry_computation().nodes, [](const Node& n) {
      return n.shape.dtype == DType::kF16 || n.shape.dtype == DType::kBF16;
    });
  }
  static bool has_dot(const Graph& graph) {
    return std::ranges::any_of(graph.entry_computation().nodes,
                               [](const Node& n) { return n.op == Op::kDot; });
  }
};

TEST_P(SubstituteRules, AreTrue) {
  for (std::uint32_t seed = 0; seed < kInstances && !HasFailure(); ++seed) {
    InstanceText text(seed);
    const std::string place = row().holds(text);
    const std::string module = text.module();
    SCOPED_TRACE(fmt::format("seed {} at {}\n{}", seed, place, testing::entry_of(module)));
    const Graph model = parse_hlo(module, "instance.hlo");
    Derivation derivation(model);
    ASSERT_TRUE(derivation.apply(rule(), "main", place));
    const Graph& rewritten = derivation.result().graph;
    validate(rewritten);
    testing::expect_consistent(derivation.result());
    if (rule().exactness == Exactness::kMoves) {
      // Products of whole numbers are exact in whatever order they are added up.
      const auto inputs =
          has_dot(model) ? testing::whole_inputs(model, seed) : testing::special_inputs(model, seed);
      EXPECT_EQ(testing::difference(evaluate(rewritten, inputs), evaluate(model, inputs)), "");
      continue;
    }
    // What rounds to 16 bits elsewhere shows where a sum cancels: those types are asked about sums that do
    // not.
    const std::vector<Literal> inputs = testing::tame_inputs(model, seed, !has_halves(model));
    const CheckResult rounded = Judge(model, inputs).check(evaluate(rewritten, inputs));
    EXPECT_TRUE(rounded.ok) << "in its types: " << rounded.message;
    const Graph wide = testing::with_wide_floats(model),
                wide_rewritten = testing::with_wide_floats(rewritten);
    const std::vector<Literal> wide_inputs = testing::tame_inputs(wide, seed);
    EXPECT_LE(testing::largest_error(evaluate(wide_rewritten, wide_inputs), evaluate(wide, wide_inputs)),
              1e-10);
  }
}

TEST_P(SubstituteRules, RefuseWherePreconditionsFail) {
  for (std::uint32_t seed = 0; seed < 60; ++seed)
    for (const auto& nearly : row().nearly) {
      InstanceText text(seed);
      const std::string place = nearly(text);
      const std::string module = text.module();
      const Graph model = parse_hlo(module, "instance.hlo");
      Derivation derivation(model);
      EXPECT_FALSE(derivation.apply(rule(), "main", place))
          << "seed " << seed << " at " << place << "\n"
          << testing::entry_of(module) << "became\n"
          << testing::entry_of(to_text(derivation.result().graph));
      if (HasFailure()) return;
    }
}

/// The rule is applied exactly where the reference says that the constant changes nothing.
TEST(SubstituteNeutral, IsWhatLeavesEveryIntegerAsItIs) {
  for (const DType type : {DType::kS4, DType::kU4, DType::kS8, DType::kU8, DType::kS16, DType::kU16,
                           DType::kS32, DType::kU32, DType::kS64, DType::kU64}) {
    if (!is_executable(type)) continue;
    Literal values = Literal::zeros(Shape::array(type, {12}));
    for (const bool largest : {false, true})
      for (const std::int64_t by : {0, 1, 2})
        values.set_int(largest ? 3 + by : by, extreme(type, largest).get_int(0) + (largest ? -by : by));
    for (const std::int64_t value : {-2, -1, 0, 1, 2, 5})
      values.set_int(value < 2 ? 8 + value : 9 + value / 2, value);
    for (const char* op : {"add", "subtract", "multiply", "divide", "maximum", "minimum", "and", "or", "xor"})
      for (std::int64_t i = 0; i < 12; ++i) {
        Graph model =
            parse_hlo(fmt::format("HloModule m\nENTRY main {{\n  x = {0}[12] parameter(0)\n"
                                  "  c = {0}[] constant(1)\n  b = {0}[12] broadcast(c), dimensions={{}}\n"
                                  "  ROOT y = {0}[12] {1}(x, b)\n}}",
                                  name(type), op),
                      "neutral.hlo");
        Literal constant = Literal::zeros(Shape::array(type, {}));
        constant.set_int(0, values.get_int(i));
        Computation& entry = model.computations[static_cast<std::size_t>(model.entry)];
        entry.nodes[static_cast<std::size_t>(entry.find("c"))].attrs.literal =
            std::make_shared<const Literal>(constant);
        Derivation derivation(model);
        EXPECT_EQ(derivation.apply(rewriting::rule_named("neutral"), "main", "y"),
                  evaluate(model, std::vector{values}).at(0).bytes == values.bytes)
            << op << " of " << name(type) << " and " << values.get_int(i);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, SubstituteRules, ::testing::ValuesIn([] {
                           std::vector<std::string_view> names;
                           for (const Rule& rule : rewriting::rules()) names.push_back(rule.name);
                           return names;
                         }()),
                         [](const auto& info) {
                           std::string name(info.param);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace TEST_FILE
}  // namespace stitchwork
