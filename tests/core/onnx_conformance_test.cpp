// Every node test of the ONNX project: what the reader makes of it, evaluated, is right or refused by name.
#include <gtest/gtest.h>

#include <map>

#include "core/hlo/hlo_text.h"
#include "tests/support/onnx_cases.h"

namespace stitchwork {
namespace TEST_FILE {

struct Row {
  int passed = 0, with_fixed_inputs = 0;
  std::map<std::string, int> refused;  ///< by reason
  std::vector<std::string> wrong;
};

/// The reason without what differs between the cases: the file and node in front of it.
std::string reason(const Error& error) {
  const std::string& message = error.message();
  const auto at = message.rfind("): ");
  return at == std::string::npos || !message.starts_with("node '") ? message : message.substr(at + 3);
}

void run_case(const OnnxCase& test, Row& row) {
  std::vector<Literal> actual;
  OnnxCaseGraph read;
  try {
    read = read_onnx_case(test);
    actual = evaluate(read.graph, read.inputs);
  } catch (const Error& error) {
    ++row.refused[reason(error)];
    return;
  }
  // ONNX's outputs of DFT are those of a transform in single precision: bins that are 0 hold up to 2e-7 of
  // its rounding there, beside bins of 10 and more.
  const double atol = test.operators == "DFT" ? 1e-6 : 1e-7;
  const std::string difference = onnx_difference(actual, read.outputs, atol);
  if (!difference.empty()) {
    row.wrong.push_back(test.path.substr(test.path.rfind('/') + 1) + ": " + difference);
    return;
  }
  ++row.passed;
  if (!read.fixed.empty()) ++row.with_fixed_inputs;
}

TEST(OnnxConformance, EveryNodeTestIsRightOrRefused) {
  const std::string folder = onnx_cases_folder();
  if (folder.empty()) GTEST_SKIP() << "the ONNX node tests are not here (docs/onnx.md)";
  std::map<std::string, Row> rows;
  const std::vector<std::string> names = onnx_case_names(folder);
  for (const std::string& name : names) {
    const OnnxCase test(folder, name);
    run_case(test, rows[test.operators]);
  }
  int passed = 0, fixed = 0, refused = 0, wrong = 0;
  for (const auto& [op, row] : rows) {
    int op_refused = 0;
    for (const auto& [reason, count] : row.refused) op_refused += count;
    fmt::print("{:40} passed {:3}", op, row.passed);
    if (row.with_fixed_inputs > 0) fmt::print(" (of which {} with inputs fixed)", row.with_fixed_inputs);
    for (const auto& [why, count] : row.refused) fmt::print(", refused {}: {}", count, why);
    fmt::print("{}\n", row.wrong.empty() ? "" : fmt::format(", WRONG {}", row.wrong.size()));
    for (const std::string& what : row.wrong) ADD_FAILURE() << what;
    passed += row.passed;
    fixed += row.with_fixed_inputs;
    refused += op_refused;
    wrong += static_cast<int>(row.wrong.size());
  }
  fmt::print("{} cases: {} passed ({} with inputs fixed), {} refused, {} wrong\n", names.size(), passed,
             fixed, refused, wrong);
  if (std::getenv("STITCHWORK_ONNX_CASES") == nullptr) {
    EXPECT_GE(passed, 1255);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
