#include "experiments/spec.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "analysis/json/json_cursor.h"
#include "analysis/json/overrides_json.h"
#include "core/base/data.h"
#include "core/base/file.h"
#include "experiments/performance_library.h"

namespace stitchwork {
namespace {

constexpr std::string_view kSchema = "stitchwork.experiment/1";

template <typename T, typename Read>
std::vector<T> list(const JsonCursor& cursor, Read read) {
  std::vector<T> values;
  cursor.each([&](const JsonCursor& item) { values.push_back(read(item)); });
  if (values.empty()) cursor.fail("the list is empty");
  return values;
}

DeviceLimits read_limits(const JsonCursor& c) {
  DeviceLimits limits;
  c.each_member([&](const std::string& name, const JsonCursor& value) { limits[name] = value.integer(); });
  try {
    limited(devices().front(), limits);  // names and least values
  } catch (const Error& error) {
    c.fail(error.message(), error.hint());
  }
  return limits;
}

/// `execution` with what the document or variant says of it.
TrialExecution read_execution(const JsonCursor& c, TrialExecution execution) {
  if (const auto repeats = c.find("repeats")) {
    execution.repeats = repeats->small();
    if (execution.repeats < 0) repeats->fail("repeats are not negative", "0: of one launch");
  }
  if (const auto tf32 = c.find("tf32")) execution.tf32 = tf32->boolean();
  if (const auto fast_math = c.find("fast_math")) execution.fast_math = fast_math->boolean();
  if (const auto dependent = c.find("dependent_launch")) execution.dependent_launch = dependent->boolean();
  if (const auto compiler = c.find("compiler")) {
    execution.compiler = compiler->text();
    if (execution.compiler != "nvrtc" && execution.compiler != "clang")
      compiler->fail(fmt::format("unknown compiler '{}'", execution.compiler), "known: nvrtc, clang");
  }
  if (const auto convolutions = c.find("convolutions")) {
    execution.convolutions = convolutions->text();
    try {
      cuda::parse_convolutions(execution.convolutions);
    } catch (const Error& error) {
      convolutions->fail(error.message(), error.hint());
    }
  }
  return execution;
}

Variant read_variant(const JsonCursor& c, const TrialExecution& execution) {
  c.only({"name", "planner", "set", "override", "limits", "repeats", "tf32", "fast_math", "dependent_launch",
          "convolutions", "compiler", "peer"});
  Variant variant;
  if (const auto peer = c.find("peer")) {
    c.only({"name", "peer"});
    variant.peer = peer->text();
    if (variant.peer.empty()) peer->fail("the name of a peer is empty", "xla, inductor: docs/peers.md");
    variant.name = c.find("name") ? c.at("name").text() : variant.peer;
    variant.planner = variant.name;
    return variant;
  }
  variant.execution = read_execution(c, execution);
  variant.planner = c.at("planner").text();
  variant.name = c.find("name") ? c.at("name").text() : variant.planner;
  if (const auto set = c.find("set"))
    set->each_member(
        [&](const std::string& knob, const JsonCursor& value) { variant.knobs[knob] = value.text(); });
  if (const auto edits = c.find("override")) variant.edits = read_edits(*edits);
  if (const auto limits = c.find("limits")) variant.limits = read_limits(*limits);
  try {
    PlanOptions options;
    options.knobs = variant.knobs;
    resolve_knobs(planner(variant.planner), options);
  } catch (const Error& error) {
    c.fail(error.message(), error.hint());
  }
  return variant;
}

/// A variant with one more value of a sweep's axis: `axis` has "limit", "block_of" or "split_factor_of".
Variant with_value(Variant variant, const JsonCursor& axis, std::int64_t value) {
  if (const auto limit = axis.find("limit")) {
    variant.limits[limit->text()] = value;
    variant.name += fmt::format(", {} {}", limit->text(), value);
    return variant;
  }
  const auto block = axis.find("block_of");
  const std::string op = block ? block->text() : axis.at("split_factor_of").text();
  variant.edits.push_back({block ? EditKind::kBlock : EditKind::kSplitFactor, {op}, "", value});
  variant.name += fmt::format(", {} {}", block ? "block" : "split", value);
  return variant;
}

/// A list, or "datasets": all of them but the small variants.
std::vector<std::string> read_workloads(const JsonCursor& c) {
  if (!c.is("datasets")) return list<std::string>(c, [](const JsonCursor& w) { return w.text(); });
  std::vector<std::string> names;
  for (const Dataset& dataset : datasets())
    if (!dataset.name.ends_with("_tiny")) names.push_back(dataset.name);
  return names;
}

/// Every variant with every combination of the axes' values.
void sweep(const JsonCursor& axes, std::vector<Variant>& variants) {
  axes.each([&](const JsonCursor& axis) {
    axis.only({"limit", "block_of", "split_factor_of", "values"});
    const int kinds = static_cast<int>(axis.find("limit").has_value()) +
                      static_cast<int>(axis.find("block_of").has_value()) +
                      static_cast<int>(axis.find("split_factor_of").has_value());
    if (kinds != 1) axis.fail("an axis has one of limit, block_of and split_factor_of");
    const auto values = list<std::int64_t>(axis.at("values"), [&](const JsonCursor& v) {
      if (const auto limit = axis.find("limit")) {
        try {
          limited(devices().front(), {{limit->text(), v.integer()}});
        } catch (const Error& error) {
          v.fail(error.message(), error.hint());
        }
      }
      return v.integer();
    });
    std::vector<Variant> all;
    for (const Variant& variant : variants)
      for (const std::int64_t value : values) all.push_back(with_value(variant, axis, value));
    variants = std::move(all);
  });
}

/// The performance library that the experiment names: of its one device, and for at least one variant.
std::shared_ptr<const fusionstitching::PerformanceLibrary> read_spec_library(const JsonCursor& c,
                                                                             const ExperimentSpec& spec) {
  const std::string path = c.text();
  fusionstitching::PerformanceLibrary library;
  try {
    library = performance_library(read_library(path), path, false);
  } catch (const Error& error) {
    c.fail(fmt::format("{}: {}", path, error.message()), error.hint());
  }
  for (const std::string& id : spec.devices)
    if (library.device != id) c.fail(fmt::format("{} is of {}, not of {}", path, library.device, id));
  if (std::none_of(spec.variants.begin(), spec.variants.end(),
                   [](const Variant& v) { return v.peer.empty() && planner(v.planner).takes_library; }))
    c.fail("no variant's planner takes a performance library", "fusionstitching-2018 does");
  return std::make_shared<const fusionstitching::PerformanceLibrary>(std::move(library));
}

/// The folder of a workload's dump: a file goes by its name without extensions.
std::string dump_of(const ExperimentSpec& spec, const Variant& variant, const std::string& device,
                    const std::string& workload) {
  const std::string file = std::filesystem::path(workload).filename().string();
  return (std::filesystem::path(spec.dumps) / variant.peer / device / file.substr(0, file.find('.')))
      .string();
}

}  // namespace

bool ExperimentSpec::has_peers() const {
  return std::ranges::any_of(variants, [](const Variant& variant) { return !variant.peer.empty(); });
}

ExperimentSpec parse_experiment(const std::string& text, const std::string& file) {
  const JsonDocument document(text, file, kSchema, "an experiment", "docs/schema/experiment.schema.json");
  const JsonCursor c = document.root();
  c.only({"schema",           "name",         "title",    "workloads",
          "variants",         "sweep",        "devices",  "seeds",
          "backend",          "mode",         "cache",    "check",
          "timeout_s",        "repeats",      "tf32",     "fast_math",
          "dependent_launch", "convolutions", "compiler", "library"});
  ExperimentSpec spec;
  spec.name = c.at("name").text();
  if (spec.name.empty()) c.at("name").fail("the name is empty");
  if (const auto title = c.find("title")) spec.title = title->text();
  spec.workloads = read_workloads(c.at("workloads"));
  const TrialExecution execution = read_execution(c, {});
  spec.variants =
      list<Variant>(c.at("variants"), [&](const JsonCursor& v) { return read_variant(v, execution); });
  if (const auto axes = c.find("sweep")) sweep(*axes, spec.variants);
  std::set<std::string> names;
  for (const Variant& variant : spec.variants)
    if (!names.insert(variant.name).second)
      c.at("variants")
          .fail(fmt::format("two variants are called \"{}\"", variant.name), "give them a `name` each");
  const auto devices = c.find("devices");
  spec.devices =
      !devices ? std::vector<std::string>{"v100-sxm2"} : list<std::string>(*devices, [](const JsonCursor& d) {
        try {
          return device(d.text()).id;
        } catch (const Error& error) {
          d.fail(error.message(), error.hint());
        }
      });
  if (const auto library = c.find("library")) spec.library = read_spec_library(*library, spec);
  const auto seeds = c.find("seeds");
  spec.seeds = !seeds ? std::vector<std::uint64_t>{0} : list<std::uint64_t>(*seeds, [](const JsonCursor& s) {
    if (s.integer() < 0) s.fail("a seed is not negative");
    return static_cast<std::uint64_t>(s.integer());
  });
  if (const auto backend = c.find("backend")) {
    spec.backend = backend->text();
    constexpr std::array kKnown{"model", "sim", "cuda"};
    if (std::find(kKnown.begin(), kKnown.end(), spec.backend) == kKnown.end())
      backend->fail(fmt::format("unknown backend '{}'", spec.backend), "known: model, sim, cuda");
  }
  if (const auto mode = c.find("mode")) {
    if (mode->text() != "exact" && mode->text() != "sampled") mode->fail("it is exact or sampled");
    spec.sampled = mode->text() == "sampled";
    if (spec.sampled && spec.backend != "sim")
      mode->fail("a sample is of simulated blocks", "use backend sim");
  }
  if (const auto cache = c.find("cache")) {
    if (cache->text() != "cold" && cache->text() != "warm") cache->fail("it is cold or warm");
    spec.cache = cache->text() == "warm" ? sim::CacheMode::kWarm : sim::CacheMode::kCold;
  }
  if (const auto check = c.find("check")) spec.check = check->boolean();
  if (spec.check && spec.backend == "model")
    c.at("check").fail("backend model computes nothing to check", "use backend sim or cuda");
  if (spec.sampled && (spec.check || spec.cache == sim::CacheMode::kWarm))
    c.at("mode").fail("a sample has no outputs to check and says nothing of a warm cache",
                      "leave out check and cache, or use mode exact");
  if (spec.has_peers() && spec.backend != "sim")
    c.fail("dumps of compilers run in the simulator", "use backend sim");
  if (const auto timeout = c.find("timeout_s")) spec.timeout_s = timeout->number();
  if (!(spec.timeout_s > 0)) c.at("timeout_s").fail("a timeout is positive");
  spec.text = nlohmann::json::parse(text).dump();
  return spec;
}

std::string find_experiment(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path given = path;
  std::error_code ignored;
  if (given.empty() || given.is_absolute() || fs::exists(given, ignored)) return path;
  const fs::path below = *given.begin() == "experiments" ? given.lexically_relative("experiments") : given;
  const fs::path found = data_folder("experiments") / below;
  return fs::is_regular_file(found, ignored) ? found.string() : path;
}

ExperimentSpec read_experiment(const std::string& path) {
  const std::string found = find_experiment(path);
  return parse_experiment(read_file(found), found);
}

std::vector<Cell> cells(const ExperimentSpec& spec) {
  std::vector<Cell> result;
  for (std::size_t w = 0; w < spec.workloads.size(); ++w)
    for (std::size_t d = 0; d < spec.devices.size(); ++d)
      for (std::size_t s = 0; s < spec.seeds.size(); ++s)
        for (std::size_t v = 0; v < spec.variants.size(); ++v) result.push_back({w, v, d, s});
  return result;
}

TrialSpec trial_of(const ExperimentSpec& spec, const Cell& cell) {
  TrialSpec trial;
  const Variant& variant = spec.variants[cell.variant];
  trial.variant = variant.name;
  trial.planner = variant.planner;
  trial.options.knobs = variant.knobs;
  trial.options.edits = variant.edits;
  if (!variant.peer.empty())
    trial.dump = dump_of(spec, variant, spec.devices[cell.device], spec.workloads[cell.workload]);
  else if (planner(variant.planner).takes_library)
    trial.options.library = spec.library.get();
  trial.limits = variant.limits;
  trial.device = spec.devices[cell.device];
  trial.seed = spec.seeds[cell.seed];
  trial.backend = spec.backend;
  trial.cache = spec.cache;
  trial.check = spec.check;
  trial.sampled = spec.sampled;
  trial.repeats = variant.execution.repeats;
  trial.options.tf32 = variant.execution.tf32;
  trial.convolutions = variant.execution.convolutions;
  trial.compile.compiler = variant.execution.compiler;
  trial.compile.fast_math = variant.execution.fast_math;
  trial.compile.dependent_launch = variant.execution.dependent_launch;
  return trial;
}

std::string to_text(const ExperimentSpec& spec, const Cell& cell) {
  std::string text = fmt::format("{}, {}, {}", spec.workloads[cell.workload],
                                 spec.variants[cell.variant].name, spec.devices[cell.device]);
  if (spec.seeds.size() > 1) text += fmt::format(", seed {}", spec.seeds[cell.seed]);
  return text;
}

}  // namespace stitchwork
