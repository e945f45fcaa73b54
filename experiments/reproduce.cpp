#include "experiments/reproduce.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "analysis/json_cursor.h"
#include "core/error.h"
#include "core/file.h"
#include "core/format.h"
#include "experiments/results.h"
#include "occupancy_model/timing.h"

namespace stitchwork {
namespace {
namespace fs = std::filesystem;

/// Ours may differ so much from the paper's before the report says why.
constexpr double kFar = 0.25;
/// Threads a block of Table 6's kernel.
constexpr int kBarrierThreads = 1024;

fs::path folder() {
  const char* const given = std::getenv("STITCHWORK_EXPERIMENTS");
  return given != nullptr ? given : STITCHWORK_EXPERIMENTS_DIR;
}

/// The medians of an experiment by workload and variant.
class Numbers {
 public:
  explicit Numbers(const ExperimentResults& results) : results_(results) {}

  /// Adds how the number was obtained to `methods`.
  std::optional<double> find(const std::string& workload, const std::string& variant,
                             const std::string& metric, std::set<std::string>& methods) const {
    if (const std::size_t plus = metric.find('+'); plus != std::string::npos) {
      const auto a = find(workload, variant, metric.substr(0, plus), methods);
      const auto b = find(workload, variant, metric.substr(plus + 1), methods);
      return a && b ? std::optional(*a + *b) : std::nullopt;
    }
    for (const TrialResults& trial : results_.trials) {
      if (trial.workload != workload || trial.variant != variant) continue;
      const auto series = trial.series.find(metric);
      if (series == trial.series.end()) return std::nullopt;
      methods.insert(series->second.method);
      return series->second.median();
    }
    return std::nullopt;
  }

 private:
  const ExperimentResults& results_;
};

/// A launch of nothing but a grid barrier.
double barrier_kernel_us(const Device& device, std::int64_t blocks) {
  KernelWork work;
  work.grid_blocks = blocks;
  work.threads_per_block = kBarrierThreads;
  work.blocks_per_sm = static_cast<int>(std::max<std::int64_t>(1, (blocks + device.sms - 1) / device.sms));
  work.grid_barriers = 1;
  return kernel_time(device, work).total_us;
}

struct Reproducer {
  const ReproduceOptions& options;
  fs::path home;
  Reproduction result;
  std::map<std::string, ExperimentResults> known;  ///< by the file of the experiment

  std::string workload(const std::string& name) const { return options.quick ? name + "_tiny" : name; }

  const ExperimentResults& results(const std::string& file) {
    const auto found = known.find(file);
    if (found != known.end()) return found->second;
    ExperimentSpec spec = read_experiment((home / file).string());
    if (options.quick) {
      spec.name += "-quick";
      for (std::string& name : spec.workloads) name = workload(name);
      spec.backend = "sim";
      spec.check = true;
      spec.text = fmt::format("{{\"quick\":{}}}", spec.text);
    }
    RunnerOptions run;
    run.progress = options.progress;
    const RunnerSummary summary = run_experiment(spec, options.db, run);
    result.failures.insert(result.failures.end(), summary.failures.begin(), summary.failures.end());
    return known.emplace(file, read_results(Store::open(options.db), spec.name)).first->second;
  }

  ReproducedValue value(const JsonCursor& c, const Numbers* numbers,
                        const std::vector<ReproducedValue>& before) {
    c.only({"row", "column", "workload", "variant", "metric", "paper", "scale", "unit", "saved_against",
            "speedup_over", "average_of", "blocks"});
    ReproducedValue v;
    v.row = c.at("row").text();
    v.column = c.at("column").text();
    if (const auto unit = c.find("unit")) v.unit = unit->text();
    if (const auto paper = c.find("paper"); paper && !paper->is_null()) v.paper = paper->number();
    if (const auto blocks = c.find("blocks")) {
      v.ours = barrier_kernel_us(device(result.device), blocks->integer());
      v.method = "modelled";
      return v;
    }
    if (const auto average = c.find("average_of")) {
      double sum = 0;
      int n = 0;
      for (const ReproducedValue& other : before)
        if (other.column == average->text() && other.ours) sum += *other.ours, ++n, v.method = other.method;
      if (n > 0) v.ours = sum / n;
      return v;
    }
    SW_CHECK(numbers != nullptr, "{} has no experiment", v.row);
    const std::string of = workload(c.at("workload").text()), metric = c.at("metric").text();
    std::set<std::string> methods;
    const auto ours = numbers->find(of, c.at("variant").text(), metric, methods);
    const auto against = [&](const JsonCursor& variant) {
      return numbers->find(of, variant.text(), metric, methods);
    };
    if (const auto saved = c.find("saved_against")) {
      const auto base = against(*saved);
      if (ours && base && *base > 0) v.ours = 100 * (1 - *ours / *base);
    } else if (const auto over = c.find("speedup_over")) {
      const auto base = against(*over);
      if (ours && base && *ours > 0) v.ours = *base / *ours;
    } else if (ours) {
      const auto scale = c.find("scale");
      v.ours = *ours * (scale ? scale->number() : 1);
    }
    v.method = fmt::format("{}", fmt::join(methods, ", "));
    return v;
  }

  /// Variants whose times should fall in this order, and do not.
  void check_order(const JsonCursor& order, const ExperimentResults& results, ReproducedTable& table) {
    std::vector<std::string> variants;
    order.each([&](const JsonCursor& variant) { variants.push_back(variant.text()); });
    const Numbers numbers(results);
    std::vector<std::string> workloads;
    for (const TrialResults& trial : results.trials)
      if (std::find(workloads.begin(), workloads.end(), trial.workload) == workloads.end())
        workloads.push_back(trial.workload);
    std::set<std::string> methods;
    for (const std::string& name : workloads)
      for (std::size_t i = 1; i < variants.size(); ++i) {
        const auto earlier = numbers.find(name, variants[i - 1], "total_us", methods),
                   later = numbers.find(name, variants[i], "total_us", methods);
        if (earlier && later && *later > *earlier)
          table.exceptions.push_back(fmt::format("{}: {} takes {:.2f} us, {} {:.2f} us", name, variants[i],
                                                 *later, variants[i - 1], *earlier));
      }
  }

  void table(const JsonCursor& c) {
    c.only({"id", "place", "title", "experiment", "barrier_kernel", "order", "values", "notes"});
    ReproducedTable table;
    table.id = c.at("id").text();
    table.place = c.at("place").text();
    table.title = c.at("title").text();
    if (!options.only.empty() &&
        std::find(options.only.begin(), options.only.end(), table.id) == options.only.end())
      return;
    if (const auto notes = c.find("notes"))
      notes->each([&](const JsonCursor& note) { table.notes.push_back(note.text()); });
    const auto experiment = c.find("experiment");
    const ExperimentResults* found = experiment ? &results(experiment->text()) : nullptr;
    const std::optional<Numbers> numbers = found ? std::optional(Numbers(*found)) : std::nullopt;
    c.at("values").each([&](const JsonCursor& one) {
      table.values.push_back(value(one, numbers ? &*numbers : nullptr, table.values));
    });
    if (const auto order = c.find("order"); order && found) check_order(*order, *found, table);
    result.tables.push_back(std::move(table));
  }
};

std::string number(const std::optional<double>& value, const std::string& unit) {
  if (!value) return "-";
  if (unit == "%") return fmt::format("{:.1f} %", *value);
  if (unit == "x") return fmt::format("{:.2f}x", *value);
  if (*value == std::floor(*value) && std::abs(*value) < 1e15)
    return with_commas(static_cast<long long>(*value));
  return fmt::format("{:.2f}", *value);
}

}  // namespace

std::optional<double> ReproducedValue::ratio() const {
  if (!paper || !ours || *paper == 0) return std::nullopt;
  return *ours / *paper;
}

bool ReproducedValue::far() const {
  const auto r = ratio();
  return r && std::abs(*r - 1) > kFar;
}

std::vector<std::string> papers() {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder(), error))
    if (fs::exists(entry.path() / "paper.json")) found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

Reproduction reproduce(const std::string& paper, const ReproduceOptions& options) {
  const std::vector<std::string> known = papers();
  if (std::find(known.begin(), known.end(), paper) == known.end())
    throw Error(fmt::format("no paper is called '{}'", paper),
                fmt::format("known: {}", fmt::join(known, ", ")));
  Reproducer reproducer{options, folder() / paper, {}, {}};
  const std::string file = (reproducer.home / "paper.json").string();
  const JsonDocument document(read_file(file), file, "stitchwork.paper/1", "a paper's figures",
                              "docs/experiments.md");
  const JsonCursor root = document.root();
  root.only({"schema", "id", "title", "device", "artifacts"});
  reproducer.result.paper = paper;
  reproducer.result.title = root.at("title").text();
  reproducer.result.device = root.at("device").text();
  reproducer.result.quick = options.quick;
  std::vector<std::string> ids;
  root.at("artifacts").each([&](const JsonCursor& c) { ids.push_back(c.at("id").text()); });
  for (const std::string& id : options.only)
    if (std::find(ids.begin(), ids.end(), id) == ids.end())
      throw Error(fmt::format("{} has no table called '{}'", paper, id),
                  fmt::format("it has: {}", fmt::join(ids, ", ")));
  root.at("artifacts").each([&](const JsonCursor& c) { reproducer.table(c); });
  return std::move(reproducer.result);
}

std::vector<std::vector<std::string>> lines(const ReproducedTable& table) {
  std::vector<std::vector<std::string>> result;
  for (const ReproducedValue& v : table.values) {
    const auto ratio = v.ratio();
    result.push_back({v.row, v.column, number(v.paper, v.unit), number(v.ours, v.unit),
                      (ratio ? fmt::format("{:.2f}", *ratio) : std::string("-")) + (v.far() ? " *" : ""),
                      v.method});
  }
  return result;
}

std::vector<std::string> reproduction_heads() {
  return {"row", "column", "paper", "ours", "ours / paper", "method of ours"};
}

std::string heading(const Reproduction& r) {
  return fmt::format("{}{}\n{}{}", r.title, r.quick ? ", on tiny variants of its models" : "",
                     fmt::format("Device: {}. ", r.device),
                     r.quick
                         ? "The paper's figures are of whole models: with tiny ones only directions compare."
                         : "* differs by more than a quarter: see the notes.");
}

std::string to_markdown(const Reproduction& r) {
  std::string text = "# " + heading(r) + "\n";
  for (const ReproducedTable& table : r.tables) {
    text += fmt::format("\n## {}: {}\n\n| {} |\n|---|---|--:|--:|--:|---|\n", table.place, table.title,
                        fmt::join(reproduction_heads(), " | "));
    for (const auto& line : lines(table)) text += fmt::format("| {} |\n", fmt::join(line, " | "));
    for (const std::string& note : table.notes) text += "\n" + note + "\n";
    for (const std::string& exception : table.exceptions)
      text += "\nOut of the paper's order: " + exception + ".\n";
  }
  for (const std::string& failure : r.failures) text += "\nFailed: " + failure + "\n";
  return text;
}

}  // namespace stitchwork
