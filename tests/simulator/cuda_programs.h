// CUDA C++ programs (tests/simulator/cuda) as nvcc and clang compile them.
#pragma once

#include "tests/simulator/cuda_sources.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim::cuda_programs {

enum class Compiler { kNvcc75, kNvcc90, kNvcc120, kClang75 };

class CudaProgram : public ::testing::TestWithParam<Compiler> {
 protected:
  void SetUp() override {
    const char* program = GetParam() == Compiler::kClang75 ? "clang" : "nvcc";
    if (!on_path(program)) GTEST_SKIP() << program << " is not installed";
  }

  static ptx::Module compile(const std::string& name) { return compile(name, GetParam(), ""); }
  static ptx::Module compile(const std::string& name, Compiler compiler, const std::string& options) {
    std::string command;
    if (compiler == Compiler::kClang75)
      command =
          "clang -x cuda --cuda-device-only -nocudainc -nocudalib -std=c++17 -O3 -fms-extensions "
          "-Wno-everything -Xclang -target-feature -Xclang +ptx63 --cuda-gpu-arch=sm_75 -S";
    else
      command = fmt::format("nvcc -ptx -lineinfo -arch=sm_{}", compiler == Compiler::kNvcc75   ? 75
                                                               : compiler == Compiler::kNvcc90 ? 90
                                                                                               : 120);
    return compiled(name, command + " " + options);
  }

  /// Without sanitizers and with all of them: the counters must be the same.
  template <class Launch_>
  Counters run_clean(const ptx::Module& module, const std::string& kernel, Launch_ make) {
    Counters plain;
    for (const bool sanitized : {false, true}) {
      memory = DeviceMemory(true);
      Launch launch = make();
      launch.kernel = kernel;
      Options options;
      options.sanitize = {.race = sanitized, .init = sanitized};
      const LaunchResult r = run(module, launch, memory, device(target), options);
      EXPECT_TRUE(r.findings.empty()) << (r.findings.empty() ? "" : r.findings[0].message);
      if (sanitized)
        EXPECT_EQ(counter_list(r.counters), counter_list(plain));
      else
        plain = r.counters;
    }
    return plain;
  }
  template <class T>
  Argument give(const std::vector<T>& data, const char* name, DeviceAddress* address = nullptr) {
    const DeviceAddress a = upload(memory, data, name);
    if (address != nullptr) *address = a;
    return Argument::pointer(a);
  }
  Argument room(std::size_t bytes, const char* name, DeviceAddress* address) {
    *address = memory.allocate(bytes, name);
    return Argument::pointer(*address);
  }

  DeviceMemory memory;
  std::string target = "v100";
};
/// Programs that need sm_90.
class CudaProgram90 : public CudaProgram {
 protected:
  void SetUp() override {
    CudaProgram::SetUp();
    target = "h100";
  }
};

inline std::vector<int> scrambled(int n, int range) {
  std::vector<int> x(static_cast<std::size_t>(n));
  std::uint32_t state = 12345;
  for (int& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<int>((state >> 8) % static_cast<std::uint32_t>(range));
  }
  return x;
}

}  // namespace stitchwork::sim::cuda_programs
