// The command line: interfaces promised to scripts and people (docs/cli.md). Each command is a file; it turns
// options into calls of the libraries below and prints the result as text or, under --json, as one document.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/planners/fusionstitching/library.h"
#include "analysis/planners/planner.h"
#include "codegen/executable.h"
#include "core/passes/trip_count.h"
#include "experiments/model.h"

namespace stitchwork {

/// Exit codes of every command.
enum ExitCode { kExitOk = 0, kExitBadInput = 1, kExitUsage = 2, kExitDifference = 3 };

/// What commands share: where to print, how, and the exit code they leave.
struct Cli {
  std::ostream& out;
  std::ostream& err;
  bool json = false;
  bool terminal = false;  ///< stderr is a terminal: progress is shown
  int exit_code = kExitOk;
  std::vector<std::string> words;  ///< the command line as given, without the program
  mutable int out_errno = 0;       ///< why `out` took no more

  /// Prints `document` with two-space indentation.
  void print(const nlohmann::ordered_json& document) const;
  void print(std::string_view text) const;
  void print(const std::string& text) const { print(std::string_view(text)); }
  void print(const char* text) const { print(std::string_view(text)); }
  /// `writes` to `out`, and keeps why that failed.
  void to_out(const std::function<void()>& writes) const;
  /// One line on stderr, rewritten in place; only on a terminal. An empty text clears it.
  void progress(const std::string& text) const;
};

/// Runs one command line. Errors are caught here and nowhere else: one line on stderr, or an error document
/// on stdout under --json.
int run_cli(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

inline constexpr const char* kModelHelp =
    "HLO text (.hlo, .txt), an ONNX model (.onnx), either also .gz, the name of a dataset, or - for stdin";

/// What a model leaves open: an ONNX model's sizes and values (docs/onnx.md), how often loops run. Options of
/// every command that reads a model.
struct ModelOptions {
  std::vector<std::string> dims, values, trips;

  void add(CLI::App& command);
  Model load(const std::string& name, OpTrace* trace = nullptr, Graph* as_read = nullptr) const;
};

/// MODEL, or --plan FILE, with --planner, --device, --set: the options of every command that needs a plan.
struct PlanArguments {
  std::string model;
  ModelOptions open;
  std::string plan_file;
  std::string planner = "astitch";
  std::string device = "v100-sxm2";
  std::vector<std::string> set;
  std::string override_file;
  std::string library_file;
  bool mixed = false;  ///< a library whose times are of several methods is taken
  bool tf32 = false;
  std::vector<std::string> weights;

  void add_model(CLI::App& command);
  const CLI::Option* add_device(CLI::App& command);
  void add_knobs(CLI::App& command);     ///< --set, --override, --weights, --tf32
  void add_options(CLI::App& command);   ///< those, --library and --mixed
  void add_planner(CLI::App& command);   ///< --planner, and those
  void add_planning(CLI::App& command);  ///< --plan, and those
  /// What `library` points to lives as long as this.
  PlanOptions options(bool record_decisions = false) const;
  /// Of --library, read once; nullptr without.
  const fusionstitching::PerformanceLibrary* library() const;

 private:
  mutable std::optional<fusionstitching::PerformanceLibrary> library_;
};

/// A model with the plan asked for: loaded from --plan, or made.
struct Planned {
  Model model;
  const Device* device = nullptr;
  FusionPlan plan;

  const Graph& graph() const { return planned_graph(model.graph, plan); }
};
/// `trace`: takes what became of the ops of the model's file; `as_read`: the module before any pass.
Planned load_planned(const PlanArguments& arguments, bool record_decisions = false, OpTrace* trace = nullptr,
                     Graph* as_read = nullptr);
/// The same with the decisions that explain tells of an op, by the name that the file has it by.
Planned load_explained(const PlanArguments& arguments, OpTrace& trace, const std::string& op);

/// Loops of a document: op, computation, trips (null: unknown).
nlohmann::ordered_json loops_json(const std::vector<LoopTrips>& loops);
/// The first of them and their trips, and that they are counted; in 120 columns, for names of 20.
std::string loops_line(const std::vector<LoopTrips>& loops);

/// What compilation found of registers and residency, on stderr.
void print_checks(const Cli& cli, const Executable& executable);

/// Adds --fast-math (CompileOptions).
void add_fast_math(CLI::App& command, bool& fast_math);
/// Adds --sanitize, as sim::parse_sanitizers reads it.
void add_sanitize(CLI::App& command, std::string& sanitizers);

/// Adds --json and examples to a command.
void add_common(CLI::App& command, Cli& cli, const std::string& examples);

// The commands.
void add_info(CLI::App& app, Cli& cli);
void add_inputs(CLI::App& app, Cli& cli);
void add_datasets(CLI::App& app, Cli& cli);
void add_lists(CLI::App& app, Cli& cli);  ///< devices, planners
void add_rules(CLI::App& app, Cli& cli);
void add_rewrite(CLI::App& app, Cli& cli);
void add_plan(CLI::App& app, Cli& cli);
void add_verify(CLI::App& app, Cli& cli);
void add_explain(CLI::App& app, Cli& cli);
void add_advise(CLI::App& app, Cli& cli);
void add_compare(CLI::App& app, Cli& cli);
void add_quality(CLI::App& app, Cli& cli);
void add_diff(CLI::App& app, Cli& cli);
void add_compile(CLI::App& app, Cli& cli);
void add_run(CLI::App& app, Cli& cli);
void add_explore(CLI::App& app, Cli& cli);
void add_ptx(CLI::App& app, Cli& cli);
void add_occupancy(CLI::App& app, Cli& cli);
void add_experiment(CLI::App& app, Cli& cli);
void add_reproduce(CLI::App& app, Cli& cli);
void add_figure(CLI::App& app, Cli& cli);
void add_library(CLI::App& app, Cli& cli);
void add_profile(CLI::App& app, Cli& cli);
void add_report(CLI::App& app, Cli& cli);
void add_view(CLI::App& app, Cli& cli);
void add_demo(CLI::App& app, Cli& cli);
void add_completion(CLI::App& app, Cli& cli);
void add_man(CLI::App& app, Cli& cli);

}  // namespace stitchwork
