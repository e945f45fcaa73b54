// Helpers of the simulator's tests: fixtures, buffers, one-instruction kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "simulator/simulator.h"

namespace stitchwork::sim {

inline std::string fixture_text(const std::string& name) {
  const std::string path = std::string(STITCHWORK_SOURCE_DIR "/tests/simulator/ptx/") + name;
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}
inline ptx::Module fixture(const std::string& name) { return ptx::parse(fixture_text(name), name); }

template <class T>
DeviceAddress upload(DeviceMemory& memory, const std::vector<T>& data, std::string name) {
  const DeviceAddress a = memory.allocate(data.size() * sizeof(T), std::move(name));
  memory.write(a, std::as_bytes(std::span(data)));
  return a;
}
template <class T>
std::vector<T> download(const DeviceMemory& memory, DeviceAddress address, std::size_t count) {
  std::vector<T> data(count);
  memory.read(address, std::as_writable_bytes(std::span(data)));
  return data;
}

/// A module of one kernel `k(u64 in, u64 out)` with registers of every kind.
inline std::string wrap_ptx(const std::string& body) {
  return ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 "
         "out)\n{\n"
         ".reg .pred %p<16>;\n.reg .b16 %h<16>;\n.reg .b32 %r<32>;\n.reg .f32 %f<16>;\n.reg .b64 %d<32>;\n"
         ".reg .f64 %e<16>;\n" +
         body + "\n}\n";
}

/// What a launch of k(in, out) came to, and the words of `out` behind it.
struct Outcome {
  LaunchResult result;
  std::vector<std::uint32_t> out;
  /// "race: ..." of the first finding; "" without one.
  std::string text() const {
    if (result.findings.empty()) return "";
    return std::string(name(result.findings[0].kind)) + ": " + result.findings[0].message;
  }
};

/// The module's kernel k with `read` words 1, 2, 3, ... in `in`; the `written` words of `out` are zero, or
/// not initialised.
inline Outcome run_on_numbers(const ptx::Module& module, Launch launch, const Options& options,
                              const std::string& device_id, std::size_t read, std::size_t written,
                              bool zeros = true) {
  DeviceMemory memory(true);
  std::vector<std::uint32_t> numbers(read);
  std::iota(numbers.begin(), numbers.end(), 1u);
  const DeviceAddress in = upload(memory, numbers, "in");
  const DeviceAddress out = zeros ? upload(memory, std::vector<std::uint32_t>(written), "out")
                                  : memory.allocate(written * sizeof(std::uint32_t), "out");
  launch.arguments = {Argument::pointer(in), Argument::pointer(out)};
  Outcome outcome{run(module, launch, memory, device(device_id), options), {}};
  outcome.out = download<std::uint32_t>(memory, out, written);
  return outcome;
}

}  // namespace stitchwork::sim
