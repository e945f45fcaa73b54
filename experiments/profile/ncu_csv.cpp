// Nsight Compute's CSV.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "core/base/error.h"
#include "experiments/profile/profile.h"
#include "runtime/cuda/profile.h"

namespace stitchwork {
namespace {

/// Units as the tool writes them, in its base units: ns and bytes.
double unit_scale(const std::string& unit) {
  constexpr auto kUnits = std::to_array<std::pair<std::string_view, double>>({{"nsecond", 1},
                                                                              {"ns", 1},
                                                                              {"usecond", 1e3},
                                                                              {"us", 1e3},
                                                                              {"msecond", 1e6},
                                                                              {"ms", 1e6},
                                                                              {"second", 1e9},
                                                                              {"s", 1e9},
                                                                              {"Kbyte", 1e3},
                                                                              {"Mbyte", 1e6},
                                                                              {"Gbyte", 1e9}});
  for (const auto& [name, scale] : kUnits)
    if (unit == name) return scale;
  return 1;
}

/// Names of the details page (sections "GPU Speed Of Light Throughput", "Launch Statistics", "Occupancy",
/// "Instruction Statistics") of metrics that the raw page calls by their own.
constexpr auto kDetails = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"Duration", "gpu__time_duration.sum"},
     {"Registers Per Thread", "launch__registers_per_thread"},
     {"Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"},
     {"Executed Instructions", "smsp__inst_executed.sum"}});

using CsvRow = std::vector<std::string>;

/// RFC 4180; a quoted field may hold line breaks. Throws Error where the last one has no end.
std::vector<std::pair<int, CsvRow>> csv_rows(const std::string& text, const std::string& file) {
  std::vector<std::pair<int, CsvRow>> rows;
  CsvRow row(1);
  bool quoted = false, any = false;
  int line = 1, begin = 1;
  const auto end_row = [&] {
    if (any) rows.emplace_back(begin, std::move(row));
    row.assign(1, "");
    any = false;
    begin = line + 1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"')
        row.back() += text[++i];
      else if (c == '"')
        quoted = false;
      else
        row.back() += c;
    } else if (c == '"') {
      quoted = any = true;
    } else if (c == ',') {
      row.emplace_back();
      any = true;
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      row.back() += c;
      any = true;
    }
    if (c == '\n') ++line;
  }
  if (quoted)
    throw Error(file, begin, 0, "ends within a quoted field", "the file is cut off: write or copy it again");
  end_row();
  return rows;
}

/// "(80, 1, 1)" -> "[80,1,1]"; "" of nothing.
std::string extents(const std::string& text) {
  std::string digits;
  for (const char c : text)
    if ((c >= '0' && c <= '9') || c == ',') digits += c;
  return digits.empty() ? "" : "[" + digits + "]";
}

class NcuReader {
 public:
  NcuReader(const std::string& text, const std::string& file) : rows_(csv_rows(text, file)) {
    profile_.tool = "Nsight Compute";
    profile_.file = file;
    profile_.clock = false;
  }

  Profile run() {
    const auto head = std::find_if(rows_.begin(), rows_.end(), [](const auto& row) {
      return std::find(row.second.begin(), row.second.end(), "Kernel Name") != row.second.end();
    });
    if (head == rows_.end())
      throw Error(profile_.file, 0, 0, "has no column \"Kernel Name\"",
                  "it is the output of `ncu --csv --page raw` or `ncu --csv`");
    heads_ = head->second;
    const bool long_form = column("Metric Name") >= 0;
    auto row = head + 1;
    if (!long_form && row != rows_.end() && field(row->second, "Kernel Name").empty()) {
      units_ = row->second;
      ++row;
    }
    for (; row != rows_.end(); ++row) {
      if (row->second.size() != heads_.size())
        throw Error(profile_.file, row->first, 0,
                    fmt::format("{} fields, the heads are {}", row->second.size(), heads_.size()),
                    "the file is cut off, or edited: write it again");
      long_form ? metric_row(*row) : kernel_row(*row);
    }
    if (profile_.events.empty())
      throw Error(profile_.file, 0, 0, "holds no kernels",
                  "ncu names the reason in its own output: lines ==ERROR==, ==WARNING==");
    return std::move(profile_);
  }

 private:
  int column(std::string_view name) const {
    const auto found = std::find(heads_.begin(), heads_.end(), name);
    return found == heads_.end() ? -1 : static_cast<int>(found - heads_.begin());
  }
  std::string field(const CsvRow& row, std::string_view name) const {
    const int at = column(name);
    return at < 0 || static_cast<std::size_t>(at) >= row.size() ? "" : row[static_cast<std::size_t>(at)];
  }

  ProfileEvent& start(const CsvRow& row) {
    ProfileEvent& kernel = profile_.events.emplace_back();
    kernel.start_us = static_cast<double>(profile_.events.size() - 1);
    kernel.kernel = field(row, "Kernel Name");
    kernel.grid = extents(field(row, "Grid Size"));
    kernel.block = extents(field(row, "Block Size"));
    if (profile_.device.empty()) profile_.device = field(row, "Device");
    return kernel;
  }

  void add(ProfileEvent& kernel, std::string_view metric, const std::string& unit, const std::string& text,
           int line) {
    for (const auto& [title, its_name] : kDetails)
      if (metric == title) metric = its_name;
    const auto metrics = cuda::profiled_metrics();
    const auto known = std::find_if(metrics.begin(), metrics.end(),
                                    [&](const cuda::ProfiledMetric& m) { return m.metric == metric; });
    if (known == metrics.end() || text.empty() || text == "n/a") return;
    std::string digits;
    std::copy_if(text.begin(), text.end(), std::back_inserter(digits), [](char c) { return c != ','; });
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (end == digits.c_str() || *end != '\0' || !std::isfinite(value))
      throw Error(profile_.file, line, 0, fmt::format("{}: '{}' is no number", metric, text));
    const double ours = value * known->scale * unit_scale(unit);
    if (known->counter == "duration_us")
      kernel.us = ours;
    else
      kernel.counters.emplace(known->counter, ours);
  }

  void kernel_row(const std::pair<int, CsvRow>& row) {
    ProfileEvent& kernel = start(row.second);
    for (std::size_t c = 0; c < heads_.size(); ++c)
      add(kernel, heads_[c], c < units_.size() ? units_[c] : "", row.second[c], row.first);
  }

  void metric_row(const std::pair<int, CsvRow>& row) {
    const std::string id = field(row.second, "ID");
    if (profile_.events.empty() || id != last_id_) start(row.second);
    last_id_ = id;
    add(profile_.events.back(), field(row.second, "Metric Name"), field(row.second, "Metric Unit"),
        field(row.second, "Metric Value"), row.first);
  }

  std::vector<std::pair<int, CsvRow>> rows_;
  CsvRow heads_, units_;
  std::string last_id_;
  Profile profile_;
};

}  // namespace

Profile parse_ncu_csv(const std::string& text, const std::string& file) {
  return NcuReader(text, file).run();
}

}  // namespace stitchwork
