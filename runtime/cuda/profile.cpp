#include "runtime/cuda/profile.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "codegen/compile/process.h"
#include "core/base/error.h"
#include "core/base/file.h"

namespace stitchwork::cuda {
namespace fs = std::filesystem;
namespace {

constexpr std::array kMetrics = std::to_array<ProfiledMetric>({
    {"inst_executed", "smsp__inst_executed.sum"},
    {"thread_inst_executed", "smsp__thread_inst_executed.sum"},
    {"inst_fp_32", "smsp__sass_thread_inst_executed_op_fp32_pred_on.sum"},
    {"gld_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"},
    {"gst_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"},
    {"gld_transactions", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
    {"gst_transactions", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"},
    {"l1_hit_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum"},
    {"local_load_transactions", "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"},
    {"local_store_transactions", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"},
    {"l2_read_sectors", "lts__t_sectors_srcunit_tex_op_read.sum"},
    {"l2_write_sectors", "lts__t_sectors_srcunit_tex_op_write.sum"},
    {"dram_read_transactions", "dram__sectors_read.sum"},
    {"dram_write_transactions", "dram__sectors_write.sum"},
    {"dram_read_transactions", "dram__bytes_read.sum", 1.0 / 32, false},
    {"dram_write_transactions", "dram__bytes_write.sum", 1.0 / 32, false},
    {"shared_load_requests", "smsp__inst_executed_op_shared_ld.sum"},
    {"shared_store_requests", "smsp__inst_executed_op_shared_st.sum"},
    {"shared_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"},
    {"shared_bank_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"},
    {"achieved_occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", 0.01},
    {"sm_efficiency", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", 0.01},
    {"sm_efficiency", "smsp__cycles_active.avg.pct_of_peak_sustained_elapsed", 0.01, false},
    {"registers", "launch__registers_per_thread"},
    {"duration_us", "gpu__time_duration.sum", 1e-3},
});

/// The fields of a line of quoted values; quotes inside are doubled.
std::vector<std::string> fields(std::string_view line) {
  std::vector<std::string> result(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"')
        result.back() += line[i++];
      else
        quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      result.emplace_back();
    } else if (line[i] != '\r') {
      result.back() += line[i];
    }
  }
  return result;
}

/// "1,234.5" -> 1234.5; false where it is no number.
bool number(std::string text, double& value) {
  std::erase(text, ',');
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc{} && read.ptr == text.data() + text.size() && !text.empty();
}

/// The line in which ncu or the program says what is wrong.
std::string complaint(const std::string& said) {
  std::string last, line;
  for (std::size_t at = 0; at <= said.size(); ++at) {
    if (at < said.size() && said[at] != '\n') {
      line += said[at];
      continue;
    }
    if (line.find("ERROR") != line.npos || line.find("rror:") != line.npos) return line;
    if (!line.empty()) last = line;
    line.clear();
  }
  return last;
}

/// Whether ncu complains of this metric: a GPU has not all of them ("Failed to find metric NAME").
bool unknown(std::string_view said, std::string_view metric) {
  while (!said.empty()) {
    const std::size_t end = std::min(said.find('\n'), said.size());
    const std::string_view line = said.substr(0, end);
    if (line.find("etric") != line.npos && line.find("ERROR") != line.npos && line.find(metric) != line.npos)
      return true;
    said.remove_prefix(std::min(end + 1, said.size()));
  }
  return false;
}

}  // namespace

std::span<const ProfiledMetric> profiled_metrics() { return kMetrics; }

std::vector<ProfiledCounters> parse_profile(std::string_view csv) {
  std::vector<ProfiledCounters> launches;
  std::vector<std::string> names;
  while (!csv.empty()) {
    const std::size_t end = std::min(csv.find('\n'), csv.size());
    const std::string_view line = csv.substr(0, end);
    csv.remove_prefix(std::min(end + 1, csv.size()));
    if (line.empty() || line[0] != '"') continue;  // what ncu says of itself
    std::vector<std::string> values = fields(line);
    if (names.empty()) {
      names = std::move(values);
      continue;
    }
    double id = 0;
    if (!number(values[0], id)) continue;  // the units
    ProfiledCounters& launch = launches.emplace_back();
    for (const ProfiledMetric& metric : kMetrics) {
      if (!metric.asked) continue;
      const auto column = std::find(names.begin(), names.end(), metric.metric);
      const auto at = static_cast<std::size_t>(column - names.begin());
      double value = 0;
      if (at < std::min(names.size(), values.size()) && number(values[at], value))
        launch.emplace_back(metric.counter, value * metric.scale);
    }
  }
  return launches;
}

std::vector<ProfiledCounters> profile(const std::vector<std::string>& command, const std::string& kernel) {
  std::string ncu;
  if (const char* home = std::getenv("CUDA_HOME")) ncu = find_program("ncu", {fs::path(home) / "bin"});
  if (ncu.empty()) ncu = find_program("ncu");
  if (ncu.empty()) ncu = find_program("ncu", {"/usr/local/cuda/bin"});
  if (ncu.empty())
    throw Error("counters of a GPU are read by Nsight Compute: there is no ncu",
                "install Nsight Compute, or leave out --counters");
  std::vector<std::string_view> wanted;
  for (const ProfiledMetric& metric : kMetrics)
    if (metric.asked) wanted.push_back(metric.metric);
  for (;;) {
    const TemporaryFolder folder;
    const std::string log = (folder.path() / "ncu.csv").string();
    std::vector<std::string> words = {ncu,
                                      "--csv",
                                      "--page",
                                      "raw",
                                      "--print-units",
                                      "base",
                                      "--log-file",
                                      log,
                                      "--target-processes",
                                      "all",
                                      "--kernel-name-base",
                                      "function",
                                      "--kernel-name",
                                      kernel,
                                      "--cache-control",
                                      "all",
                                      "--clock-control",
                                      "none",
                                      "--metrics",
                                      fmt::format("{}", fmt::join(wanted, ","))};
    words.insert(words.end(), command.begin(), command.end());
    const ProcessResult done = run_process(words);
    std::string said = fs::exists(log) ? read_file(log) : std::string();
    std::vector<ProfiledCounters> launches = parse_profile(said);
    if (!launches.empty()) return launches;
    said += "\n" + done.output;
    const std::size_t dropped =
        std::erase_if(wanted, [&](std::string_view metric) { return unknown(said, metric); });
    if (dropped == 0 || wanted.empty())
      throw Error(fmt::format("ncu profiled nothing: {}", complaint(said)),
                  "counters may be for administrators only (NVIDIA: ERR_NVGPUCTRPERM)");
  }
}

}  // namespace stitchwork::cuda
