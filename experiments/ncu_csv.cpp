// Nsight Compute's CSV.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "core/base/error.h"
#include "experiments/import.h"
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

using CsvRow = std::vector<std::string>;

/// RFC 4180; a quoted field may hold line breaks.
std::vector<std::pair<int, CsvRow>> csv_rows(const std::string& text) {
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
  end_row();
  return rows;
}

/// "(80, 1, 1)" -> "[80,1,1]".
std::string extents(const std::string& text) {
  std::string digits;
  for (const char c : text)
    if ((c >= '0' && c <= '9') || c == ',') digits += c;
  return "[" + (digits.empty() ? "1" : digits) + "]";
}

class Reader {
 public:
  Reader(const std::string& text, const std::string& file) : rows_(csv_rows(text)), file_(file) {}

  ImportedProfile run() {
    const auto head = std::find_if(rows_.begin(), rows_.end(), [](const auto& row) {
      return std::find(row.second.begin(), row.second.end(), "Kernel Name") != row.second.end();
    });
    if (head == rows_.end())
      throw Error(file_, 0, 0, "has no column \"Kernel Name\"",
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
        throw Error(file_, row->first, 0,
                    fmt::format("{} fields, the heads are {}", row->second.size(), heads_.size()));
      long_form ? metric_row(*row) : kernel_row(*row);
    }
    if (profile_.kernels.empty()) throw Error(file_, 0, 0, "holds no kernels");
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

  ProfiledKernel& start(const CsvRow& row) {
    ProfiledKernel& kernel = profile_.kernels.emplace_back();
    kernel.name = field(row, "Kernel Name");
    kernel.grid = extents(field(row, "Grid Size"));
    kernel.block = extents(field(row, "Block Size"));
    if (profile_.device.empty()) profile_.device = field(row, "Device");
    return kernel;
  }

  void add(ProfiledKernel& kernel, const std::string& metric, const std::string& unit,
           const std::string& text, int line) {
    const auto metrics = cuda::profiled_metrics();
    const auto known = std::find_if(metrics.begin(), metrics.end(),
                                    [&](const cuda::ProfiledMetric& m) { return m.metric == metric; });
    if (known == metrics.end() || text.empty() || text == "n/a") return;
    std::string digits;
    std::copy_if(text.begin(), text.end(), std::back_inserter(digits), [](char c) { return c != ','; });
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (end == digits.c_str() || *end != '\0' || !std::isfinite(value))
      throw Error(file_, line, 0, fmt::format("{}: '{}' is no number", metric, text));
    const double ours = value * known->scale * unit_scale(unit);
    if (known->counter == "duration_us")
      kernel.time_us = ours;
    else
      kernel.counters.emplace(known->counter, ours);
  }

  void kernel_row(const std::pair<int, CsvRow>& row) {
    ProfiledKernel& kernel = start(row.second);
    for (std::size_t c = 0; c < heads_.size(); ++c)
      add(kernel, heads_[c], c < units_.size() ? units_[c] : "", row.second[c], row.first);
  }

  void metric_row(const std::pair<int, CsvRow>& row) {
    const std::string id = field(row.second, "ID");
    if (profile_.kernels.empty() || id != last_id_) start(row.second);
    last_id_ = id;
    add(profile_.kernels.back(), field(row.second, "Metric Name"), field(row.second, "Metric Unit"),
        field(row.second, "Metric Value"), row.first);
  }

  std::vector<std::pair<int, CsvRow>> rows_;
  std::string file_;
  CsvRow heads_, units_;
  std::string last_id_;
  ImportedProfile profile_;
};

}  // namespace

ImportedProfile parse_ncu_csv(const std::string& text, const std::string& file) {
  return Reader(text, file).run();
}

}  // namespace stitchwork
