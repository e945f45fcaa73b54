#include "cli/peer_dump.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/ptx_program.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/evaluate/judge.h"
#include "core/hlo/npy.h"
#include "experiments/launch_json.h"
#include "experiments/peer_trial.h"
#include "experiments/store.h"

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

/// Of a dump with loops: a row an instruction, however often it was launched.
std::string launches_text(const Script& script, const sim::ProgramResult& result) {
  struct Row {
    std::string name, method;
    std::int64_t launches = 0;
    double us = 0;
  };
  std::vector<std::string> order;
  std::map<std::string, Row> rows;
  for (std::size_t s = 0; s < result.steps.size(); ++s) {
    const std::string& instruction = script.steps[s].instruction;
    const auto [found, fresh] = rows.try_emplace(instruction);
    if (fresh) {
      order.push_back(instruction);
      found->second.name = script.program.steps[s].name;
      found->second.method = script.steps[s].kind != ScriptStepKind::kKernel ? "modelled"
                             : result.steps[s].launch.sampled                ? "sampled"
                                                                             : "simulated";
    }
    ++found->second.launches;
    found->second.us += result.steps[s].time_us;
  }
  Table table({"step", ">launches", ">us each", ">us all", "method", "instruction"});
  for (const std::string& instruction : order) {
    const Row& row = rows.at(instruction);
    table.add({row.name, with_commas(row.launches),
               fmt::format("{:.2f}", row.us / static_cast<double>(row.launches)),
               fmt::format("{:.2f}", row.us), row.method, instruction});
  }
  return table.text();
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
  cli.print(dump.loops.empty() ? script_steps_text(dump.script, result.program)
                               : launches_text(dump.script, result.program));
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
  const std::string db = a.db.empty() ? default_store_path() : a.db;
  Store store = Store::open(db);  // before the long work
  const Model model = a.model.empty() ? model_of(dump) : load_model(a.model);
  Peer peer = peer_of(std::move(dump), model);
  TrialSpec spec = spec_of(peer, target);
  spec.seed = a.seed;
  spec.inputs_dir = a.inputs;
  spec.cache = options.cache;
  spec.sampled = options.sampled;
  spec.check = a.check;
  std::vector<Literal> inputs = trial_inputs(model, spec);
  const std::size_t steps = peer.dump.script.steps.size();
  PeerRun ran = run_peer(peer, inputs, target, options, [&](std::size_t step, const std::string& name) {
    cli.progress(fmt::format("[{} of {}] {}", step + 1, steps, name));
  });
  std::optional<CheckResult> check;
  if (a.check && !ran.outputs.empty()) {
    cli.progress("checking against the reference");
    check = Judge(model.graph, std::move(inputs), arithmetic_of(peer.dump, target)).check(ran.outputs);
  }
  if (!a.outputs.empty()) std::filesystem::create_directories(a.outputs);
  for (std::size_t i = 0; i < ran.outputs.size() && !a.outputs.empty(); ++i)
    write_npy(fmt::format("{}/out{}.npy", a.outputs, i), ran.outputs[i]);
  cli.progress("");
  if (!ran.result.program.findings.empty() || (check && !check->ok)) cli.exit_code = kExitBadInput;
  print_dump_run(cli, peer.dump, target, options, ran.result, check);
  const std::int64_t attempt =
      store.record("adhoc", model, spec, trial_of(peer, model, target, std::move(ran), std::move(check)));
  cli.err << fmt::format("stored as attempt {} in {}\n", attempt, db);
}

}  // namespace stitchwork
