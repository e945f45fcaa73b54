#include "cli/peer_dump.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/ptx_program.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/evaluate/judge.h"
#include "core/hlo/npy.h"
#include "experiments/launch_json.h"
#include "experiments/model.h"
#include "experiments/trial.h"
#include "runtime/program/run_script.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

ordered_json origin_json(const Dump& dump) {
  return {{"folder", dump.folder}, {"peer", dump.peer},     {"versions", dump.versions},
          {"flags", dump.flags},   {"target", dump.target}, {"model", dump.model}};
}

ordered_json counts_json(const DumpCounts& c) {
  return {{"memory_kernels", c.memory_kernels},
          {"product_kernels", c.product_kernels},
          {"library_calls", c.library_calls},
          {"copies", c.copies},
          {"memsets", c.memsets}};
}

std::string counts_text(const DumpCounts& c) {
  std::string text = counted(c.memory_kernels, "memory-intensive kernel");
  if (c.product_kernels > 0) text += ", " + counted(c.product_kernels, "kernel") + " with products";
  text += ", " + counted(c.library_calls, "library call");
  if (c.copies > 0) text += fmt::format(", copies: {}", c.copies);
  if (c.memsets > 0) text += fmt::format(", memsets: {}", c.memsets);
  return text;
}

/// What a step is of the model, in one cell.
std::string ops_text(const std::vector<std::string>& ops) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, ops.size()); ++i) text += (i > 0 ? ", " : "") + ops[i];
  if (ops.size() > kShown) text += fmt::format(" and {} more", ops.size() - kShown);
  return text;
}

sim::Options dump_options(const DumpRunArguments& a) {
  sim::Options options;
  if (!a.sanitize.empty()) options.sanitize = sim::parse_sanitizers(a.sanitize);
  if (a.cache == "warm") options.cache = sim::CacheMode::kWarm;
  options.sampled = a.mode == "sampled";
  if (options.sampled && (a.check || !a.outputs.empty()))
    throw Error("--mode sampled runs some of the blocks: outputs would be incomplete",
                "leave out --check and --outputs, or use --mode exact");
  return options;
}

/// Products within a compiler's kernels may round f32 operands to TF32 where the card has it: XLA's default.
Arithmetic arithmetic_of(const Dump& dump, const Device& target) {
  constexpr int kFirstWithTf32 = 8;  // compute capability, major
  return {.tf32 = target.cc_major >= kFirstWithTf32 && counts_of(dump.script).product_kernels > 0};
}

void print_dump_run(Cli& cli, const Dump& dump, const Device& target, const sim::Options& options,
                    const ScriptResult& result, const std::optional<CheckResult>& check) {
  if (cli.json) {
    ordered_json findings = ordered_json::array();
    for (const sim::Finding& f : result.program.findings) findings.push_back(finding_json(f));
    ordered_json document{{"schema", "stitchwork.dump-run/1"},
                          {"dump", origin_json(dump)},
                          {"device", target.id},
                          {"cache", options.cache == sim::CacheMode::kWarm ? "warm" : "cold"},
                          {"counts", counts_json(counts_of(dump.script))},
                          {"steps", script_steps_json(dump.script, result.program, target)},
                          {"total_us", result.program.total_us},
                          {"findings", findings},
                          {"sanitizers", sanitizers_json(options.sanitize, result.sanitized)}};
    if (check)
      document["check"] = {{"max_abs_error", check->max_abs_error},
                           {"max_rel_error", check->max_rel_error},
                           {"ok", check->ok},
                           {"message", check->message}};
    return cli.print(document);
  }
  for (const sim::Finding& f : result.program.findings)
    cli.err << fmt::format("stitchwork: {}\n", to_text(f));
  if (!result.program.findings.empty()) return;
  cli.print(script_steps_text(dump.script, result.program));
  cli.print(fmt::format("{}, {}", dump.title(), counts_text(counts_of(dump.script))));
  cli.print(script_summary(dump.script, result.program, target));
  if (options.sanitize.any()) cli.print(to_text(options.sanitize, result.sanitized) + "; no findings");
  if (check)
    cli.print(fmt::format("check: {} (max abs error {:.3g}, max rel error {:.3g}){}",
                          check->ok ? "ok" : "FAILED", check->max_abs_error, check->max_rel_error,
                          check->ok ? "" : ": " + check->message));
}

}  // namespace

void refuse_options(const CLI::App& command, const std::string& dump,
                    std::initializer_list<const char*> options) {
  for (const char* option : options)
    if (const CLI::Option* known = command.get_option_no_throw(option);
        known != nullptr && known->count() > 0)
      throw Error(fmt::format("{} is no option of a dump: {} has its own plan and kernels", option, dump),
                  "see docs/peers.md");
}

void run_dump(Cli& cli, const DumpRunArguments& a) {
  const sim::Options options = dump_options(a);
  Dump dump = read_dump(a.path);
  const Device& target = device(a.device.empty() ? dump.device : a.device);
  require_card(dump, target);
  const Model model = load_model(dump.model);
  TrialSpec spec;
  spec.seed = a.seed;
  spec.inputs_dir = a.inputs;
  std::vector<Literal> inputs = trial_inputs(model, spec);
  set_inputs(dump, inputs);
  const ScriptResult result =
      run_script(dump.script, target, options, [&](std::size_t step, const std::string& name) {
        cli.progress(fmt::format("[{} of {}] {}", step + 1, dump.script.steps.size(), name));
      });
  std::optional<CheckResult> check;
  if (result.program.findings.empty() && !options.sampled) {
    const std::vector<Literal> outputs = results_of(dump, result.program);
    if (a.check) {
      cli.progress("checking against the reference");
      check = Judge(model.graph, std::move(inputs), arithmetic_of(dump, target)).check(outputs);
    }
    if (!a.outputs.empty()) std::filesystem::create_directories(a.outputs);
    for (std::size_t i = 0; i < outputs.size() && !a.outputs.empty(); ++i)
      write_npy(fmt::format("{}/out{}.npy", a.outputs, i), outputs[i]);
  }
  cli.progress("");
  if (!result.program.findings.empty() || (check && !check->ok)) cli.exit_code = kExitBadInput;
  print_dump_run(cli, dump, target, options, result, check);
}

void plan_dump(Cli& cli, const std::string& path) {
  const Dump dump = read_dump(path);
  const Script& script = dump.script;
  ordered_json steps = ordered_json::array();
  Table table({"step", "kind", ">grid", ">block", "instruction", "ops of the model"});
  for (std::size_t s = 0; s < script.steps.size(); ++s) {
    const ScriptStep& step = script.steps[s];
    ordered_json one{{"kind", name(step.kind)},
                     {"name", script.program.steps[s].name},
                     {"instruction", step.instruction},
                     {"ops", step.ops}};
    std::vector<std::string> row{script.program.steps[s].name,
                                 std::string(name(step.kind)),
                                 "",
                                 "",
                                 step.instruction,
                                 ops_text(step.ops)};
    if (const auto* kernel = std::get_if<sim::KernelStep>(&script.program.steps[s].what)) {
      const sim::Dim3 grid = kernel->launch.grid, block = kernel->launch.block;
      one["module"] = step.module;
      one["product"] = step.product;
      one["grid"] = {grid.x, grid.y, grid.z};
      one["block"] = {block.x, block.y, block.z};
      one["shared_bytes"] = kernel->launch.dynamic_shared_bytes;
      row[2] = fmt::to_string(grid.count());
      row[3] = fmt::to_string(block.count());
    } else {
      one["bytes"] = step.bytes;
    }
    steps.push_back(std::move(one));
    table.add(std::move(row));
  }
  const DumpCounts counts = counts_of(script);
  if (cli.json)
    return cli.print(ordered_json{{"schema", "stitchwork.dump-plan/1"},
                                  {"dump", origin_json(dump)},
                                  {"device", dump.device},
                                  {"counts", counts_json(counts)},
                                  {"steps", steps}});
  cli.print(table.text());
  cli.print(fmt::format("{} for {}: {}", dump.title(), dump.device, counts_text(counts)));
}

std::vector<DumpRow> dump_rows(Cli& cli, const Model& model, const std::vector<std::string>& dumps,
                               const std::string& id) {
  std::vector<DumpRow> rows;
  for (const std::string& path : dumps) {
    Dump dump = read_dump(path);
    const Device& target = device(id.empty() ? dump.device : id);
    require_card(dump, target);
    set_inputs(dump, generate_inputs(model.graph, 0, model.inputs));
    const ScriptResult result =
        run_script(dump.script, target, {}, [&](std::size_t step, const std::string& name) {
          cli.progress(fmt::format("{}: [{} of {}] {}", path, step + 1, dump.script.steps.size(), name));
        });
    cli.progress("");
    for (const sim::Finding& finding : result.program.findings)
      throw Error(dump.script.file, 0, 0, to_text(finding), "stitchwork run " + path);
    DumpRow& row = rows.emplace_back(
        DumpRow{dump.folder, dump.title(), target.id, counts_of(dump.script), result.program.total_us});
    for (std::size_t s = 0; s < dump.script.steps.size(); ++s) {
      const sim::StepResult& step = result.program.steps[s];
      const bool kernel = dump.script.steps[s].kind == ScriptStepKind::kKernel;
      constexpr std::int64_t kSectorBytes = 32;
      row.dram_bytes +=
          kSectorBytes * static_cast<std::int64_t>(step.launch.counters.dram_read_transactions +
                                                   step.launch.counters.dram_write_transactions);
      if (kernel && !dump.script.steps[s].product) row.memory_us += step.time_us;
    }
  }
  return rows;
}

ordered_json dump_rows_json(const std::vector<DumpRow>& rows) {
  ordered_json list = ordered_json::array();
  for (const DumpRow& r : rows)
    list.push_back({{"folder", r.folder},
                    {"title", r.title},
                    {"device", r.device},
                    {"counts", counts_json(r.counts)},
                    {"time_us", r.time_us},
                    {"memory_us", r.memory_us},
                    {"dram_bytes", r.dram_bytes},
                    {"method", "simulated"}});
  return list;
}

std::string dump_rows_text(const std::vector<DumpRow>& rows) {
  Table table({"dump", "made by", "device", ">kernels", ">with products", ">calls", ">copies",
               ">us (simulated)", ">of kernels", ">DRAM bytes"});
  for (const DumpRow& r : rows)
    table.add({r.folder, r.title, r.device, with_commas(r.counts.memory_kernels),
               with_commas(r.counts.product_kernels), with_commas(r.counts.library_calls),
               with_commas(r.counts.copies), fmt::format("{:.1f}", r.time_us),
               fmt::format("{:.1f}", r.memory_us), with_commas(r.dram_bytes)});
  return table.text() +
         "kernels: memory-intensive ones; dumps were run in the simulator, their library calls are "
         "modelled\n";
}

}  // namespace stitchwork
