// Helpers of the simulator's tests: fixtures, buffers, one-instruction kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
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

}  // namespace stitchwork::sim
