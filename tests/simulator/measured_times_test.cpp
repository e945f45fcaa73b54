// Times of the whole chain, PTX -> simulator -> timing model, against measured times of kernels of the same
// access patterns (tests/simulator/measured). The measured times run from event to event: the host's dispatch
// is part of them. It and the bandwidth that a device's files state (dram_efficiency) are fitted to relu and
// add; all other kernels are held out of every fit. scripts/bench/timings prints the table of docs/timing.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/base/file.h"
#include "occupancy_model/occupancy.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

const std::string kFolder = STITCHWORK_SOURCE_DIR "/tests/simulator/measured/";

struct Measured {
  std::string op, device;
  std::uint32_t rows = 0, columns = 0, blocks = 0, threads = 0;
  double us = 0;
  double array_bytes() const { return 4.0 * rows * columns; }
  bool of_rows() const { return op == "softmax" || op == "ln"; }
  /// relu and add: what the host's dispatch and the devices' dram_efficiency are fitted to.
  bool fitted() const { return op == "relu" || op == "add"; }
  int arrays() const { return op == "add" || op == "mul" || op == "div" ? 3 : 2; }
  std::string kind() const { return op == "softmax" ? op : op == "ln" ? "layer norm" : "element-wise"; }
  std::string size() const {
    constexpr double kSmall = 0.5e6;
    if (array_bytes() < kSmall) return "small";
    return arrays() * array_bytes() < static_cast<double>(sim_device().l2_bytes) ? "within L2" : "beyond L2";
  }
  const Device& sim_device() const { return stitchwork::device(device); }
};

std::vector<Measured> read_measured() {
  std::ifstream file(kFolder + "kernels.csv");
  std::vector<Measured> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.starts_with("op,")) continue;
    std::istringstream fields(line);
    std::vector<std::string> c(7);
    for (std::string& cell : c) std::getline(fields, cell, ',');
    const auto number = [](const std::string& text) { return static_cast<std::uint32_t>(std::stoul(text)); };
    all.push_back({c[0], c[1], number(c[2]), number(c[3]), number(c[4]), number(c[5]), std::stod(c[6])});
  }
  return all;
}

/// Every step-th kernel of each device, op and size, `most` of each.
std::vector<Measured> drawn(const std::vector<Measured>& all, std::size_t most, double largest_bytes) {
  std::map<std::string, std::vector<Measured>> groups;
  for (const Measured& m : all)
    if (m.array_bytes() <= largest_bytes)
      groups[m.device +
             (m.of_rows()  ? m.op
              : m.fitted() ? "fitted"
                           : "element-wise") +
             m.size()]
          .push_back(m);
  std::vector<Measured> result;
  for (const auto& [name, group] : groups)
    for (std::size_t k = 0; k < std::min(most, group.size()); ++k)
      result.push_back(group[k * group.size() / std::min(most, group.size())]);
  return result;
}

/// The planner's formula with the counts that the access pattern has: element-wise kernels and softmax of up
/// to 1024 columns read once; beyond, softmax reads rows three times and layer norm twice, from DRAM as those
/// of all resident blocks go from 0.6 to 1.4 of the L2 (analysis/judge/read_again.h).
double modelled_us(const Measured& m) {
  const Device& d = m.sim_device();
  const Occupancy places = occupancy(d, static_cast<int>(m.threads), 32, 0);
  const double again = m.op == "ln" ? 1 : m.op == "softmax" && m.columns > 1024 ? 2 : 0;
  const double resident = std::min<double>(static_cast<double>(places.blocks_per_wave), m.blocks);
  const double share = resident * m.array_bytes() / m.blocks / static_cast<double>(d.l2_bytes);
  const double moved = m.arrays() + again * std::clamp((share - 0.6) / 0.8, 0.0, 1.0);
  const double warps = m.array_bytes() / 16 / 32;
  KernelWork work;
  work.grid_blocks = m.blocks;
  work.threads_per_block = static_cast<int>(m.threads);
  work.blocks_per_sm = places.blocks_per_sm;
  work.dram_sectors = moved * m.array_bytes() / 32;
  work.l2_sectors = (m.arrays() + again) * m.array_bytes() / 32;
  work.ldst_warp_instructions = (m.arrays() + again) * warps;
  work.warp_instructions = 40 * warps;
  work.independent_loads = 4.0 * (m.arrays() - 1);
  return kernel_time(d, work).total_us - d.launch_us;
}

/// Buffers of one size that all kernels of a run share.
class Chain {
 public:
  explicit Chain(double array_bytes)
      : module_(ptx::parse(read_file(kFolder + "pytorch_patterns.ptx"), "p.ptx")) {
    for (DeviceAddress& a : arrays_)
      a = memory_.adopt(std::vector<std::byte>(static_cast<std::size_t>(array_bytes)), "array");
    for (DeviceAddress& a : rows_)
      a = memory_.adopt(std::vector<std::byte>(std::size_t{1} << 24), "row values");
  }

  /// Of the kernel alone, without the launch.
  double us(const Measured& m) {
    const bool warps = m.op == "softmax" && m.columns <= 1024;
    Launch launch{.kernel = kernel_of(m), .grid = {m.blocks, 1, 1}, .block = {m.threads, 1, 1}};
    if (warps || m.op == "ln") launch.block = {32, m.threads / 32, 1};
    const auto n = static_cast<std::int32_t>(m.rows * m.columns);
    const auto array = [this](std::size_t k) { return Argument::pointer(arrays_[k]); };
    const auto row = [this](std::size_t k) { return Argument::pointer(rows_[k]); };
    if (m.op == "ln")
      launch.arguments = {array(0),
                          row(0),
                          row(1),
                          row(2),
                          row(3),
                          array(2),
                          Argument::i32(static_cast<std::int32_t>(m.columns))};
    else if (m.op == "softmax")
      launch.arguments = {array(0), array(2), Argument::i32(static_cast<std::int32_t>(m.rows)),
                          Argument::i32(static_cast<std::int32_t>(m.columns))};
    else if (m.arrays() == 3)
      launch.arguments = {array(0), array(1), array(2), Argument::i32(n)};
    else
      launch.arguments = {array(0), array(2), Argument::i32(n)};
    Options options;
    const Device& d = m.sim_device();
    // PyTorch's kernels were timed again and again on the same arrays: what fits into L2 is there.
    const bool warm = m.size() != "beyond L2";
    options.sampled = !warm;
    L2StatePtr l2;
    if (warm) {
      l2 = make_l2_state(d);
      options.cache = CacheMode::kWarm;
      options.l2 = l2.get();
      run(module_, launch, memory_, d, options);
    }
    const LaunchResult result = run(module_, launch, memory_, d, options);
    EXPECT_TRUE(result.findings.empty()) << (result.findings.empty() ? "" : result.findings[0].message);
    return result.time_us - d.launch_us;
  }

 private:
  static std::string kernel_of(const Measured& m) {
    if (m.op == "softmax") return m.columns <= 1024 ? "softmax_warp" : "softmax_block";
    if (m.op == "ln") return "layer_norm";
    if (m.op == "tanh") return "tanh_";
    if (m.op == "gelu" || m.op == "relu") return m.op;
    return m.op == "div" ? "div_" : m.arrays() == 3 ? "add" : "relu";  // one instruction more or less
  }

  ptx::Module module_;
  DeviceMemory memory_;
  std::array<DeviceAddress, 3> arrays_{};
  std::array<DeviceAddress, 4> rows_{};
};

struct Timed {
  Measured measured;
  double modelled = 0, simulated = 0;  ///< microseconds of the kernel alone
};

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::ranges::sort(v);
  return v[v.size() / 2];
}

/// What the host adds to an event-to-event time: none is shorter than the shortest of its op, and all else
/// takes `added_us` longer than its kernel, and as much longer still as the shortest of its op is above those
/// of relu and add (an op with a longer way through PyTorch). Kernels of less than 0.5 MB say what the
/// shortest are.
struct Dispatch {
  double added_us = 0;
  std::map<std::string, double> least_us;  ///< by op
  double longer_us(const std::string& op) const {
    if (!least_us.contains(op)) return 0;
    double fitted = 0;  // relu and add, or what of them was not left out
    int ops = 0;
    for (const char* one : {"relu", "add"})
      if (const auto least = least_us.find(one); least != least_us.end()) fitted += least->second, ++ops;
    return ops > 0 ? least_us.at(op) - fitted / ops : 0;
  }
  double event_to_event(const Measured& m, double kernel_us) const {
    const auto least = least_us.find(m.op);
    return std::max(least == least_us.end() ? 0.0 : least->second, kernel_us + added_us + longer_us(m.op));
  }
};

const std::string kOtherHost = "a100-pcie-40";
/// `without`: an op of which nothing is known; its dispatch is then the median of the other ops'.
Dispatch fit_dispatch(const std::vector<Timed>& all, const std::string& device, double Timed::*us,
                      const std::string& without = "") {
  Dispatch dispatch;
  std::vector<double> added;
  for (const Timed& t : all) {
    if (t.measured.device != device || t.measured.op == without) continue;
    if (t.measured.size() == "small") {
      double& least = dispatch.least_us.try_emplace(t.measured.op, t.measured.us).first->second;
      least = std::min(least, t.measured.us);
    }
    if (t.measured.fitted() && t.measured.array_bytes() > 1e7 && t.measured.array_bytes() < 8e7)
      added.push_back(t.measured.us - t.*us);
  }
  // Where no small kernels were timed the host is taken to be one of the others.
  if (dispatch.least_us.empty() && device != kOtherHost)
    dispatch.least_us = fit_dispatch(all, kOtherHost, us, without).least_us;
  dispatch.added_us = median(added);
  if (!without.empty()) {
    std::vector<double> others;
    for (const auto& [op, least] : dispatch.least_us) others.push_back(least);
    dispatch.least_us[without] = median(others);
  }
  return dispatch;
}

struct Errors {
  std::vector<double> all;
  double median_size() const { return median(sizes()); }
  double most() const {  ///< 90 % are smaller
    auto v = sizes();
    std::ranges::sort(v);
    return v[v.size() * 9 / 10];
  }
  double bias() const { return median(all); }

 private:
  std::vector<double> sizes() const {
    std::vector<double> v;
    for (const double e : all) v.push_back(std::abs(e));
    return v;
  }
};

/// By device, kind and size, and whether fitted; of modelled and simulated times.
using Table = std::map<std::array<std::string, 4>, std::array<Errors, 2>>;

/// What was left out of the fit of the host's dispatch that a kernel is judged with.
enum class LeftOut : std::uint8_t {
  kNothing,  ///< fitted to relu and add of the device, an op's own dispatch to its small kernels
  kDevice,   ///< the median of the other devices' dispatch
  kOp,       ///< of relu and add the other, and the least time of the other ops' small kernels
};

Table judge(const std::vector<Timed>& all, LeftOut left_out) {
  Table table;
  std::map<std::string, std::array<Dispatch, 2>> of_device;
  for (const Timed& t : all)
    of_device.try_emplace(t.measured.device,
                          std::array{fit_dispatch(all, t.measured.device, &Timed::modelled),
                                     fit_dispatch(all, t.measured.device, &Timed::simulated)});
  for (const Timed& t : all) {
    const Measured& m = t.measured;
    for (std::size_t k = 0; k < 2; ++k) {
      Dispatch dispatch = of_device.at(m.device)[k];
      if (left_out == LeftOut::kOp)
        dispatch = fit_dispatch(all, m.device, k == 0 ? &Timed::modelled : &Timed::simulated, m.op);
      if (left_out == LeftOut::kDevice) {
        std::vector<double> others;
        for (const auto& [id, d] : of_device)
          if (id != m.device) others.push_back(d[k].added_us);
        dispatch.added_us = median(others);
      }
      const double us = dispatch.event_to_event(m, k == 0 ? t.modelled : t.simulated);
      table[{m.device, m.kind(), m.size(), m.fitted() || m.size() == "small" ? "fitted" : "held out"}][k]
          .all.push_back(us / m.us - 1);
    }
  }
  return table;
}

void print(const Table& table) {
  fmt::print("{:13} {:13} {:10} {:9} {:>4}  {:^24}  {:^24}\n", "device", "kernels", "size", "", "n",
             "modelled: median p90 bias", "simulated: median p90 bias");
  for (const auto& [key, errors] : table) {
    fmt::print("{:13} {:13} {:10} {:9} {:4}", key[0], key[1], key[2], key[3], errors[0].all.size());
    for (const Errors& e : errors)
      fmt::print("  {:7.1f} {:7.1f} {:+8.1f} %", 100 * e.median_size(), 100 * e.most(), 100 * e.bias());
    fmt::print("\n");
  }
}

std::vector<Timed> timed(const std::vector<Measured>& kernels) {
  double largest = 0;
  for (const Measured& m : kernels) largest = std::max(largest, m.array_bytes());
  Chain chain(largest);
  std::vector<Timed> all;
  for (const Measured& m : kernels) all.push_back({m, modelled_us(m), chain.us(m)});
  return all;
}

/// Of kernels that are not the host's dispatch alone: all, or those held out of the fit.
Errors beyond_l2(const Table& table, const std::string& kind, std::size_t which,
                 bool held_out_alone = false) {
  Errors errors;
  for (const auto& [key, of] : table)
    if (key[1] == kind && key[2] == "beyond L2" && !(held_out_alone && key[3] != "held out"))
      errors.all.insert(errors.all.end(), of[which].all.begin(), of[which].all.end());
  return errors;
}
Errors held_out(const Table& table, const std::string& kind, std::size_t which) {
  return beyond_l2(table, kind, which, true);
}

TEST(MeasuredTimes, ADrawOfKernelsHeldOutIsTimedWell) {
  const std::vector<Timed> all = timed(drawn(read_measured(), 3, 1.3e8));
  const Table table = judge(all, LeftOut::kNothing), op_left_out = judge(all, LeftOut::kOp);
  print(table);
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_LT(beyond_l2(op_left_out, "element-wise", k).median_size(), 0.05) << k;
    EXPECT_LT(held_out(table, "element-wise", k).median_size(), 0.05) << k;
    EXPECT_LT(held_out(table, "softmax", k).median_size(), 0.30) << k;
    EXPECT_LT(held_out(table, "layer norm", k).median_size(), 0.20) << k;
  }
}

/// STITCHWORK_TIMINGS: kernels a device, kind and size; scripts/bench/timings sets it.
TEST(MeasuredTimes, Table) {
  const char* most = std::getenv("STITCHWORK_TIMINGS");
  if (most == nullptr) GTEST_SKIP() << "scripts/bench/timings prints the table";
  const std::vector<Timed> all = timed(drawn(read_measured(), std::stoul(most), 1e9));
  fmt::print(
      "Bandwidth and dispatch fitted to relu and add of each device, an op's own dispatch to its small "
      "kernels; all else held out\n");
  print(judge(all, LeftOut::kNothing));
  fmt::print("\nReductions alone: none are among the measured kernels\n");
  const auto print_left_out = [&](const char* title, LeftOut left_out, bool held_out_alone) {
    fmt::print("\n{}\n", title);
    const Table table = judge(all, left_out);
    for (const std::string kind : {"element-wise", "softmax", "layer norm"})
      for (std::size_t k = 0; k < 2; ++k) {
        const Errors e = beyond_l2(table, kind, k, held_out_alone);
        fmt::print("{:13} {:10} {:4} median {:5.1f} % p90 {:5.1f} % bias {:+5.1f} %\n", kind,
                   k == 0 ? "modelled" : "simulated", e.all.size(), 100 * e.median_size(), 100 * e.most(),
                   100 * e.bias());
      }
  };
  print_left_out("Each device left out: its dispatch is the median of the others'", LeftOut::kDevice, true);
  print_left_out(
      "Each op left out: its dispatch is fitted without it, to what is left of relu and add and to the other "
      "ops' small kernels (relu and add themselves are among the element-wise ones here)",
      LeftOut::kOp, false);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
