// Profiles that other tools recorded, read into one form (docs/profiles.md): Nsight Systems' SQLite exports,
// Nsight Compute's CSV, the Chrome traces of JAX and PyTorch. All their numbers are imported ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stitchwork {

/// What the GPU did. Transfers are copies from and to the host or another GPU, which no program's plan has.
enum class ProfileKind : std::uint8_t { kKernel, kCopy, kMemset, kTransfer };
/// "kernel", "copy", "memset", "transfer"
std::string_view name(ProfileKind kind);

struct ProfileEvent {
  ProfileKind kind = ProfileKind::kKernel;
  std::string kernel;        ///< as the tool has it, demangled where it does that
  double start_us = 0;       ///< since any moment; events of tools without a clock count 0, 1, 2, ...
  std::optional<double> us;  ///< duration
  int device = 0;            ///< the tool's number of the GPU
  std::int64_t stream = 0;   ///< the tool's number
  std::string grid, block;   ///< "[80,1,1]"; "" where the tool does not say
  std::string module;        ///< HLO module; "" where the tool does not say
  std::string instruction;   ///< HLO instruction of that module
  std::string op;            ///< the framework's: "jit(f)/main/add", "aten::mm", an NVTX range
  std::map<std::string, double> counters;  ///< by our names (experiments/metrics.h)
};

struct Profile {
  std::string tool;  ///< "Nsight Systems", "Nsight Compute", "JAX", "PyTorch"
  std::string file;
  std::string device;                ///< as the tool names the GPU; "" where it does not
  bool clock = true;                 ///< events have starts; else they are in the order of their launches
  std::vector<ProfileEvent> events;  ///< ascending by start
  /// Begin and end on the GPU of what the program itself called its steps (PyTorch's ProfilerStep), in us.
  std::vector<std::pair<double, double>> steps;
  std::size_t host_events = 0;  ///< left out
};

/// Reads a profile of any of these tools; which one it is follows from the content. Throws Error with file,
/// where the format has such, line, and what to do: where the file is of none of them, is cut off, or holds
/// nothing that a GPU did.
Profile read_profile(const std::string& path);

/// The GPU of most events.
int busiest_device(const Profile& profile);

/// `ncu --csv`, a row a kernel (--page raw) or a row a metric (--page details, the default), with or without
/// the lines of the program before it.
Profile parse_ncu_csv(const std::string& text, const std::string& file);
/// The JSON that JAX's and PyTorch's profilers write.
Profile parse_chrome_trace(const std::string& text, const std::string& file);
/// `nsys export --type sqlite`.
Profile read_nsys_sqlite(const std::string& path);

/// The name of a function without its result, namespaces, template arguments and parameters:
/// "void at::native::reduce_kernel<512, 1>(int)" is "reduce_kernel".
std::string function_name(std::string_view kernel);

}  // namespace stitchwork
