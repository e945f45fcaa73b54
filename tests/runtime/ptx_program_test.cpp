// Programs of PTX: what their steps do.
#include <cmath>

#include "core/hlo/npy.h"
#include "tests/runtime/ptx_programs.h"

namespace stitchwork {
namespace TEST_FILE {

using namespace ptx_programs;

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
  EXPECT_EQ(said([](json& m) { m["pixels_per_column"] = 4; }),
            place +
                ": has both box and pixel_box_lower_corner, pixel_box_upper_corner, channels_per_pixel or "
                "pixels_per_column");
  const auto columns = [](const std::function<void(json&)>& edit) {
    return [edit](json& m) {
      m.erase("box");
      m.update({{"dims", {8, 4, 1}},
                {"strides", {32, 128}},
                {"channels_per_pixel", 8},
                {"pixels_per_column", 4},
                {"pixel_box_lower_corner", {-1}},
                {"pixel_box_upper_corner", {-1}}});
      edit(m);
    };
  };
  EXPECT_EQ(said(columns([](json&) {})), "not refused");
  EXPECT_EQ(said(columns([](json& m) { m.erase("channels_per_pixel"); })),
            place + ": 'channels_per_pixel' is missing");
  EXPECT_EQ(said(columns([](json& m) { m["pixels_per_column"] = 1025; })),
            place + ": 1025 pixels a column: 1 to 1024 are possible");
  EXPECT_EQ(said(columns([](json& m) {
              m["pixel_box_lower_corner"] = {-1, 0};
            })),
            place + ".pixel_box_lower_corner: has more than 1 numbers");
  EXPECT_EQ(said(columns([](json& m) {
              m["dims"] = {8, 4};
              m["strides"] = {32};
            })),
            place + ".dims: columns of pixels (im2col) are of 3 to 5 dimensions");
}

/// What a corner that passes over rows of an image sees, as a column of pixels.
TEST_F(PtxProgram, TensorMapsMayBeOfColumnsOfPixels) {
  std::string text = kTensorKernel;
  const std::string tile = "tensor.2d.shared::cta.global.mbarrier", place = "[%rd1, {%r1, 1}], [%r2];";
  text.replace(text.find(tile), tile.size(), "tensor.4d.shared::cta.global.im2col.mbarrier");
  text.replace(text.find(place), place.size(), "[%rd1, {0, 2, 0, 0}], [%r2], {1, 0};");
  std::ofstream(folder_ / "k.ptx") << text;
  json p = base();
  const json from = {{"buffer", "x"},
                     {"dims", {8, 5, 3, 2}},
                     {"channels_per_pixel", 8},
                     {"pixels_per_column", 4},
                     {"pixel_box_lower_corner", {-1, -1}},
                     {"pixel_box_upper_corner", {-1, -1}}};
  const json to = {{"buffer", "y"}, {"type", "f32"}, {"dims", {8, 4}}, {"box", {8, 4}}};
  p["buffers"]["maps"] = {{"tensor_maps", {from, to}}};
  p["buffers"]["y"]["fill"] = {{"constant", 5}};
  p["steps"] = json::array({{{"kernel", "box"},
                             {"grid", 1},
                             {"block", 1},
                             {"arguments", {{{"struct", {{{"tensor_map", from}}, "i32:12"}}}, "maps"}}}});
  Script script = read(p);
  const ScriptResult result = run_script(script, device("h100"), {.sanitize = {.race = true, .init = true}});
  ASSERT_TRUE(result.ok()) << result.program.findings[0].message;
  const float* x = buffer(p, result, "x").data<float>();
  const float* y = buffer(p, result, "y").data<float>();
  const int pixels[][2] = {{0, 3}, {0, 4}, {1, 0}, {1, 1}};  // rows and columns
  for (int k = 0; k < 32; ++k) ASSERT_EQ(y[k], x[(pixels[k / 8][0] * 5 + pixels[k / 8][1]) * 8 + k % 8]) << k;
}

}  // namespace TEST_FILE
}  // namespace stitchwork
