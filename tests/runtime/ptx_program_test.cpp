// Programs of PTX: what scripts say, what their steps do, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/hlo/npy.h"
#include "runtime/program/run_script.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// y[i] = a * x[i] + s.b, of a launch of as many threads as elements; s = {pointer x, f32 b} by value.
/// `count` counts launches in a variable of the module and stores the number.
constexpr const char* kKernels = R"(.version 8.0
.target sm_70
.address_size 64
.global .u32 launches = 7;
.visible .entry scale(.param .align 8 .b8 s[16], .param .u64 y, .param .f32 a)
{
  .reg .b64 %rd<6>;
  .reg .f32 %f<5>;
  .reg .b32 %r<6>;
  ld.param.u64 %rd1, [s];
  ld.param.f32 %f1, [s+8];
  ld.param.u64 %rd2, [y];
  ld.param.f32 %f2, [a];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f3, [%rd4];
  fma.rn.f32 %f4, %f3, %f2, %f1;
  st.global.f32 [%rd5], %f4;
  ret;
}
.visible .entry count(.param .u64 out)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [out];
  mov.u64 %rd2, launches;
  atom.global.add.u32 %r1, [%rd2], 1;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

class PtxProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("ptx_program_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(folder_ / "k.ptx") << kKernels;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static json scale(const std::string& x, const std::string& y, const std::string& a, double b) {
    return {{"kernel", "scale"},
            {"grid", 8},
            {"block", {32, 1}},
            {"arguments", {{{"struct", {x, "f32:" + std::to_string(b)}}}, y, a}}};
  }
  static json base() {
    return {{"schema", "stitchwork.ptx-program/1"},
            {"modules", {"k.ptx"}},
            {"buffers",
             {{"x", {{"type", "f32"}, {"shape", {256}}, {"fill", {{"seed", 3}}}}},
              {"y", {{"type", "f32"}, {"shape", {16, 32}}}},
              {"n", {{"bytes", 16}}}}},
            {"steps", json::array({scale("x", "y", "f32:2", 1)})}};
  }

  Script read(const json& document) {
    std::ofstream(path("p.json")) << document.dump(1);
    return read_script(path("p.json"));
  }
  ScriptResult run(const json& document, const sim::Options& options = {}) {
    Script script = read(document);
    return run_script(script, device("v100"), options);
  }
  /// What is said of the document after `edit`.
  std::string refusal(const std::function<void(json&)>& edit) {
    json document = base();
    edit(document);
    try {
      run(document);
    } catch (const Error& error) {
      EXPECT_EQ(error.message().find('\n'), std::string::npos) << error.message();
      EXPECT_FALSE(error.hint().empty()) << error.what();
      return error.what();
    }
    return "not refused";
  }
  /// By name: buffers are in the order of their names.
  static const Literal& buffer(const json& document, const ScriptResult& result, const std::string& name) {
    std::size_t at = 0;
    for (const auto& [key, value] : document["buffers"].items()) {
      if (key == name) return result.program.buffers.at(at);
      ++at;
    }
    throw std::out_of_range(name);
  }

  fs::path folder_;
};

TEST_F(PtxProgram, StepsRunInOrderOnViewsOfBuffers) {
  json p = base();
  p["buffers"]["v"] = {{"type", "i32"}, {"shape", {4}}, {"fill", {{"values", {1, -2, 3, 4}}}}};
  p["buffers"]["w"] = {{"type", "i32"}, {"shape", {4}}};
  p["steps"] = json::array({{{"memset", "y"}, {"value", 0}},
                            scale("x", "y", "f32:2", 1),            // y[0..255]
                            scale("y", "y+1024", "f32:0.5", 0.25),  // y[256..511]
                            {{"memset", "w"}, {"value", 255}},
                            {{"copy", "w+4"}, {"from", "v+8"}}});
  const ScriptResult result = run(p);
  ASSERT_TRUE(result.ok());
  const float* x = buffer(p, result, "x").data<float>();
  const Literal& y = buffer(p, result, "y");
  EXPECT_EQ(y.shape, Shape::array(DType::kF32, {16, 32}));
  for (int i = 0; i < 256; ++i) {
    ASSERT_EQ(y.data<float>()[i], std::fma(x[i], 2.0f, 1.0f)) << i;
    ASSERT_EQ(y.data<float>()[256 + i], std::fma(y.data<float>()[i], 0.5f, 0.25f)) << i;
  }
  const std::int32_t* w = buffer(p, result, "w").data<std::int32_t>();
  EXPECT_THAT(std::vector<std::int32_t>(w, w + 4), ::testing::ElementsAre(-1, 3, 4, -1));
  ASSERT_EQ(result.program.steps.size(), 5u);
  double sum = 4 * device("v100").launch_gap_us;
  for (const sim::StepResult& step : result.program.steps) {
    EXPECT_GT(step.time_us, 0);
    sum += step.time_us;
  }
  EXPECT_DOUBLE_EQ(result.program.total_us, sum);
  EXPECT_EQ(result.program.steps[1].launch.counters.gst_bytes, 1024u);
}

TEST_F(PtxProgram, VariablesOfAModuleKeepTheirValues) {
  json p = base();
  p["steps"] = json::array();
  for (const char* to : {"n", "n+4", "n+8"})
    p["steps"].push_back({{"kernel", "count"}, {"grid", 1}, {"block", 1}, {"arguments", {to}}});
  const ScriptResult result = run(p);
  const auto* n = buffer(p, result, "n").data<std::uint32_t>();
  EXPECT_THAT(std::vector<std::uint32_t>(n, n + 3), ::testing::ElementsAre(7, 8, 9));
}

TEST_F(PtxProgram, AWarmCacheGoesFromKernelToKernel) {
  json p = base();
  p["steps"].push_back(p["steps"][0]);
  const ScriptResult cold = run(p);
  const ScriptResult warm = run(p, {.cache = sim::CacheMode::kWarm});
  const auto read = [](const ScriptResult& r, std::size_t step) {
    return r.program.steps[step].launch.counters.dram_read_transactions;
  };
  EXPECT_EQ(read(cold, 1), read(cold, 0));
  EXPECT_EQ(read(warm, 0), read(cold, 0));
  EXPECT_EQ(read(warm, 1), 0u);
}

TEST_F(PtxProgram, ReadingWhatNothingHasWrittenIsAFinding) {
  const sim::Options init{.sanitize = {.init = true}};
  json p = base();
  EXPECT_TRUE(run(p, init).ok());
  p["steps"].push_back({{"copy", "x"}, {"from", "y"}, {"bytes", 1024}});
  EXPECT_TRUE(run(p, init).ok());
  p["steps"][1]["from"] = "y+1024";  // the kernel wrote the first 1024 bytes
  const ScriptResult copied = run(p, init);
  ASSERT_EQ(copied.program.findings.size(), 1u);
  EXPECT_EQ(copied.program.findings[0].kind, sim::FindingKind::kUninitialisedRead);
  EXPECT_EQ(copied.program.steps.size(), 2u);
  p["steps"] = json::array({scale("y", "x", "f32:1", 0), {{"memset", "y"}}});
  const ScriptResult launched = run(p, init);
  ASSERT_EQ(launched.program.findings.size(), 1u);
  EXPECT_THAT(launched.program.findings[0].message, HasSubstr("y"));
  EXPECT_EQ(launched.program.steps.size(), 1u);  // it ended there
  std::swap(p["steps"][0], p["steps"][1]);
  EXPECT_TRUE(run(p, init).ok());
}

TEST_F(PtxProgram, ExpectationsAreHeld) {
  json p = base();
  Script script = read(p);
  const ScriptResult result = run_script(script, device("v100"), {});
  Literal wanted = buffer(p, result, "y");
  for (int i = 256; i < 512; ++i) wanted.set_double(i, 0);
  p["buffers"]["y"]["fill"] = "zero";
  write_npy(path("y.npy"), wanted);
  p["buffers"]["y"]["expect"] = {{"npy", "y.npy"}};
  EXPECT_TRUE(run(p).ok());
  wanted.set_double(17, wanted.get_double(17) + 0.5);
  wanted.set_double(300, NAN);
  write_npy(path("y.npy"), wanted);
  const ScriptResult wrong = run(p);
  EXPECT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.expected.at(0).wrong, 2);
  EXPECT_THAT(wrong.expected.at(0).message, HasSubstr("element 17"));
  EXPECT_NEAR(wrong.expected.at(0).max_abs_error, 0.5, 1e-6);
  p["buffers"]["y"]["expect"]["atol"] = 0.6;  // a NaN is still none of the zeros
  EXPECT_EQ(run(p).expected.at(0).wrong, 1);
}

TEST_F(PtxProgram, CallsComputeTheirText) {
  json p = base();
  p["buffers"] = {{"a", {{"type", "f32"}, {"shape", {2, 3}}, {"fill", {{"values", {1, 2, 3, 4, 5, 6}}}}}},
                  {"c", {{"type", "f32"}, {"shape", {8}}, {"fill", {{"constant", -1}}}}}};
  const std::string text =
      "HloModule call\nENTRY e {\n  a = f32[2,3] parameter(0)\n"
      "  ROOT d = f32[2,2] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n}\n";
  p["steps"] =
      json::array({{{"call", "gemm"}, {"computes", text}, {"operands", {"a"}}, {"results", {"c+8"}}}});
  const ScriptResult result = run(p);
  const float* c = buffer(p, result, "c").data<float>();
  EXPECT_THAT(std::vector<float>(c, c + 8), ::testing::ElementsAre(-1, -1, 14, 32, 32, 77, -1, -1));
  EXPECT_GT(result.program.steps[0].time_us, device("v100").launch_us);
}

TEST_F(PtxProgram, ScalarsOfAllTypesAndAnonymousBuffers) {
  json p = base();
  p["steps"] = json::array({{{"kernel", "scale"},
                             {"grid", 1},
                             {"block", 4},
                             {"arguments", {{{"struct", {"buf:f32:4:zero", "f32:3"}}}, "y", "f32:1"}}}});
  const ScriptResult result = run(p);
  EXPECT_EQ(buffer(p, result, "y").data<float>()[3], 3.0f);
  // u8, i16, f64 lie where C puts them: 0, 2, 8; 16 bytes in all, which the kernel takes for a pointer and b.
  p["steps"][0]["arguments"][0] = {{"struct", {"u8:5", "i16:-2", "f64:1.5"}}};
  const Script script = read(p);
  const auto& kernel = std::get<sim::KernelStep>(script.program.steps[0].what);
  const std::vector<std::byte>& bytes = kernel.arguments[0].bytes;
  ASSERT_EQ(bytes.size(), 16u);
  EXPECT_EQ(bytes[0], std::byte{5});
  EXPECT_EQ(bytes[2], std::byte{0xfe});
  EXPECT_EQ(bytes[15], std::byte{0x3f});
}

/// A box of a tensor goes from where the first map says to where the second says, which is behind a pointer.
constexpr const char* kTensorKernel = R"(.version 8.7
.target sm_90
.address_size 64
.visible .entry box(.param .align 64 .b8 s[192], .param .u64 to)
{
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  .shared .align 8 .b64 bar;
  .shared .align 256 .b8 data[128];
  mov.b64 %rd1, s;
  cvta.param.u64 %rd1, %rd1;
  ld.param.u32 %r1, [s+128];
  ld.param.u64 %rd2, [to];
  mov.u32 %r2, bar;
  mov.u32 %r3, data;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  fence.proxy.async;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
  cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r3], [%rd1, {%r1, 1}], [%r2];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
  @!%p1 bra WAIT;
  cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2+128, {0, 0}], [%r3];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;
}
)";

TEST_F(PtxProgram, TensorMapsAreArgumentsAndBuffers) {
  std::ofstream(folder_ / "k.ptx") << kTensorKernel;
  json p = base();
  const json from = {
      {"buffer", "x+64"}, {"dims", {16, 10}}, {"strides", {96}}, {"box", {8, 4}}, {"oob_fill", "nan"}};
  const json to = {{"buffer", "y"}, {"type", "f32"}, {"dims", {8, 4}}, {"box", {8, 4}}, {"swizzle", "32B"}};
  p["buffers"]["maps"] = {{"tensor_maps", {from, to}}};
  p["buffers"]["y"]["fill"] = "zero";
  p["steps"] = json::array({{{"kernel", "box"},
                             {"grid", 1},
                             {"block", 1},
                             {"arguments", {{{"struct", {{{"tensor_map", from}}, "i32:12"}}}, "maps"}}}});
  Script script = read(p);
  const ScriptResult result = run_script(script, device("h100"), {.sanitize = {.race = true, .init = true}});
  ASSERT_TRUE(result.ok()) << result.program.findings[0].message;
  const float* x = buffer(p, result, "x").data<float>();
  const float* y = buffer(p, result, "y").data<float>();
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 8; ++column) {
      // All of the box is an even line of 128 bytes, whose chunks stay.
      const float got = y[8 * row + column];
      const bool inside = column < 4;
      ASSERT_EQ(std::isnan(got), !inside) << row << " " << column;
      ASSERT_EQ(inside ? got : 0, inside ? x[16 + (row + 1) * 24 + 12 + column] : 0) << row << " " << column;
    }
  const auto said = [&](const std::function<void(json&)>& edit) {
    json wrong = p;
    edit(wrong["steps"][0]["arguments"][0]["struct"][0]["tensor_map"]);
    try {
      read(wrong);
    } catch (const Error& error) {
      EXPECT_FALSE(error.hint().empty());
      return error.message();
    }
    return std::string("not refused");
  };
  const std::string place = "steps[0].arguments[0].struct[0].tensor_map";
  EXPECT_EQ(said([](json& m) {
              m["dims"] = {16, 11};
            }),
            place + ": the tensor takes 1024 bytes: there are 960 from there on");
  EXPECT_EQ(said([](json& m) {
              m["box"] = {6, 4};
            }),
            place + ": a row of the box has 24 bytes, which is no multiple of 16");
  EXPECT_EQ(said([](json& m) { m["strides"] = {100}; }),
            place + ": the stride of dimension 1 is 100 bytes: multiples of 16 below 2^40 are possible");
  EXPECT_EQ(said([](json& m) { m["buffer"] = "x+4"; }),
            place + ": the tensor's address is no multiple of 16");
  EXPECT_EQ(said([](json& m) { m["interleave"] = "16B"; }),
            place + ".interleave: '16B' is no interleaved layout that is simulated");
  EXPECT_EQ(said([](json& m) {
              m["box"] = {8, 257};
            }),
            place + ": the box has 257 elements in dimension 1: 1 to 256 are possible");
  EXPECT_EQ(said([](json& m) {
              m["dims"] = {8, 4, 1, 1};
              m["strides"] = {32, 128, 128};
              m["box"] = {8, 256, 256, 1};
            }),
            place + ": the box has 2097152 bytes, more than any shared memory");
  EXPECT_EQ(said([](json& m) { m["type"] = "tf32"; }),
            place + ".type: no tensor map has elements of type 'tf32'");
  EXPECT_EQ(
      said([](json& m) { m["swizzle"] = "64B"; }),
      place + ": a row of the box has 32 bytes, fewer than the 64 of its swizzle, which is not simulated");
  EXPECT_EQ(said([](json& m) {
              m["element_strides"] = {1, 9};
            }),
            place + ": element stride 9 of dimension 1: 1 to 8 are possible");
  EXPECT_EQ(said([](json& m) { m["box"] = {8}; }), place + ".box: has 1 numbers, 2 are needed");
  EXPECT_EQ(said([](json& m) { m.erase("box"); }), place + ": 'box' is missing");
}

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
