// A folder with a module of two kernels, and a script that launches one of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "runtime/program/run_script.h"

namespace stitchwork::ptx_programs {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// y[i] = a * x[i] + s.b, of a launch of as many threads as elements; s = {pointer x, f32 b} by value.
/// `count` counts launches in a variable of the module and stores the number.
inline constexpr const char* kKernels = R"(.version 8.0
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

}  // namespace stitchwork::ptx_programs
