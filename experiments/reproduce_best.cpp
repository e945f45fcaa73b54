#include "experiments/reproduce_best.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stitchwork {
namespace {

/// Times so near to the least are as good: what the timing model's own constants leave open is more.
constexpr double kAsGood = 0.01;
/// A part of the time is named where it makes so much of the difference.
constexpr double kNamed = 0.1;

struct Contender {
  std::string variant;
  const TrialResults* trial = nullptr;
  double us = 0;
};

struct Part {
  std::string name, detail;
  double saved_us = 0;
};

double number(const TrialResults& trial, const std::string& metric) {
  return trial.median(metric).value_or(0);
}

/// "1,024 -> 512 MB".
std::string change(double from, double to, const std::string& what) {
  return fmt::format("{} {:.4g} -> {:.4g}", what, from, to);
}

/// What of the time `best` saves against `other`: memory-intensive kernels, library calls, and all that lies
/// between; most first.
std::vector<Part> parts(const TrialResults& best, const TrialResults& other) {
  const auto saved = [&](const std::string& metric) { return number(other, metric) - number(best, metric); };
  const double memory = saved("dynamic_kernel_us"), library = saved("dynamic_library_us");
  constexpr double kMega = 1e-6;
  std::vector<Part> all;
  all.push_back({"memory time",
                 change(kMega * number(other, "dram_bytes"), kMega * number(best, "dram_bytes"), "DRAM MB"),
                 memory});
  all.push_back({"library calls", "", library});
  all.push_back(
      {"between kernels",
       change(number(other, "dynamic_memory_kernels"), number(best, "dynamic_memory_kernels"), "kernels"),
       saved("total_us") - memory - library});
  std::ranges::stable_sort(all, std::greater<>(), &Part::saved_us);
  return all;
}

}  // namespace

std::optional<BestVariant> best_of(const ValueContext& context, const std::string& workload) {
  std::vector<Contender> contenders;
  std::vector<std::string> absent;
  for (const Variant& variant : context.experiment->spec.variants) {
    const TrialResults* trial = context.experiment->trial(workload, variant.name, context.device);
    const auto us = trial == nullptr ? std::nullopt : trial->median("total_us");
    if (us)
      contenders.push_back({variant.name, trial, *us});
    else
      absent.push_back(variant.name);
  }
  if (contenders.size() < 2) return std::nullopt;
  std::ranges::stable_sort(contenders, {}, &Contender::us);
  BestVariant best;
  const Contender& first = contenders.front();
  for (const Contender& one : contenders) {
    if (one.us <= (1 + kAsGood) * first.us) {
      best.variants.push_back(one.variant);
      continue;
    }
    best.over = one.variant;
    best.factor = first.us > 0 ? one.us / first.us : 1;
    const std::vector<Part> found = parts(*first.trial, *one.trial);
    best.cause = found.front().name;
    for (const Part& part : found) {
      if (std::abs(part.saved_us) < kNamed * (one.us - first.us)) continue;
      best.why += fmt::format("{}{} {:+.4g} us{}", best.why.empty() ? "" : "; ", part.name, -part.saved_us,
                              part.detail.empty() ? "" : fmt::format(" ({})", part.detail));
    }
    break;
  }
  if (!absent.empty())
    best.why += fmt::format("{}without {}", best.why.empty() ? "" : "; ", fmt::join(absent, ", "));
  return best;
}

void summarise(const std::vector<const ReproducedTable*>& tables, ReproducedTable& summary) {
  for (const ReproducedTable* table : tables) {
    for (const ReproducedValue& v : table->values) {
      if (!v.averaged) continue;
      ReproducedValue& mean = summary.values.emplace_back(v);
      mean.row = table->device;
    }
    std::map<std::string, int> best, cause;
    for (const auto& [row, one] : table->best) {
      for (const std::string& variant : one.variants) ++best[variant];
      if (!one.cause.empty()) ++cause[one.cause];
    }
    if (table->best.empty()) continue;
    const auto counts = [](const std::map<std::string, int>& of) {
      std::vector<std::pair<std::string, int>> sorted(of.begin(), of.end());
      std::ranges::stable_sort(sorted, std::greater<>(), &std::pair<std::string, int>::second);
      std::string text;
      for (const auto& [name, count] : sorted)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
      return text;
    };
    summary.notes.push_back(fmt::format(
        "{}, {} workloads. Fastest or within 1 % of it: {}. What most of the gain over the next is: {}.",
        table->device, table->best.size(), counts(best), counts(cause)));
  }
}

}  // namespace stitchwork
