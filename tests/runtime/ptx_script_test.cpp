// Scripts of PTX programs: what is refused, and how results are compared.
#include <cmath>

#include "tests/runtime/ptx_programs.h"

namespace stitchwork {
namespace TEST_FILE {

using namespace ptx_programs;

TEST_F(PtxProgram, BadScriptsAreRefusedWithTheirPlace) {
  const std::vector<std::pair<std::function<void(json&)>, std::vector<std::string>>> cases = {
      {[](json& p) { p["schema"] = "stitchwork.ptx-program/2"; }, {"p.json", "stitchwork.ptx-program/1"}},
      {[](json& p) { p["step"] = 1; }, {"unknown key 'step'"}},
      {[](json& p) { p["modules"][0] = "none.ptx"; }, {"modules[0]", "none.ptx"}},
      {[](json& p) { p["modules"].push_back("k.ptx"); },
       {"steps[0].kernel", "'scale' is in k.ptx and k.ptx"}},
      {[](json& p) { p["buffers"]["x"]["type"] = "f33"; }, {"buffers.x.type", "unknown type 'f33'"}},
      {[](json& p) { p["buffers"]["x"]["shape"] = {-1}; }, {"buffers.x.shape[0]"}},
      {[](json& p) {
         p["buffers"]["x"]["shape"] = {1 << 20, 1 << 20};
       },
       {"buffers.x", "64 GiB"}},
      {[](json& p) { p["buffers"]["1x"] = p["buffers"]["x"]; }, {"buffers.1x", "no name"}},
      {[](json& p) {
         p["buffers"]["x"]["fill"] = {{"values", {1, 2}}};
       },
       {"buffers.x.fill.values", "2 of the buffer's 256"}},
      {[](json& p) {
         p["buffers"]["x"]["fill"] = {{"seed", 1}, {"low", 3}, {"high", 3}};
       },
       {"buffers.x.fill", "low"}},
      {[](json& p) {
         p["buffers"]["x"] = {{"npy", "x.npy"}};
       },
       {"buffers.x.npy", "x.npy"}},
      {[](json& p) {
         p["buffers"]["y"]["expect"] = {{"npy", "y.npy"}};
       },
       {"buffers.y.expect.npy", "y.npy"}},
      {[](json& p) { p["steps"][0]["kernel"] = "scales"; }, {"steps[0].kernel", "'scales'", "scale, count"}},
      {[](json& p) { p["steps"][0]["module"] = "l.ptx"; }, {"steps[0].module", "l.ptx"}},
      {[](json& p) {
         p["steps"][0]["grid"] = {1, 2, 3, 4};
       },
       {"steps[0].grid", "one to three"}},
      {[](json& p) { p["steps"][0]["block"] = 0; }, {"steps[0].block", "0 is no size"}},
      {[](json& p) { p["steps"][0]["arguments"][1] = "yy"; }, {"steps[0].arguments[1]", "no buffer 'yy'"}},
      {[](json& p) { p["steps"][0]["arguments"][1] = "y+99999"; },
       {"steps[0].arguments[1]", "past the 2048 bytes of y"}},
      {[](json& p) { p["steps"][0]["arguments"][1] = "y+"; }, {"steps[0].arguments[1]", "no place"}},
      {[](json& p) { p["steps"][0]["arguments"][2] = "f32:two"; }, {"steps[0].arguments[2]", "f32:two"}},
      {[](json& p) { p["steps"][0]["arguments"][2] = "f64:2"; }, {"steps[0]", "argument 2 has 8 bytes", "4"}},
      {[](json& p) { p["steps"][0]["arguments"].push_back("i32:1"); },
       {"steps[0]", "takes 3 arguments, 4 are given"}},
      {[](json& p) { p["steps"][0]["arguments"][0]["bytes"] = 8; },
       {"steps[0].arguments[0].bytes", "16 bytes"}},
      {[](json& p) {
         p["steps"][0] = {{"memset", "y"}, {"bytes", 2049}};
       },
       {"steps[0].bytes", "2048"}},
      {[](json& p) {
         p["steps"][0] = {{"memset", "y"}, {"value", 256}};
       },
       {"steps[0].value"}},
      {[](json& p) {
         p["steps"][0] = {{"copy", "y"}, {"from", "y+4"}, {"bytes", 8}};
       },
       {"steps[0]", "overlap"}},
      {[](json& p) {
         p["steps"][0] = {{"sync", true}};
       },
       {"steps[0]", "one of kernel, memset, copy and call"}},
      {[](json& p) {
         p["steps"][0] = {{"call", "blas"}, {"operands", {}}, {"results", {}}};
       },
       {"steps[0]", "nobody here knows what blas computes"}},
      {[](json& p) {
         p["steps"][0] = {
             {"call", "blas"}, {"computes", "HloModule m\nnonsense"}, {"operands", {}}, {"results", {}}};
       },
       {"steps[0].computes", "line 2"}},
      {[](json& p) { p["steps"] = json::array(); }, {"steps", "none"}},
      {[](json& p) { p["cache"] = "hot"; }, {"cache", "hot"}},
      {[](json& p) { p["sanitize"] = "races"; }, {"sanitize", "races"}},
  };
  for (const auto& [edit, wanted] : cases) {
    const std::string said = refusal(edit);
    for (const std::string& part : wanted) EXPECT_THAT(said, HasSubstr(part));
  }
  std::ofstream(path("p.json")) << "{\"schema\": \"stitchwork.ptx-program/1\",\n \"modules\" 1}";
  try {
    read_script(path("p.json"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.line(), 2);
  }
}

TEST(CompareArrays, ByTypeAndElement) {
  const auto vector = [](DType type, const std::vector<double>& values) {
    Literal l = Literal::zeros(Shape::array(type, {static_cast<std::int64_t>(values.size())}));
    for (std::size_t i = 0; i < values.size(); ++i) l.set_double(static_cast<std::int64_t>(i), values[i]);
    return l;
  };
  const double inf = INFINITY;
  const auto same = [&](DType type, double a, double r) {
    return compare_arrays(vector(type, {a, 8}), vector(type, {r, 8}), {}, {}).ok;
  };
  EXPECT_TRUE(same(DType::kF32, 1.0, 1.0001));  // 1e-5 of 8, and 1e-4 of itself
  EXPECT_FALSE(same(DType::kF32, 1.0, 1.001));
  EXPECT_TRUE(same(DType::kF16, 1.0, 1.01));
  EXPECT_FALSE(same(DType::kF64, 1.0, 1.0001));
  EXPECT_TRUE(same(DType::kF32, inf, inf));
  EXPECT_FALSE(same(DType::kF32, inf, -inf));
  EXPECT_FALSE(same(DType::kF32, 1.0, inf));
  EXPECT_TRUE(same(DType::kF32, NAN, NAN));
  EXPECT_FALSE(same(DType::kF32, NAN, 1.0));
  EXPECT_FALSE(same(DType::kS32, 1, 2));
  EXPECT_TRUE(compare_arrays(vector(DType::kS32, {1, 8}), vector(DType::kS32, {2, 8}), {}, 1.0).ok);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
