// The part of the prelude that a kernel gets.
#include <gmock/gmock.h>

#include <regex>

#include "codegen/kernel.h"
#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;

int lines(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

TEST(Prelude, HasWhatAKernelUsesAndWhatThatUses) {
  const std::string text =
      cuda_prelude("y[0] = sw_to_f16(powf(sw_row_reduce<SwAdd, 64, 128>(x, 0, w), 2.0f));");
  for (const char* used : {" sw_to_f16(", " powf(", "struct SwAdd", " sw_row_reduce(", " sw_warp_reduce(",
                           " sw_shuffle(", " sw_pow(", " exp(double", " sw_exp2i_double("})
    EXPECT_THAT(text, HasSubstr(used));
  for (const char* unused : {"SwMultiply", "sw_f16(", "sw_sine", "SwVector", "sw_grid_barrier", "SwInt"})
    EXPECT_THAT(text, Not(HasSubstr(unused)));
}

TEST(Prelude, KeepsOverloadsSpecialisationsAndWhatMacrosDefineTogether) {
  const std::string text = cuda_prelude("sw_max(a, b); sw_to_int<short>(c);");
  EXPECT_THAT(text, HasSubstr("double sw_max("));
  EXPECT_THAT(text, HasSubstr("float sw_max("));
  EXPECT_THAT(text, HasSubstr("template <class T> struct SwInt;"));
  EXPECT_THAT(text, HasSubstr("#define SW_INT("));
  EXPECT_THAT(text, HasSubstr("SW_INT(short, "));
}

TEST(Prelude, LeavesNoConditionalsWithNothingInThem) {
  const std::string text = cuda_prelude("x[0] = 1.0f;");
  EXPECT_LT(lines(text), 40);
  EXPECT_FALSE(std::regex_search(text, std::regex("#if[^\n]*\n(#else\n)?#endif")));
  const auto count = [&](const char* directive) {
    const std::regex found(directive);
    return std::distance(std::sregex_iterator(text.begin(), text.end(), found), std::sregex_iterator());
  };
  EXPECT_EQ(count("(^|\n)#if"), count("\n#endif"));
}

// That every op of the table compiles with what it is given is a test of the op table.
TEST(Prelude, IsShortBesideMostKernels) {
  const Graph graph = testing::graph_of(R"(HloModule m
ENTRY main {
  x = f32[300] parameter(0)
  ROOT y = f32[300] multiply(x, x)
}
)");
  const std::string text =
      to_cuda(graph, build_schedule(graph, make_plan(graph, device("v100"), "xla").kernels.at(0)), false);
  EXPECT_LT(lines(cuda_prelude(text)), 40);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
