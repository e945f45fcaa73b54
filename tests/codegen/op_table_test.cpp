// Every element-wise op of the table, for every dtype it takes: generated code against the evaluator. One
// kernel a dtype holds them all.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {

constexpr int kElements = 197;

const std::vector<DType> kDTypes = {DType::kPred, DType::kS8,  DType::kS16, DType::kS32, DType::kS64,
                                    DType::kU8,   DType::kU16, DType::kU32, DType::kU64, DType::kF16,
                                    DType::kBF16, DType::kF32, DType::kF64};

bool takes(const OpDef& row, DType dtype) {
  switch (row.domain) {
    case Domain::kAny:
    case Domain::kOrdered:
      return true;
    case Domain::kNumeric:
      return dtype != DType::kPred || row.op == Op::kAdd || row.op == Op::kMultiply;
    case Domain::kSigned:
      return is_floating(dtype) || is_signed_integer(dtype);
    case Domain::kFloat:
    case Domain::kReal:
      return is_floating(dtype);
    case Domain::kIntegral:
      return is_integral(dtype);
    case Domain::kBits:
      return is_integral(dtype) || dtype == DType::kPred;
  }
  return false;
}

/// HLO with every op of `dtype` as a result of its own.
class ModuleText {
 public:
  explicit ModuleText(DType dtype) : dtype_(dtype) {
    const std::string type = shape(dtype);
    body_ = fmt::format(
        "  a = {0} parameter(0)\n  b = {0} parameter(1)\n  c = {0} parameter(2)\n  p = {1} parameter(3)\n",
        type, shape(DType::kPred));
    for (const OpDef& row : op_table())
      if (is_elementwise(row.op) && row.execution == Execution::kGenerated) add(row);
  }

  std::string text() const {
    return fmt::format("HloModule ops\nENTRY main {{\n{}  ROOT all = ({}) tuple({})\n}}\n", body_, types_,
                       names_);
  }
  const std::vector<std::string>& results() const { return results_; }

 private:
  static std::string shape(DType dtype) { return fmt::format("{}[{}]", name(dtype), kElements); }

  void result(DType dtype, const std::string& expression) {
    const std::string id = fmt::format("r{}", results_.size());
    body_ += fmt::format("  {} = {} {}\n", id, shape(dtype), expression);
    types_ += (types_.empty() ? "" : ", ") + shape(dtype);
    names_ += (names_.empty() ? "" : ", ") + id;
    results_.push_back(id);
  }

  void add(const OpDef& row) {
    if (row.op == Op::kConvert || row.op == Op::kBitcastConvert) {
      for (DType to : kDTypes)
        if (to != dtype_ && (row.op == Op::kConvert || (byte_size(to) == byte_size(dtype_) &&
                                                        to != DType::kPred && dtype_ != DType::kPred)))
          result(to, fmt::format("{}(a)", row.name));
      return;
    }
    if (!takes(row, dtype_)) return;
    if (row.op == Op::kCompare) {
      for (const char* direction : {"EQ", "NE", "LT", "LE", "GT", "GE"})
        result(DType::kPred, fmt::format("compare(a, b), direction={}", direction));
      return;
    }
    if (row.op == Op::kReducePrecision) {
      result(dtype_, "reduce-precision(a), exponent_bits=5, mantissa_bits=3");
    } else if (row.op == Op::kSelect) {
      result(dtype_, "select(p, a, b)");
    } else if (row.op == Op::kIsFinite) {
      result(DType::kPred, "is-finite(a)");
    } else if (row.max_operands == 1) {
      result(dtype_, fmt::format("{}(a)", row.name));
    } else if (row.max_operands == 2) {
      result(dtype_, fmt::format("{}(a, b)", row.name));
    } else {
      result(dtype_, fmt::format("{}(a, b, c)", row.name));
    }
  }

  DType dtype_;
  std::string body_, types_, names_;
  std::vector<std::string> results_;
};

/// Ordinary values, and in front the special ones: zeros, ones, infinities, NaN, the integers' limits.
Literal values(DType dtype, int seed) {
  Literal literal = Literal::zeros(Shape::array(dtype, {kElements}));
  std::uint64_t state = 88172645463325252ull + static_cast<std::uint64_t>(seed);
  const auto next = [&state] {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  };
  for (int i = 0; i < kElements; ++i) {
    if (is_floating(dtype)) {
      const double unit = static_cast<double>(next() >> 11) * 0x1p-53;
      literal.set_double(i, (unit - 0.5) * (i % 3 == 0 ? 40 : 3));
    } else {
      const std::int64_t small = static_cast<std::int64_t>(next() % 19) - (is_signed_integer(dtype) ? 9 : 0);
      literal.set_int(
          i, dtype == DType::kPred ? small & 1 : (i % 2 == 0 ? small : static_cast<std::int64_t>(next())));
    }
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> special = {0,   -0.0,      1,          -1,           0.5, -0.5, 1.5,
                                       2.5, kInfinity, -kInfinity, std::nan(""), 80,  -80};
  if (is_floating(dtype))
    for (std::size_t i = 0; i < special.size(); ++i) {
      const auto offset = static_cast<std::size_t>(seed);
      const double value = special[(i * (offset * 4 + 1) + offset) % special.size()];
      literal.set_double(static_cast<std::int64_t>(i), value);
    }
  else if (dtype != DType::kPred)
    for (int i = 0; i < 4; ++i) {
      const int bits = byte_size(dtype) * 8;
      const std::int64_t lowest = is_signed_integer(dtype) ? -(std::int64_t{1} << (bits - 2)) * 2 : 0;
      literal.set_int(i, seed == 0 ? lowest : (i % 2 == 0 ? -1 : 0));
      literal.set_int(i + 4, seed == 1 ? lowest : i);
    }
  return literal;
}

class OpTable : public ::testing::TestWithParam<DType> {};

TEST_P(OpTable, GeneratedCodeAgreesWithTheEvaluator) {
  SKIP_WITHOUT_COMPILER();
  const ModuleText module(GetParam());
  const Graph graph = parse_hlo(module.text(), "ops.hlo");
  const testing::MappingFields mapping =
      testing::mapping_of(testing::MappingKind::kElementwise, kElements, 1, 64);
  const FusionPlan plan = testing::plan_of(graph, testing::one_group(graph, module.results(), mapping, 64));
  testing::expect_correct(
      graph, plan,
      {values(GetParam(), 0), values(GetParam(), 1), values(GetParam(), 2), values(DType::kPred, 3)});
}

INSTANTIATE_TEST_SUITE_P(Every, OpTable, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace TEST_FILE
}  // namespace stitchwork
