#include "experiments/reproduce_values.h"

#include <algorithm>

#include "analysis/judge/cost_access.h"
#include "core/base/arithmetic.h"
#include "experiments/model.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/timing.h"

namespace stitchwork {
namespace {

/// Threads a block of Table 6's kernel.
constexpr int kBarrierThreads = 1024;
/// Of the time, that Figure 14's kernels make up.
constexpr double kTopShare = 0.8;

/// A launch of nothing but a grid barrier.
double barrier_kernel_us(const Device& device, std::int64_t blocks) {
  KernelWork work;
  work.grid_blocks = blocks;
  work.threads_per_block = kBarrierThreads;
  work.blocks_per_sm = static_cast<int>(std::max<std::int64_t>(1, (blocks + device.sms - 1) / device.sms));
  work.grid_barriers = 1;
  return kernel_time(device, work).total_us;
}

/// Mean of a counter over the longest kernels that make up kTopShare of the time.
std::optional<double> top_average(const std::vector<KernelResult>& kernels, const std::string& counter,
                                  std::set<std::string>& methods) {
  double total = 0, so_far = 0, sum = 0;
  for (const KernelResult& kernel : kernels) total += kernel.time_us.value;
  int n = 0;
  for (const KernelResult& kernel : kernels) {
    if (so_far >= kTopShare * total && n > 0) break;
    so_far += kernel.time_us.value;
    const auto found = kernel.counters.find(counter);
    if (found == kernel.counters.end()) return std::nullopt;
    methods.insert(found->second.method);
    sum += found->second.value;
    ++n;
  }
  return n == 0 ? std::nullopt : std::optional(sum / n);
}

/// One column's way to its number.
class Lookup {
 public:
  Lookup(const ValueContext& context, std::string workload)
      : context_(context), workload_(std::move(workload)) {}

  /// Sums "a+b"; "total_us" under the conditions of `under`.
  std::optional<double> metric(const std::string& variant, const std::string& name,
                               const std::optional<JsonCursor>& under = std::nullopt) {
    if (under && name == "total_us") return total_under(variant, *under);
    if (const std::size_t plus = name.find('+'); plus != std::string::npos) {
      const auto a = metric(variant, name.substr(0, plus)), b = metric(variant, name.substr(plus + 1));
      return a && b ? std::optional(*a + *b) : std::nullopt;
    }
    const TrialResults* trial = context_.experiment->trial(workload_, variant);
    if (trial == nullptr) return std::nullopt;
    const Series* series = trial->find(name);
    if (series == nullptr) return std::nullopt;
    methods_.insert(series->method);
    return series->median();
  }

  std::optional<double> number(const JsonCursor& c) {
    const std::string variant = c.at("variant").text();
    if (const auto counter = c.find("top_kernels"))
      return top_average(context_.experiment->kernels_of(*context_.store, workload_, variant),
                         counter->text(), methods_);
    const std::string name = c.at("metric").text();
    const auto under = c.find("under");
    const auto ours = c.find("bound") ? bound(c.at("bound")) : metric(variant, name, under);
    if (!ours) return std::nullopt;
    if (const auto saved = c.find("saved_against")) {
      const auto base = metric(saved->text(), name, under);
      return base && *base > 0 ? std::optional(100 * (1 - *ours / *base)) : std::nullopt;
    }
    if (const auto over = c.find("speedup_over")) {
      const auto base = metric(over->text(), name, under);
      return base && *ours > 0 ? std::optional(*base / *ours) : std::nullopt;
    }
    if (const auto relative = c.find("relative_to")) {
      relative->only({"variant", "metric"});
      const auto other = relative->find("variant");
      const auto whole = metric(other ? other->text() : variant, relative->at("metric").text());
      const double scale = c.find("unit") && c.at("unit").text() == "%" ? 100 : 1;
      return whole && *whole > 0 ? std::optional(scale * *ours / *whole) : std::nullopt;
    }
    const auto scale = c.find("scale");
    return *ours * (scale ? scale->number() : 1);
  }

  /// Whether ours are all zero of the quantities that `needs` names by their metrics.
  bool all_zero(const std::string& variant, const JsonCursor& needs, std::string& text) {
    bool zero = true;
    needs.each([&](const JsonCursor& one) {
      const auto ours = metric(variant, one.text());
      zero = zero && ours && *ours == 0;
      text += fmt::format("{}{} is 0", text.empty() ? "" : " and ", one.text());
    });
    return zero;
  }

  std::string methods() const { return made_of(methods_); }

 private:
  /// The whole time if every call came `call_us` behind the one before it, and library calls took as long as
  /// makes the kernels of variant `of` `memory_share` per cent of its kernels and library calls.
  std::optional<double> total_under(const std::string& variant, const JsonCursor& under) {
    under.only({"call_us", "memory_share", "of"});
    const auto kernels = metric(variant, "kernel_us"), control = metric(variant, "control_us");
    auto library = metric(variant, "library_us"), gaps = metric(variant, "overhead_us");
    if (const auto share = under.find("memory_share")) {
      const auto base = metric(under.at("of").text(), "kernel_us");
      library =
          base && share->number() > 0 ? std::optional(*base * (100 / share->number() - 1)) : std::nullopt;
    }
    if (const auto call = under.find("call_us")) {
      const auto calls = metric(variant, "memory_kernels+library_calls+copies+memsets");
      gaps = calls ? std::optional(*calls * call->number()) : std::nullopt;
    }
    if (!kernels || !control || !library || !gaps) return std::nullopt;
    return *kernels + *library + *control + *gaps;
  }

  /// The least that any plan of the workload's graph has: "kernels", or "written_sectors".
  std::optional<double> bound(const JsonCursor& what) {
    if (what.text() != "kernels" && what.text() != "written_sectors")
      what.fail("known bounds: kernels, written_sectors");
    auto found = context_.experiment->bounds.find(workload_);
    if (found == context_.experiment->bounds.end())
      found = context_.experiment->bounds.emplace(workload_, kernel_bound(load_model(workload_).graph)).first;
    methods_.insert("modelled");
    return what.text() == "kernels"
               ? found->second.kernels
               : static_cast<double>(ceil_div(found->second.written_bytes, kSectorBytes));
  }

  const ValueContext& context_;
  std::string workload_;
  std::set<std::string> methods_;
};

ReproducedValue described(const JsonCursor& c, const std::string& row) {
  c.only({"row",        "column",      "workload",      "variant",      "metric",      "paper",
          "scale",      "unit",        "saved_against", "speedup_over", "relative_to", "top_kernels",
          "average_of", "where",       "blocks",        "fitted",       "follows",     "instead",
          "under",      "follows_row", "limit",         "bound",        "needs",       "mixed_with"});
  ReproducedValue v;
  v.row = row;
  v.column = c.at("column").text();
  if (const auto unit = c.find("unit")) v.unit = unit->text();
  if (const auto fitted = c.find("fitted")) v.fitted = fitted->boolean();
  if (const auto follows = c.find("follows")) v.follows = follows->text();
  if (const auto of_row = c.find("follows_row")) v.follows_row = of_row->text();
  if (const auto instead = c.find("instead")) v.instead = instead->text();
  if (const auto limit = c.find("limit")) v.limit = limit->text();
  if (const auto mixed = c.find("mixed_with")) v.mixed_with = mixed->text();
  v.saved = c.find("saved_against").has_value();
  return v;
}

}  // namespace

void PaperExperiment::select() {
  std::vector<std::pair<std::string, Settings>> asked;  // variant
  for (const Cell& cell : cells(spec)) {
    const TrialSpec trial = trial_of(spec, cell);
    asked.emplace_back(trial.variant, settings_of(trial));
  }
  std::erase_if(results.trials, [&](const TrialResults& trial) {
    return std::none_of(asked.begin(), asked.end(), [&](const auto& one) {
      return one.first == trial.variant && is_asked_for(one.second, trial.settings);
    });
  });
  std::int64_t last_ns = -1;
  for (const TrialResults& trial : results.trials)
    if (trial.last_ns > last_ns) last_ns = trial.last_ns, version = trial.setting("results");
  for (const TrialResults& trial : results.trials)
    if (trial.setting("results") == results_version()) version = results_version();
  std::erase_if(results.trials, [&](const TrialResults& t) { return t.setting("results") != version; });
}

const TrialResults* PaperExperiment::trial(const std::string& workload, const std::string& variant) const {
  const TrialResults* last = nullptr;  // the workload may have had other content before
  for (const TrialResults& trial : results.trials)
    if (trial.workload == workload && trial.variant == variant &&
        (last == nullptr || trial.last_ns >= last->last_ns))
      last = &trial;
  return last;
}

const std::vector<KernelResult>& PaperExperiment::kernels_of(const Store& store, const std::string& workload,
                                                             const std::string& variant) {
  const auto known = kernels.find({workload, variant});
  if (known != kernels.end()) return known->second;
  const TrialResults* of = trial(workload, variant);
  return kernels
      .emplace(std::pair(workload, variant),
               of == nullptr ? std::vector<KernelResult>() : longest_first(read_kernels(store, *of)))
      .first->second;
}

std::string workload_name(const std::string& name, bool quick) { return quick ? name + "_tiny" : name; }

std::string rerun_command(const ExperimentSpec& spec, const std::string& workload,
                          const std::string& variant) {
  for (const Variant& v : spec.variants) {
    if (v.name != variant) continue;
    std::string set;
    for (const auto& [knob, value] : v.knobs)
      set += fmt::format("{}{}={}", set.empty() ? " --set " : ",", knob, value);
    const std::string what =
        fmt::format("{} --planner {}{} --device {}", workload, v.planner, set, spec.devices.at(0));
    return spec.backend == "model"
               ? fmt::format("stitchwork plan {}", what)
               : fmt::format("stitchwork run {} --backend {}{}{}", what, spec.backend,
                             spec.sampled ? " --mode sampled" : "", spec.check ? " --check" : "");
  }
  return "";
}

ReproducedValue value_of(const JsonCursor& c, const std::string& row, const std::string& workload,
                         const ValueContext& context) {
  ReproducedValue v = described(c, row);
  if (const auto paper = c.find("paper"); paper && !paper->is_null()) {
    const auto of_row = c.find("row") ? paper : paper->find(row);  // of one value, or by the column's rows
    if (of_row) v.paper = of_row->number();
  }
  if (const auto blocks = c.find("blocks")) {
    v.ours = barrier_kernel_us(device(context.device), blocks->integer());
    v.method = "modelled";
    return v;
  }
  if (context.experiment == nullptr) c.fail("a value of an experiment in a table without one");
  const std::string of = workload_name(workload, context.quick);
  Lookup lookup(context, of);
  v.ours = lookup.number(c);
  v.method = lookup.methods();
  if (std::string text; c.find("needs") && lookup.all_zero(c.at("variant").text(), c.at("needs"), text))
    v.needed_by = text;
  v.rerun = rerun_command(context.experiment->spec, of, c.at("variant").text());
  return v;
}

ReproducedValue average_of(const JsonCursor& c, const std::vector<ReproducedValue>& before) {
  ReproducedValue v = described(c, c.at("row").text());
  if (const auto paper = c.find("paper"); paper && !paper->is_null()) v.paper = paper->number();
  const std::string column = c.at("average_of").text();
  const auto where = c.find("where");
  if (where) where->only({"column", "from", "to"});
  const auto wanted = [&](const std::string& row) {
    if (!where) return true;
    return std::any_of(before.begin(), before.end(), [&](const ReproducedValue& other) {
      return other.row == row && other.column == where->at("column").text() && other.ours &&
             *other.ours >= where->at("from").number() && *other.ours <= where->at("to").number();
    });
  };
  double sum = 0;
  int n = 0;
  for (const ReproducedValue& other : before)
    if (other.column == column && other.ours && wanted(other.row))
      sum += *other.ours, ++n, v.method = other.method, v.saved = other.saved;
  if (n > 0) v.ours = sum / n;
  return v;
}

}  // namespace stitchwork
