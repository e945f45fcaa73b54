#include "experiments/reproduce_values.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "analysis/judge/cost_access.h"
#include "analysis/planners/astra/prices.h"
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

/// Of an f32 product of these m, n, k by a library's kernel of that name, or what it takes by itself.
double product_us(const Device& device, const JsonCursor& sizes, const std::string& kernel) {
  std::vector<double> of;
  sizes.each([&](const JsonCursor& size) { of.push_back(size.number()); });
  if (of.size() != 3) sizes.fail("a product has m, n and k");
  MatrixProduct product{.m = of[0], .n = of[1], .k = of[2]};
  product.bytes =
      byte_size(product.operands) * (product.m * product.k + product.k * product.n + product.m * product.n);
  return astra::library_us(device, product, kernel);
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
  Lookup(const ValueContext& context, std::string workload, std::string variant)
      : context_(context), workload_(std::move(workload)), variant_(std::move(variant)) {}

  /// Sums and differences "a+b-c"; "total_us" under the conditions of `under`.
  std::optional<double> metric(const std::string& variant, const std::string& name,
                               const std::optional<JsonCursor>& under = std::nullopt) {
    if (under && name == "total_us") return total_under(variant, *under);
    if (const std::size_t sign = name.find_last_of("+-"); sign != std::string::npos) {
      const auto a = metric(variant, name.substr(0, sign)), b = metric(variant, name.substr(sign + 1));
      return a && b ? std::optional(name[sign] == '+' ? *a + *b : *a - *b) : std::nullopt;
    }
    const TrialResults* trial = context_.experiment->trial(workload_, variant, context_.device);
    if (trial == nullptr) return std::nullopt;
    const Series* series = trial->find(name);
    if (series == nullptr) return std::nullopt;
    methods_.insert(series->method);
    return series->median();
  }

  std::optional<double> number(const JsonCursor& c) {
    const std::string& variant = variant_;
    if (const auto counter = c.find("top_kernels"))
      return top_average(
          context_.experiment->kernels_of(*context_.store, workload_, variant, context_.device),
          counter->text(), methods_);
    const std::string name = c.at("metric").text();
    const auto under = c.find("under");
    if (const auto buckets = c.find("buckets")) return bucketed(*buckets, c.at("speedup_over").text(), name);
    const auto ours = c.find("bound") ? bound(c.at("bound")) : metric(variant, name, under);
    if (!ours) return std::nullopt;
    if (const auto predicted = c.find("predicted_e2e")) return predicted_e2e(*predicted, *ours, name, c);
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
  /// Sequences, each as long as it is, by variant `over`, against those that are filled up to the length of
  /// the next bucket, by this one (Astra, section 6.5, Table 8). Buckets have equally many, whose lengths are
  /// uniform: the paper gives the buckets alone, "calibrated on the distribution". An unrolled model's time
  /// is linear between lengths, and beyond the first two.
  std::optional<double> bucketed(const JsonCursor& buckets, const std::string& over,
                                 const std::string& name) {
    std::vector<std::pair<double, double>> exact;  // length, us of `over`
    double filled = 0;
    bool known = true;
    buckets.each([&](const JsonCursor& length) {
      Lookup at(context_,
                workload_name(bucket_workload(workload_, length.integer()), context_.quick, context_.models),
                variant_);
      const auto base = at.metric(over, name), ours = at.metric(variant_, name);
      methods_.merge(at.methods_);
      known = known && base && ours;
      if (known) exact.emplace_back(length.number(), *base), filled += *ours;
    });
    if (!known || exact.size() < 2 || !(filled > 0)) return std::nullopt;
    double sum = 0;
    for (std::size_t b = 0; b < exact.size(); ++b) {
      const auto& [x0, y0] = exact[b == 0 ? 0 : b - 1];
      const auto& [x1, y1] = exact[b == 0 ? 1 : b];
      const double first = b == 0 ? 1 : x0 + 1, middle = (first + exact[b].first) / 2;
      sum += y0 + (y1 - y0) * (middle - x0) / (x1 - x0);
    }
    return sum / filled;
  }

  /// What the speed-up of a part of variant `over`'s time makes of the whole (FusionStitching, arXiv
  /// 1811.05213, section 6.4): with r the part's share of `relative_to` and s its speed-up, "first order"
  /// 1 + r (1 - 1/s) as the paper has it, or "amdahl" 1 / (r/s + 1 - r).
  std::optional<double> predicted_e2e(const JsonCursor& how, double ours, const std::string& name,
                                      const JsonCursor& c) {
    how.only({"over", "law"});
    const std::string over = how.at("over").text(), law = how.at("law").text();
    if (law != "first order" && law != "amdahl") how.fail("known laws: first order, amdahl");
    const auto part = metric(over, name), whole = metric(over, c.at("relative_to").at("metric").text());
    if (!part || !whole || !(*part > 0) || !(*whole > 0)) return std::nullopt;
    const double r = *part / *whole, left = ours / *part;
    return law == "amdahl" ? 1 / (r * left + 1 - r) : 1 + r * (1 - left);
  }

  /// The whole time if every call came `call_us` behind the one before it, and library calls took as long as
  /// makes the kernels of variant `of` `memory_share` per cent of its kernels and library calls.
  std::optional<double> total_under(const std::string& variant, const JsonCursor& under) {
    under.only({"call_us", "memory_share", "of"});
    // With loops, all that they run belongs to kernels, calls and gaps; without, all of it stands in the
    // entry.
    const auto control = metric(variant, "control_us");
    const bool loops = control && *control > 0;
    const auto kernels = metric(variant, loops ? "dynamic_kernel_us" : "kernel_us");
    auto library = metric(variant, loops ? "dynamic_library_us" : "library_us"),
         gaps = metric(variant, loops ? "total_us-dynamic_kernel_us-dynamic_library_us" : "overhead_us");
    if (const auto share = under.find("memory_share")) {
      const auto base = metric(under.at("of").text(), loops ? "dynamic_kernel_us" : "kernel_us");
      library =
          base && share->number() > 0 ? std::optional(*base * (100 / share->number() - 1)) : std::nullopt;
    }
    if (const auto call = under.find("call_us")) {
      const auto calls = metric(
          variant, loops ? "dynamic_kernels+copies+memsets" : "memory_kernels+library_calls+copies+memsets");
      gaps = calls ? std::optional(*calls * call->number()) : std::nullopt;
    }
    if (!kernels || !control || !library || !gaps) return std::nullopt;
    return *kernels + *library + *gaps;
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
  std::string workload_, variant_;
  std::set<std::string> methods_;
};

ReproducedValue described(const JsonCursor& c, const std::string& row, const std::string& variant) {
  c.only({"row",        "column",      "workload",      "variant",      "metric",      "paper",
          "scale",      "unit",        "saved_against", "speedup_over", "relative_to", "top_kernels",
          "average_of", "where",       "blocks",        "fitted",       "follows",     "instead",
          "under",      "follows_row", "limit",         "bound",        "needs",       "mixed_with",
          "variants",   "mean",        "predicted_e2e", "quotient_of",  "between",     "product",
          "kernel",     "buckets"});
  ReproducedValue v;
  v.row = row;
  v.column = variant.empty() ? c.at("column").text() : variant;
  if (const auto unit = c.find("unit")) v.unit = unit->text();
  if (const auto fitted = c.find("fitted")) v.fitted = fitted->boolean();
  if (const auto follows = c.find("follows")) v.follows = follows->text();
  if (const auto of_row = c.find("follows_row")) v.follows_row = of_row->text();
  if (const auto instead = c.find("instead")) v.instead = instead->text();
  if (const auto limit = c.find("limit")) v.limit = limit->text();
  if (const auto mixed = c.find("mixed_with")) v.mixed_with = mixed->text();
  if (const auto between = c.find("between"))
    between->each([&](const JsonCursor& end) { v.between.push_back(end.text()); });
  if (const auto quotient = c.find("quotient_of")) {
    quotient->only({"over", "under"});
    v.over = quotient->at("over").text();
    v.under = quotient->at("under").text();
  }
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

const TrialResults* PaperExperiment::trial(const std::string& workload, const std::string& variant,
                                           const std::string& device) const {
  const TrialResults* last = nullptr;  // the workload may have had other content before
  for (const TrialResults& trial : results.trials)
    if (trial.workload == workload && trial.variant == variant && trial.device == device &&
        (last == nullptr || trial.last_ns >= last->last_ns))
      last = &trial;
  return last;
}

const std::vector<KernelResult>& PaperExperiment::kernels_of(const Store& store, const std::string& workload,
                                                             const std::string& variant,
                                                             const std::string& device) {
  const auto known = kernels.find({workload, variant, device});
  if (known != kernels.end()) return known->second;
  const TrialResults* of = trial(workload, variant, device);
  return kernels
      .emplace(std::tuple(workload, variant, device),
               of == nullptr ? std::vector<KernelResult>() : longest_first(read_kernels(store, *of)))
      .first->second;
}

std::string bucket_workload(const std::string& name, std::int64_t length) {
  return fmt::format("{}_t{}", name, length);
}

/// Without "_b16" or "_t30" at its end.
static std::string without_number(const std::string& name, const std::string& mark) {
  const std::size_t at = name.rfind(mark);
  const bool numbered = at != std::string::npos && at + mark.size() < name.size() &&
                        name.find_first_not_of("0123456789", at + mark.size()) == std::string::npos;
  return numbered ? name.substr(0, at) : name;
}

std::string workload_name(const std::string& name, bool quick, const std::string& models) {
  if (quick) {
    if (name.ends_with("_tiny")) return name;
    return without_number(without_number(name, "_t"), "_b") + "_tiny";
  }
  const std::string file = fmt::format("{}/{}.hlo.gz", models, name);
  std::error_code error;
  return !models.empty() && std::filesystem::exists(file, error) ? file : name;
}

std::string rerun_command(const ExperimentSpec& spec, const std::string& workload, const std::string& variant,
                          const std::string& device) {
  for (const Variant& v : spec.variants) {
    if (v.name != variant) continue;
    std::string set;
    for (const auto& [knob, value] : v.knobs)
      set += fmt::format("{}{}={}", set.empty() ? " --set " : ",", knob, value);
    const std::string what = fmt::format("{} --planner {}{} --device {}", workload, v.planner, set, device);
    return spec.backend == "model"
               ? fmt::format("stitchwork plan {}", what)
               : fmt::format("stitchwork run {} --backend {}{}{}", what, spec.backend,
                             spec.sampled ? " --mode sampled" : "", spec.check ? " --check" : "");
  }
  return "";
}

ReproducedValue value_of(const JsonCursor& c, const std::string& row, const std::string& workload,
                         const ValueContext& context, const std::string& of_variant) {
  ReproducedValue v = described(c, row, of_variant);
  if (const auto paper = c.find("paper"); paper && !paper->is_null()) {
    const auto of_row = c.find("row") ? paper : paper->find(row);  // of one value, or by the column's rows
    if (of_row) v.paper = of_row->number();
  }
  if (const auto blocks = c.find("blocks")) {
    v.ours = barrier_kernel_us(device(context.device), blocks->integer());
    v.method = "modelled";
    return v;
  }
  if (const auto product = c.find("product")) {
    v.ours = 1e-3 * product_us(device(context.device), *product, c.at("kernel").text());
    v.method = "modelled";
    return v;
  }
  if (context.experiment == nullptr) c.fail("a value of an experiment in a table without one");
  std::string of = workload_name(workload, context.quick, context.models);
  const std::string variant = of_variant.empty() ? c.at("variant").text() : of_variant;
  const auto buckets = c.find("buckets");
  if (buckets)  // the command is of the longest
    buckets->each([&](const JsonCursor& length) {
      of = workload_name(bucket_workload(workload, length.integer()), context.quick, context.models);
    });
  // Of several lengths the lookup finds each one's name.
  Lookup lookup(context, buckets ? workload : of, variant);
  v.ours = lookup.number(c);
  v.method = lookup.methods();
  if (std::string text; c.find("needs") && lookup.all_zero(variant, c.at("needs"), text)) v.needed_by = text;
  v.rerun = rerun_command(context.experiment->spec, of, variant, context.device);
  return v;
}

std::optional<double> mean_of(std::vector<double> numbers, const std::string& kind) {
  if (kind == "geometric") std::erase_if(numbers, [](double number) { return !(number > 0); });
  if (numbers.empty()) return std::nullopt;
  if (kind == "least") return *std::ranges::min_element(numbers);
  if (kind == "most") return *std::ranges::max_element(numbers);
  double sum = 0;
  for (const double number : numbers) sum += kind == "geometric" ? std::log(number) : number;
  sum /= static_cast<double>(numbers.size());
  return kind == "geometric" ? std::exp(sum) : sum;
}

ReproducedValue average_of(const JsonCursor& c, const std::vector<ReproducedValue>& before,
                           const std::string& variant) {
  ReproducedValue v = described(c, c.at("row").text(), variant);
  if (const auto paper = c.find("paper"); paper && !paper->is_null()) v.paper = paper->number();
  const std::string column = variant.empty() ? c.at("average_of").text() : variant;
  const auto where = c.find("where");
  if (where) where->only({"column", "from", "to"});
  const auto wanted = [&](const std::string& row) {
    if (!where) return true;
    return std::any_of(before.begin(), before.end(), [&](const ReproducedValue& other) {
      return other.row == row && other.column == where->at("column").text() && other.ours &&
             *other.ours >= where->at("from").number() && *other.ours <= where->at("to").number();
    });
  };
  v.average_of = column;
  v.mean = "arithmetic";
  if (const auto kind = c.find("mean")) {
    v.mean = kind->text();
    if (v.mean != "arithmetic" && v.mean != "geometric" && v.mean != "least" && v.mean != "most")
      kind->fail("known means: arithmetic, geometric, least, most");
  }
  std::vector<double> numbers;
  for (const ReproducedValue& other : before)
    if (other.column == column && other.ours && !other.averaged && wanted(other.row)) {
      numbers.push_back(*other.ours);
      v.mean_rows.push_back(other.row);
      v.method = other.method;
      v.saved = other.saved;
    }
  v.averaged = true;
  v.ours = mean_of(std::move(numbers), v.mean);
  return v;
}

}  // namespace stitchwork
