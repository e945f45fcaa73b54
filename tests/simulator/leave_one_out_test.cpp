// Measured kernel times of a device that the timing model knows by its data sheet and one copy-like kernel
// alone; all else is fitted to the other devices. scripts/bench/timings prints the table of docs/timing.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "occupancy_model/occupancy.h"
#include "occupancy_model/timing.h"

namespace stitchwork {
namespace {

const char* const kTimings = STITCHWORK_SOURCE_DIR "/../shared/data/gpu-timings/timings.csv";

struct Measured {
  std::string op;
  double rows = 0, columns = 0, us = 0;
  std::int64_t grid = 0;
  int threads = 0;
  double array_bytes() const { return rows * columns * 4; }
};

/// By device id.
std::map<std::string, std::vector<Measured>> read_timings() {
  const std::map<std::string, std::string> ids{
      {"Tesla V100-PCIE-32GB", "v100-pcie"}, {"NVIDIA A100-PCIE-40GB", "a100-pcie-40"}, {"Tesla T4", "t4"}};
  std::ifstream file(kTimings);
  std::map<std::string, std::vector<Measured>> all;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::vector<std::string> cells(11);
    for (std::string& cell : cells) std::getline(fields, cell, ',');
    all[ids.at(cells[1])].push_back({cells[0], std::stod(cells[2]), std::stod(cells[3]),
                                     std::stod(cells[10]) * 1e3, std::stoll(cells[4]),
                                     std::stoi(cells[7]) * std::stoi(cells[8])});
  }
  return all;
}

/// Arrays that an element-wise kernel reads and writes; 0 for others, and for powers, whose instructions
/// sizes do not tell.
int arrays_of(const std::string& op) {
  static const std::map<std::string, int> kArrays{{"add", 3},  {"mul", 3},  {"div", 3},
                                                  {"addu", 2}, {"mulu", 2}, {"divu", 2},
                                                  {"relu", 2}, {"gelu", 2}, {"tanh", 2}};
  const auto it = kArrays.find(op);
  return it == kArrays.end() ? 0 : it->second;
}

/// What is fitted, to other devices than the one judged.
struct Fitted {
  double launch_us = 0;  ///< of a kernel as PyTorch's profiler times it
  /// Of rows read again, none are fetched from DRAM where what resident blocks hold is below `begin` of the
  /// L2, all above `end`.
  double begin = 0, end = 1;
};

/// A kernel that moves `arrays` times its array, 16 bytes an access.
double modelled_us(const Device& device, const Measured& kernel, double arrays) {
  const double warps = kernel.rows * kernel.columns / 4 / 32;
  KernelWork work;
  work.grid_blocks = kernel.grid;
  work.threads_per_block = kernel.threads;
  work.blocks_per_sm = occupancy(device, kernel.threads, 32, 0).blocks_per_sm;
  work.dram_sectors = work.l2_sectors = arrays * kernel.array_bytes() / 32;
  work.ldst_warp_instructions = arrays * warps;
  work.warp_instructions = 40 * warps;
  work.independent_loads = 8;
  return kernel_time(device, work).total_us;
}

/// Arrays that a softmax or layer norm moves. PyTorch reads rows of up to 1024 elements once; beyond, softmax
/// reads them three times (maximum, sum, result) and layer norm twice (moments, result).
double arrays_moved(const Device& device, const Measured& kernel, const Fitted& fitted) {
  if (kernel.op == "softmax" && kernel.columns <= 1024) return 2;
  const double again = kernel.op == "softmax" ? 2 : 1;
  const double resident =
      std::min<double>(static_cast<double>(occupancy(device, kernel.threads, 32, 0).blocks_per_wave),
                       static_cast<double>(kernel.grid));
  // The A100's L2 is two partitions (NVIDIA A100 architecture white paper); what an SM reads of the far one
  // is kept in both.
  const double partitions = device.cc_major == 8 && device.cc_minor == 0 ? 2 : 1;
  const double share = resident * kernel.array_bytes() / static_cast<double>(kernel.grid) /
                       (static_cast<double>(device.l2_bytes) / partitions);
  return 2 + again * std::clamp((share - fitted.begin) / (fitted.end - fitted.begin), 0.0, 1.0);
}

/// The device of the data sheet whose bandwidth is what its largest relu kernel reaches.
Device calibrated(const std::string& id, const std::vector<Measured>& kernels, double launch_us) {
  Device d = device(id);
  d.launch_us = launch_us;
  const Measured* copy = nullptr;
  for (const Measured& k : kernels)
    if (k.op == "relu" && (copy == nullptr || k.array_bytes() > copy->array_bytes())) copy = &k;
  double low = 0.3, high = 1.5;
  for (int step = 0; step < 40; ++step) {
    d.dram_efficiency = (low + high) / 2;
    (modelled_us(d, *copy, 2) > copy->us ? low : high) = d.dram_efficiency;
  }
  return d;
}

/// Mean absolute error of the kernels of one kind, and of how many; kind: "element-wise", "softmax" or "ln".
std::pair<double, int> error_of(const Device& device, const std::vector<Measured>& kernels,
                                const std::string& kind, const Fitted& fitted) {
  double sum = 0;
  int count = 0;
  for (const Measured& k : kernels) {
    const int elementwise = arrays_of(k.op);
    if (kind == "element-wise" ? elementwise == 0 : k.op != kind) continue;
    const double arrays = elementwise != 0 ? elementwise : arrays_moved(device, k, fitted);
    sum += std::abs(modelled_us(device, k, arrays) / k.us - 1);
    ++count;
  }
  return {count == 0 ? 0 : sum / count, count};
}

using Timings = std::map<std::string, std::vector<Measured>>;

double error_of_others(const Timings& timings, const std::string& left_out, const std::string& kind,
                       const Fitted& f) {
  double sum = 0;
  for (const auto& [id, kernels] : timings)
    if (id != left_out) sum += error_of(calibrated(id, kernels, f.launch_us), kernels, kind, f).first;
  return sum;
}

Fitted fit_without(const Timings& timings, const std::string& left_out, const std::string& kind) {
  Fitted best;
  double least = 1e9;
  for (double launch = 0; launch <= 30; launch += 1) {
    const Fitted f{.launch_us = launch};
    const double error = error_of_others(timings, left_out, "element-wise", f);
    if (error < least) {
      least = error;
      best.launch_us = launch;
    }
  }
  if (kind == "element-wise") return best;
  const double launch = best.launch_us;
  least = 1e9;
  for (double begin = 0; begin < 1.5; begin += 0.05) {
    for (double end = begin + 0.05; end < 2.5; end += 0.05) {
      const Fitted f{launch, begin, end};
      const double error = error_of_others(timings, left_out, kind, f);
      if (error < least) {
        least = error;
        best = f;
      }
    }
  }
  return best;
}

TEST(LeaveOneOut, ADeviceKnownByItsDataSheetAndOneCopyIsTimedWell) {
  if (!std::ifstream(kTimings)) GTEST_SKIP() << "no measured kernel times at " << kTimings;
  const Timings timings = read_timings();
  const std::map<std::string, double> bounds{{"element-wise", 0.03}, {"softmax", 0.12}, {"ln", 0.12}};
  fmt::print("{:14} {:13} {:>7} {:>8}   fitted to the others\n", "left out", "kernels", "number", "error");
  for (const auto& [id, kernels] : timings) {
    for (const auto& [kind, bound] : bounds) {
      const Fitted fitted = fit_without(timings, id, kind);
      const auto [error, count] = error_of(calibrated(id, kernels, fitted.launch_us), kernels, kind, fitted);
      if (count == 0) continue;
      fmt::print(
          "{:14} {:13} {:7} {:7.2f} %   launch {:.0f} us{}\n", id, kind, count, 100 * error, fitted.launch_us,
          kind == "element-wise" ? "" : fmt::format(", L2 {:.2f} to {:.2f}", fitted.begin, fitted.end));
      EXPECT_LT(error, bound) << id << " " << kind;
    }
  }
}

}  // namespace
}  // namespace stitchwork
