// Every kind of bad text: where it is, what is wrong, what to do.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

/// The message of reading `text`, "" if it is read.
std::string message(const std::string& text) {
  try {
    parse_hlo(text, "bad.hlo");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// `lines` inside an entry computation; its first line is line 3.
std::string entry_message(const std::string& lines) {
  return message("HloModule m\nENTRY e {\n" + lines + "\n}\n");
}

struct Bad {
  const char* claim;
  const char* lines;
  const char* expected;
};

class HloErrors : public ::testing::TestWithParam<Bad> {};

TEST_P(HloErrors, AreNamedWithPositionAndHint) {
  EXPECT_EQ(entry_message(GetParam().lines), GetParam().expected);
}

const Bad kBad[] = {
    {"UnknownOp", "x = f32[2] parameter(0)\ny = f32[2] exponentail(x)",
     "bad.hlo:4:12: unknown op 'exponentail'; did you mean exponential?"},
    {"UnknownOpLikeNone", "x = f32[2] frobnicate()",
     "bad.hlo:3:12: unknown op 'frobnicate'; docs/hlo.md lists the ops"},
    {"UnknownOperand", "input = f32[2] parameter(0)\ny = f32[2] negate(inptu)",
     "bad.hlo:4:19: unknown operand 'inptu'; did you mean input?"},
    {"OperandDefinedLater", "x = f32[2] negate(later)\nlater = f32[2] parameter(0)",
     "bad.hlo:3:19: unknown operand 'later'; an instruction must come before those that use it"},
    {"OperandItself", "x = f32[2] negate(x)",
     "bad.hlo:3:19: unknown operand 'x'; an instruction must come before those that use it"},
    {"ShapeMismatch", "x = f32[2] parameter(0)\ny = f32[3] negate(x)",
     "bad.hlo:4:12: 'y' is written f32[3], but negate gives f32[2]; correct the shape or the operands"},
    {"WrittenOperandShape", "x = f32[2] parameter(0)\ny = f32[2] negate(f32[3] x)",
     "bad.hlo:4:19: operand 'x' is written f32[3], it is f32[2]"},
    {"OperandCount", "x = f32[2] parameter(0)\ny = f32[2] add(x)",
     "bad.hlo:4:12: add has 1 operands, 2 needed"},
    {"DuplicateName", "x = f32[2] parameter(0)\nx = f32[2] parameter(1)",
     "bad.hlo:4:1: a second instruction 'x' in computation 'e'; the first is on line 3"},
    {"AttributeTwice", "x = f32[2] parameter(0)\ny = f32[2] reverse(x), dimensions={0}, dimensions={0}",
     "bad.hlo:4:40: a second attribute dimensions; remove one of them"},
    {"ListWithoutBraces", "x = f32[2] parameter(0)\ny = f32[2] reverse(x), dimensions=0",
     "bad.hlo:4:35: expected '{' before the numbers of dimensions, found '0'"},
    {"CharacterOfManyBytes", "x = f32[2] parameter(0)\ny = f32[2] negate(\xc3\xa9)",
     "bad.hlo:4:19: expected an operand, found '\xc3\xa9'"},
    {"ControlCharacter", "x = f32[2] parameter(0)\ny = f32[2] negate(\x01)",
     "bad.hlo:4:19: expected an operand, found '?'"},
    {"NumberOfBatchNorm",
     "x = f32[2,3] parameter(0)\ny = f32[3] parameter(1)\n"
     "b = f32[2,3] batch-norm-inference(x, y, y, y, y), epsilon=abc, feature_index=1",
     "bad.hlo:5:14: 'abc' is not a number in 'epsilon=abc'"},
    {"LackOfBatchNorm",
     "x = f32[2,3] parameter(0)\ny = f32[3] parameter(1)\n"
     "b = f32[2,3] batch-norm-inference(x, y, y, y, y), epsilon=1",
     "bad.hlo:5:14: batch-norm-inference lacks feature_index="},
    {"DimensionSizeOfNone", "x = f32[2] parameter(0)\ny = s32[] get-dimension-size(x)",
     "bad.hlo:4:11: get-dimension-size lacks dimensions="},
    {"SecondRoot", "ROOT x = f32[2] parameter(0)\nROOT y = f32[2] negate(x)",
     "bad.hlo:4:6: a second ROOT, 'x' is the first"},
    {"UnknownType", "x = fp32[2] parameter(0)",
     "bad.hlo:3:5: unknown element type 'fp32'; did you mean f32?"},
    {"DynamicDimension", "x = f32[<=2] parameter(0)",
     "bad.hlo:3:9: dimensions of dynamic size are not supported; export the model with static shapes"},
    {"BadLayout", "x = f32[2,3]{0,0} parameter(0)",
     "bad.hlo:3:16: layout is no permutation of the 2 dimensions"},
    {"ShortLayout", "x = f32[2,3]{0} parameter(0)",
     "bad.hlo:3:13: layout names 1 dimensions, the array has 2"},
    {"ParameterTwice", "x = f32[2] parameter(0)\ny = f32[2] parameter(0)",
     "bad.hlo:4:12: parameter(0) is both 'x' and 'y'"},
    {"ParameterGap", "x = f32[2] parameter(1)\ny = f32[2] negate(x)",
     "bad.hlo:2:7: computation 'e' has no parameter(0); parameters are numbered from 0 without gaps"},
    {"MissingAttribute", "x = f32[2] parameter(0)\ny = pred[2] compare(x, x)",
     "bad.hlo:4:13: compare lacks direction="},
    {"BadDirection", "x = f32[2] parameter(0)\ny = pred[2] compare(x, x), direction=GTE",
     "bad.hlo:4:38: unknown direction 'GTE'; EQ, NE, LT, LE, GT or GE"},
    {"BadSlice", "x = f32[2] parameter(0)\ny = f32[2] slice(x), slice={[0-2]}",
     "bad.hlo:4:31: expected ':' in a range, found '-2'"},
    {"ComputationForTheWrongOp", "x = f32[2] parameter(0)\ny = f32[2] negate(x), to_apply=e",
     "bad.hlo:4:23: negate has no attribute to_apply; it names no computation"},
    {"UnknownComputation", "x = f32[2] parameter(0)\ny = f32[2] call(x), to_apply=f9",
     "bad.hlo:4:30: unknown computation 'f9'"},
    {"Recursion", "x = f32[2] parameter(0)\ny = f32[2] call(x), to_apply=e",
     "bad.hlo:2:7: computation 'e' calls itself; HLO has no recursion"},
    {"ConstantOfMoreThanTheText", "x = f32[1000000000,1000] constant({ {1} })",
     "bad.hlo:3:35: a constant of 1000000000000 values, and the text ends before as many; the file may be "
     "truncated"},
    {"ElidedConstantOfOneElement", "x = f32[1] constant({...})",
     "bad.hlo:3:21: the values of this constant were left out of the file; export it again with large "
     "constants "
     "printed (JAX: as_hlo_text(print_large_constants=True))"},
    {"ConstantTooShort", "x = f32[2,2] constant({ { 1, 2 }, { 3 } })",
     "bad.hlo:3:35: 1 values in dimension 1 of a constant of shape f32[2,2], expected 2"},
    {"ConstantTooLong", "x = f32[2] constant({1, 2, 3})",
     "bad.hlo:3:26: more than 2 values in dimension 0 of a constant of shape f32[2]"},
    {"ConstantTooDeep", "x = f32[2] constant({{1}, {2}})",
     "bad.hlo:3:22: constant has more levels of braces than f32[2] has dimensions"},
    {"ConstantOutOfRange", "x = s8[] constant(128)", "bad.hlo:3:19: '128' is no value of s8"},
    {"ConstantNotANumber", "x = f32[] constant(one)", "bad.hlo:3:20: 'one' is no value of f32"},
    {"OpenString", "x = f32[2] parameter(0), metadata={op_name=\"a}",
     "bad.hlo:3:44: string is never closed; add \" before the line ends"},
    {"OpenBrace", "x = f32[2] parameter(0), sharding={replicated",
     "bad.hlo:5:1: the text ends inside computation 'e'; the file is truncated: export it again"},
    {"MissingParenthesis", "x = f32[2] parameter 0", "bad.hlo:3:22: expected '(' after parameter, found '0'"},
    {"StrayText", "x = f32[2] parameter(0) sharding={replicated}",
     "bad.hlo:3:34: expected a shape, found '{'"},
};
INSTANTIATE_TEST_SUITE_P(Kinds, HloErrors, ::testing::ValuesIn(kBad),
                         [](const auto& info) { return std::string(info.param.claim); });

TEST(HloErrors, NotHloTextIsSaidSo) {
  EXPECT_EQ(message("\x08\x01"),
            "bad.hlo:1:1: not HLO text: it does not begin with HloModule; export HLO (JAX: "
            "lowered.compiler_ir('hlo').as_hlo_text(); XLA: --xla_dump_hlo_as_text)");
  EXPECT_EQ(
      message("module @jit_f {}"),
      "bad.hlo:1:1: this is MLIR, not HLO text; convert it (convert_stablehlo of "
      "python/stitchwork_capture.py, or "
      "xla-translate --mlir-hlo-to-hlo-text), or export HLO (JAX: lowered.compiler_ir('hlo').as_hlo_text())");
}

TEST(HloErrors, AModuleNeedsExactlyOneEntry) {
  const std::string f = " f { ROOT x = f32[2] parameter(0) }\n";
  EXPECT_EQ(
      message("HloModule m\n" + f),
      "bad.hlo:3:1: no computation is marked ENTRY; put ENTRY before the main computation; if the file is "
      "truncated, export it again");
  EXPECT_EQ(message("HloModule m\nENTRY" + f + "ENTRY g { ROOT x = f32[2] parameter(0) }"),
            "bad.hlo:3:1: a second ENTRY, 'f' is the first; mark one computation only");
  EXPECT_EQ(message("HloModule m\nENTRY" + f + f),
            "bad.hlo:3:2: a second computation 'f'; rename one of them");
}

TEST(HloErrors, AWrittenResultMustBeTheRoots) {
  EXPECT_EQ(message("HloModule m\nENTRY f (x: f32[2]) -> f32[3] { ROOT x = f32[2] parameter(0) }"),
            "bad.hlo:2:7: computation 'f' is written to give f32[3], its root gives f32[2]");
}

TEST(HloErrors, WrittenParametersMustBeThoseOfTheComputation) {
  EXPECT_EQ(message("HloModule m\nENTRY e (p: f32[7]) -> f32[3] { p = f32[3] parameter(0) }\n"),
            "bad.hlo:2:44: parameter(0) is f32[3], computation 'e' is written to take f32[7]");
  EXPECT_EQ(message("HloModule m\nENTRY e () -> f32[3] { p = f32[3] parameter(0) }\n"),
            "bad.hlo:2:7: computation 'e' is written with 0 parameters, it has 1");
}

TEST(HloErrors, EveryTruncationOfAModuleIsAnError) {
  const Graph graph = read_graph(STITCHWORK_SOURCE_DIR "/datasets/fig7.hlo");
  const std::string text = to_text(graph);
  // Without its last "}\n" the module is incomplete wherever it is cut.
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    ASSERT_NE(message(text.substr(0, size)), "") << size;
  }
  EXPECT_EQ(message(text), "");
}

TEST(HloErrors, AReducerOfTheWrongArityIsAnError) {
  EXPECT_EQ(message(R"(HloModule m
f { a = f32[] parameter(0)  ROOT b = f32[] negate(a) }
ENTRY e {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=f
})"),
            "bad.hlo:6:18: reduce applies 'f', which has 1 parameters, 2 are needed");
}

TEST(ReadGraph, NamesTheFileItCannotRead) {
  const auto read_message = [](const std::string& path) -> std::string {
    try {
      read_graph(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(read_message("/nowhere/a.hlo"),
            "/nowhere/a.hlo: no such file; give the path of a .hlo, .txt or .gz file");
  const std::string folder = ::testing::TempDir();
  EXPECT_NE(read_message(folder).find("this is a directory"), std::string::npos);

  const std::string path = folder + "/truncated.hlo.gz";
  // The first bytes of a gzip file, then nothing.
  std::ofstream(path, std::ios::binary)
      << std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\xcf", 12);
  EXPECT_NE(read_message(path).find("damaged gzip file"), std::string::npos) << read_message(path);
  std::filesystem::remove(path);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
