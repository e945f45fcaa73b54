// A small kernel run under sanitizers, and what they say of it.
#pragma once

#include <string>
#include <vector>

#include "tests/simulator/sim_support.h"

namespace stitchwork::sim::sanitizing {

inline constexpr Sanitizers kRace{.race = true, .init = false};
inline constexpr Sanitizers kInit{.race = false, .init = true};

struct Sanitized {
  LaunchResult result;
  std::vector<std::uint32_t> out;

  /// "kind: message", or "" for a clean run.
  std::string text() const {
    if (result.findings.empty()) return "";
    return std::string(name(result.findings[0].kind)) + ": " + result.findings[0].message;
  }
};

/// Runs the body of a kernel k(in, out): %d1 holds in, %d2 out, %r1 tid, %r2 ctaid, %d3 4 * tid; 4096 bytes
/// of `in` are zero, `out` is not written.
inline Sanitized sanitized(Sanitizers what, const std::string& body, std::uint32_t grid, std::uint32_t block,
                           const std::string& target = "sm_75", int host_threads = 0) {
  std::string text = wrap_ptx(
      "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
      "mul.wide.u32 %d3, %r1, 4;\n" +
      body + "\nret;");
  text.replace(text.find("sm_75"), 5, target);
  const ptx::Module module = ptx::parse(text, "t.ptx");
  DeviceMemory memory(true);
  const DeviceAddress in = upload(memory, std::vector<std::uint32_t>(1024), "in");
  const DeviceAddress out = memory.allocate(4096, "out");
  Launch launch{.kernel = "k", .grid = {grid, 1, 1}, .block = {block, 1, 1}};
  launch.arguments = {Argument::pointer(in), Argument::pointer(out)};
  Options options;
  options.sanitize = what;
  options.host_threads = host_threads;
  Sanitized s{run(module, launch, memory, device("v100"), options), {}};
  s.out = download<std::uint32_t>(memory, out, 1024);
  return s;
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("no " + from);
  return text.replace(at, from.size(), to);
}

}  // namespace stitchwork::sim::sanitizing
