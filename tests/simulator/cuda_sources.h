// PTX of the CUDA C++ sources in tests/simulator/cuda, compiled once a build folder: every test is a process
// of its own, and a compiler takes longer than most of them.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "core/base/file.h"
#include "simulator/simulator.h"

namespace stitchwork::sim {

inline bool on_path(const std::string& program) {
  return std::system(("command -v " + program + " > /dev/null 2>&1").c_str()) == 0;
}

/// Of `tests/simulator/cuda/NAME.cu` by `command`, to which the files are added. Kept under a hash of command
/// and sources, so that another compiler wants another build folder. Throws where the compiler fails.
inline ptx::Module compiled(const std::string& name, const std::string& command) {
  namespace fs = std::filesystem;
  const fs::path sources = STITCHWORK_SOURCE_DIR "/tests/simulator/cuda";
  const std::string source = (sources / (name + ".cu")).string();
  const std::string hash = fmt::format(
      "{:016x}",
      std::hash<std::string>()(command + read_file(source) + read_file((sources / "prelude.h").string())));
  const fs::path folder = STITCHWORK_BINARY_DIR "/tests/cuda_ptx";
  fs::create_directories(folder);
  const fs::path kept = folder / fmt::format("{}-{}.ptx", name, hash);
  if (!fs::exists(kept)) {
    const fs::path made = folder / fmt::format("{}-{}-{}.ptx", name, hash, getpid());
    if (std::system(fmt::format("{} -o {} {}", command, made.string(), source).c_str()) != 0)
      throw std::runtime_error("cannot compile " + source);
    fs::rename(made, kept);  // another process may have put the same there
  }
  return ptx::parse(read_file(kept.string()), name + ".ptx");
}

}  // namespace stitchwork::sim
