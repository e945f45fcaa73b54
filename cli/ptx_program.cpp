// stitchwork ptx run SCRIPT.json
#include "cli/ptx_program.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/json/plan_json.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/hlo/npy.h"
#include "experiments/launch_json.h"
#include "occupancy_model/timing_text.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

std::string size_text(const sim::Dim3& size) {
  if (size.y == 1 && size.z == 1) return fmt::to_string(size.x);
  if (size.z == 1) return fmt::format("{}x{}", size.x, size.y);
  return fmt::format("{}x{}x{}", size.x, size.y, size.z);
}

const sim::KernelStep* kernel_of(const sim::ProgramStep& step) {
  return std::get_if<sim::KernelStep>(&step.what);
}

std::string_view method_of(const Script& script, const sim::ProgramResult& result, std::size_t step) {
  if (script.steps[step].kind != ScriptStepKind::kKernel) return "modelled";
  return result.steps[step].launch.sampled ? "sampled" : "simulated";
}

ordered_json expectation_json(const Script& script, const Expectation& wanted, const ArrayComparison& found) {
  return {{"buffer", script.program.buffers[wanted.buffer].name},
          {"file", wanted.file},
          {"ok", found.ok},
          {"max_abs_error", found.max_abs_error},
          {"max_rel_error", found.max_rel_error},
          {"rtol", found.rtol},
          {"atol", found.atol},
          {"wrong", found.wrong},
          {"message", found.message}};
}

std::string expectation_text(const Script& script, const Expectation& wanted, const ArrayComparison& found) {
  const std::string errors =
      fmt::format("max abs error {:.3g}, max rel error {:.3g}", found.max_abs_error, found.max_rel_error);
  const std::string& name = script.program.buffers[wanted.buffer].name;
  if (found.ok) return fmt::format("{}: as {} has it ({})", name, wanted.file, errors);
  return fmt::format("{}: NOT as {} has it: {} ({} wrong; {})", name, wanted.file, found.message, found.wrong,
                     errors);
}

void save(const Script& script, const ScriptResult& result, const std::string& outputs) {
  const std::string folder =
      outputs.empty() ? std::filesystem::path(script.file).parent_path().string() : outputs;
  if (!script.saves.empty() && !folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw Error(folder, 0, 0, fmt::format("cannot be made: {}", error.message()));
  }
  for (const auto& [buffer, file] : script.saves)
    write_npy((std::filesystem::path(folder) / file).string(), result.program.buffers.at(buffer));
}

sim::Options options_of(const Script& script, const ProgramArguments& a) {
  sim::Options options;
  const std::string& sanitize = a.sanitize.empty() ? script.sanitize : a.sanitize;
  if (!sanitize.empty()) options.sanitize = sim::parse_sanitizers(sanitize);
  if ((a.cache.empty() ? script.cache : a.cache) == "warm") options.cache = sim::CacheMode::kWarm;
  options.sampled = a.mode == "sampled";
  if (options.sampled && (!script.saves.empty() || !script.expected.empty()))
    throw Error(script.file, 0, 0, "--mode sampled runs some of the blocks: outputs would be incomplete",
                "leave out 'save' and 'expect', or use --mode exact");
  return options;
}

}  // namespace

void add_launch_json(ordered_json& document, const sim::Launch& launch, const sim::LaunchResult& result,
                     const Device& device) {
  const std::string_view method = result.sampled ? "sampled" : "simulated";
  document["grid"] = {launch.grid.x, launch.grid.y, launch.grid.z};
  document["block"] = {launch.block.x, launch.block.y, launch.block.z};
  document["cluster"] = {result.cluster.x, result.cluster.y, result.cluster.z};
  document["counters"] = counters_json(result.counters);
  document["time_us"] = result.time_us;
  document["time_parts"] = time_parts_json(result.time, method);
  document["not_modelled"] = not_modelled_json(not_modelled(device, result.timed));
  document["resident_share"] = result.resident_share;
  document["method"] = method;
  document["blocks_simulated"] = result.blocks_simulated;
}

ordered_json script_steps_json(const Script& script, const sim::ProgramResult& result, const Device& device) {
  ordered_json list = ordered_json::array();
  for (std::size_t s = 0; s < result.steps.size(); ++s) {
    const ScriptStep& step = script.steps[s];
    ordered_json one{{"kind", name(step.kind)}, {"name", script.program.steps[s].name}};
    if (!step.instruction.empty()) one["instruction"] = step.instruction;
    if (!step.ops.empty()) one["ops"] = step.ops;
    if (const sim::KernelStep* kernel = kernel_of(script.program.steps[s])) {
      one["kernel"] = kernel->launch.kernel;
      one["module"] = step.module;
      add_launch_json(one, kernel->launch, result.steps[s].launch, device);
    } else {
      one["bytes"] = step.bytes;
      one["time_us"] = result.steps[s].time_us;
      one["method"] = "modelled";
    }
    list.push_back(std::move(one));
  }
  return list;
}

std::string script_steps_text(const Script& script, const sim::ProgramResult& result) {
  const bool of_module =
      std::ranges::any_of(script.steps, [](const auto& s) { return !s.instruction.empty(); });
  std::vector<std::string> heads{"step",        ">grid", ">block", ">inst_executed", ">DRAM read",
                                 ">DRAM write", ">us",   "method", "limited by"};
  if (of_module) heads.emplace_back("instruction");
  Table table(heads);
  for (std::size_t s = 0; s < result.steps.size(); ++s) {
    const sim::StepResult& done = result.steps[s];
    std::vector<std::string> row{script.program.steps[s].name};
    const sim::KernelStep* kernel = kernel_of(script.program.steps[s]);
    if (kernel != nullptr) {
      const sim::Counters& c = done.launch.counters;
      row.insert(row.end(), {size_text(kernel->launch.grid), size_text(kernel->launch.block),
                             with_commas(static_cast<long long>(c.inst_executed)),
                             human_bytes(32.0 * static_cast<double>(c.dram_read_transactions)),
                             human_bytes(32.0 * static_cast<double>(c.dram_write_transactions))});
    } else {
      row.resize(row.size() + 5);
    }
    row.push_back(fmt::format("{:.2f}", done.time_us));
    row.emplace_back(method_of(script, result, s));
    row.push_back(kernel != nullptr ? std::string(limited_by(done.launch.time)) : "");
    if (of_module) row.push_back(script.steps[s].instruction);
    table.add(std::move(row));
  }
  return table.text();
}

std::string script_summary(const Script& script, const sim::ProgramResult& result, const Device& device) {
  std::string counts;
  for (const ScriptStepKind kind :
       {ScriptStepKind::kKernel, ScriptStepKind::kCall, ScriptStepKind::kCopy, ScriptStepKind::kMemset}) {
    const auto n = std::ranges::count(script.steps, kind, &ScriptStep::kind);
    if (n == 0) continue;
    const bool copies = kind == ScriptStepKind::kCopy && n > 1;
    counts += (counts.empty() ? "" : ", ") +
              (copies ? fmt::format("{} copies", n) : counted(n, std::string(name(kind)).c_str()));
  }
  const bool sampled = std::ranges::any_of(result.steps, [](const auto& s) { return s.launch.sampled; });
  const bool others =
      std::ranges::any_of(script.steps, [](const auto& s) { return s.kind != ScriptStepKind::kKernel; });
  return fmt::format(
      "{}; {:.2f} us on {} with {} (kernels {}{})", counts, result.total_us, device.id,
      counted(static_cast<long long>(result.steps.empty() ? 0 : result.steps.size() - 1), "gap"),
      sampled ? "sampled" : "simulated", others ? ", the rest modelled" : "");
}

void ptx_run_program(Cli& cli, const ProgramArguments& a) {
  Script script = read_script(a.file);
  constexpr const char* kDefaultDevice = "v100-sxm2";
  const Device& target = device(!a.device.empty()       ? a.device
                                : script.device.empty() ? kDefaultDevice
                                                        : script.device);
  const sim::Options options = options_of(script, a);
  const ScriptResult result =
      run_script(script, target, options, [&](std::size_t step, const std::string& name) {
        cli.progress(fmt::format("[{} of {}] {}", step + 1, script.steps.size(), name));
      });
  cli.progress("");
  for (const sim::StepResult& step : result.program.steps) cli.err << step.launch.printed;
  if (result.program.findings.empty() && !options.sampled) save(script, result, a.outputs);
  if (!result.ok()) cli.exit_code = kExitBadInput;
  if (cli.json) {
    ordered_json findings = ordered_json::array(), expected = ordered_json::array();
    for (const sim::Finding& f : result.program.findings) findings.push_back(finding_json(f));
    for (std::size_t e = 0; e < result.expected.size(); ++e)
      expected.push_back(expectation_json(script, script.expected[e], result.expected[e]));
    return cli.print(ordered_json{{"schema", "stitchwork.ptx-program-run/1"},
                                  {"file", a.file},
                                  {"device", target.id},
                                  {"cache", options.cache == sim::CacheMode::kWarm ? "warm" : "cold"},
                                  {"steps", script_steps_json(script, result.program, target)},
                                  {"total_us", result.program.total_us},
                                  {"expected", expected},
                                  {"findings", findings},
                                  {"sanitizers", sanitizers_json(options.sanitize, result.sanitized)}});
  }
  if (!result.program.findings.empty()) {
    for (const sim::Finding& f : result.program.findings)
      cli.err << fmt::format("stitchwork: {}\n", to_text(f));
    return;
  }
  cli.print(script_steps_text(script, result.program));
  cli.print(script_summary(script, result.program, target));
  for (std::size_t e = 0; e < result.expected.size(); ++e)
    cli.print(expectation_text(script, script.expected[e], result.expected[e]));
  if (options.sanitize.any() || !a.sanitize.empty())
    cli.print(to_text(options.sanitize, result.sanitized) + "; no findings");
}

}  // namespace stitchwork
