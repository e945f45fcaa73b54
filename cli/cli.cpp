#include "cli/cli.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <system_error>

#include "analysis/explain/explain.h"
#include "analysis/json/overrides_json.h"
#include "analysis/json/plan_json.h"
#include "analysis/judge/cost.h"
#include "analysis/verify/verify.h"
#include "cli/peer_plan.h"
#include "cli/usage.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/format.h"
#include "core/base/memory.h"
#include "core/base/version.h"
#include "core/passes/trip_count.h"
#include "experiments/performance_library.h"
#include "experiments/schema.h"

namespace stitchwork {
namespace {

std::string version_text() {
  const Version& v = version();
  return fmt::format(
      "stitchwork {} ({}{})\nbuilt with {}\nresults {}\nschemas: plan/1 run/1 compare/1 launch/1 dataset/1 "
      "store/{}",
      v.described, v.commit, v.dirty ? ", modified" : "", v.compiler, results_version(), migrations().size());
}

nlohmann::ordered_json version_json() {
  const Version& v = version();
  return {{"schema", "stitchwork.version/1"},
          {"version", v.described},
          {"release", v.version},
          {"commit", v.commit},
          {"modified", v.dirty},
          {"compiler", v.compiler},
          {"results", results_version()},
          {"schemas",
           {{"plan", 1},
            {"run", 1},
            {"compare", 1},
            {"launch", 1},
            {"dataset", 1},
            {"store", migrations().size()}}}};
}

void report_error(Cli& cli, const Error& e) {
  if (cli.json) {
    nlohmann::ordered_json error{{"file", e.file()},
                                 {"line", e.line()},
                                 {"column", e.column()},
                                 {"message", e.message()},
                                 {"hint", e.hint()}};
    cli.print(nlohmann::ordered_json{{"error", error}});
  } else {
    cli.err << "stitchwork: " << e.what() << "\n";
  }
}

/// `code`, unless what was printed did not arrive: a full disk, a closed pipe.
int written(Cli& cli, int code) {
  cli.to_out([&] { cli.out.flush(); });
  if (cli.out) return code;
  cli.err << fmt::format("stitchwork: stdout: cannot be written{}\n",
                         cli.out_errno != 0 ? fmt::format(": {}", std::strerror(cli.out_errno)) : "");
  return code == kExitOk ? kExitBadInput : code;
}

/// Help within a terminal's width.
class Help : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return within(CLI::Formatter::make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    std::ostringstream text;
    CLI::detail::format_help(text, sub->get_name(), within(sub->get_description()), column_width_);
    return text.str();
  }

 private:
  /// Its lines broken at blanks, for the right column.
  std::string within(const std::string& text) const {
    constexpr std::size_t kWidth = 120;  // A choice, not measured: as wide as tables are
    std::string done;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (!done.empty()) done += '\n';
      std::size_t used = 0;
      std::istringstream words(line);
      for (std::string word; words >> word; used += word.size() + 1) {
        const bool breaks = used > 0 && column_width_ + used + word.size() > kWidth;
        if (used > 0) done += breaks ? '\n' : ' ';
        if (breaks) used = 0;
        done += word;
      }
    }
    return done;
  }
};

/// No memory for an array, or for a thread's stack.
bool ends_memory(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return true;
  const auto* system = dynamic_cast<const std::system_error*>(&e);
  return system != nullptr && (system->code() == std::errc::resource_unavailable_try_again ||
                               system->code() == std::errc::not_enough_memory);
}

Error out_of_memory() {
  return Error(
      fmt::format("this process may use no more memory ({} left)",
                  human_bytes(static_cast<double>(available_memory()))),
      "arrays are simulated in host memory: plan and compare take models that run does not; `ulimit -v` "
      "and the control group say what a process may use");
}

}  // namespace

void Cli::print(const nlohmann::ordered_json& document) const { print(document.dump(2)); }

void Cli::print(std::string_view text) const {
  to_out([&] {
    out << text;
    if (text.empty() || text.back() != '\n') out << "\n";
  });
}

void Cli::to_out(const std::function<void()>& writes) const {
  if (!out) return;  // what went wrong first is told
  errno = 0;
  writes();
  if (!out) out_errno = errno;
}

void Cli::progress(const std::string& text) const {
  if (!terminal) return;
  err << "\r\033[K" << text << std::flush;
}

void ModelOptions::add(CLI::App& command) {
  command
      .add_option("--dim", dims, "size of a symbolic dimension of an ONNX model: NAME=SIZE[,NAME=SIZE...]")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option(
          "--value", values,
          "an input of an ONNX model fixed when it is read: NAME=NUMBERS or NAME=FILE.npy; repeatable")
      ->allow_extra_args(false);
  command
      .add_option("--trips", trips,
                  "how often loops run whose trips the model does not tell: LOOP=N[,LOOP=N...]")
      ->delimiter(',')
      ->allow_extra_args(false);
}

Model ModelOptions::load(const std::string& name, OpTrace* trace, Graph* as_read) const {
  Model model = load_model(name, onnx_options(dims, values), trace, as_read);
  std::map<std::string, std::int64_t> counts;
  for (const std::string& text : trips) {
    const std::size_t equals = text.find('=');
    const char *begin = text.data() + equals + 1, *end = text.data() + text.size();
    std::int64_t count = -1;
    if (equals == std::string::npos || std::from_chars(begin, end, count).ptr != end || count < 0)
      throw Error(fmt::format("--trips {}: expected LOOP=N", text), "for example --trips while.3=100");
    counts[text.substr(0, equals)] = count;
  }
  if (!counts.empty()) model.graph = with_trips(std::move(model.graph), counts);
  return model;
}

void PlanArguments::add_model(CLI::App& command) {
  command.add_option("MODEL", model, kModelHelp);
  open.add(command);
}

const CLI::Option* PlanArguments::add_device(CLI::App& command) {
  return command.add_option("--device,-d", device, "device id or alias (`stitchwork devices`)")
      ->capture_default_str();
}

void PlanArguments::add_knobs(CLI::App& command) {
  command.add_option("--set", set, "knobs: name=value[,name=value...], for planners that have them")
      ->delimiter(',');
  command.add_option("--override", override_file,
                     "JSON of what to plan otherwise (docs/planners/overrides.md)");
  command
      .add_option(
          "--weights", weights,
          "parameters of such names ('params.*') are the same in every run: what depends on them alone "
          "is done once, in no run's time (weights=stable)")
      ->delimiter(',');
  command.add_flag(
      "--tf32", tf32,
      "library products of f32 matrices, and convolutions, may round operands to TF32 (sm_80 and "
      "later): they are timed, on a GPU run, so");
}

void PlanArguments::add_options(CLI::App& command) {
  add_knobs(command);
  command.add_option("--library", library_file,
                     "times of single ops (`stitchwork library collect`) that planners choose by which take "
                     "them: fusionstitching-2018");
  command.add_flag("--mixed", mixed,
                   "take a library whose times are of several methods, measured ones first");
}

void PlanArguments::add_planner(CLI::App& command) {
  command.add_option("--planner,-p", planner, "planner (`stitchwork planners`)")->capture_default_str();
  add_options(command);
}

void PlanArguments::add_planning(CLI::App& command) {
  add_planner(command);
  command.add_option("--plan", plan_file,
                     "a saved plan, or a compiler's dump, instead of MODEL and --planner");
}

PlanOptions PlanArguments::options(bool record_decisions) const {
  PlanOptions result;
  result.record_decisions = record_decisions;
  result.tf32 = tf32;
  for (const std::string& knob : set) {
    const std::size_t equals = knob.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(fmt::format("--set {}: expected name=value", knob),
                  "for example --set dominant_merging=off");
    result.knobs[knob.substr(0, equals)] = knob.substr(equals + 1);
  }
  result.weights = weights;
  if (!weights.empty()) result.knobs.try_emplace("weights", "stable");
  if (!override_file.empty()) result.edits = overrides_from_json(read_file(override_file), override_file);
  result.library = library();
  return result;
}

const fusionstitching::PerformanceLibrary* PlanArguments::library() const {
  if (mixed && library_file.empty()) throw Error("--mixed is of a library", "give --library FILE, too");
  if (library_file.empty()) return nullptr;
  if (!library_) library_ = performance_library(read_library(library_file), library_file, mixed);
  return &*library_;
}

namespace {

/// `options_for`: what the model is planned with, once it is read.
template <typename OptionsFor>
Planned load_and_plan(const PlanArguments& arguments, OpTrace* trace, Graph* as_read,
                      OptionsFor options_for) {
  if (const std::string dump = dump_of(arguments); !dump.empty())
    return load_planned_dump(arguments, dump, trace, as_read);
  Planned planned;
  if (arguments.plan_file.empty()) {
    if (arguments.model.empty()) throw no_model();
    planned.model = arguments.open.load(arguments.model, trace, as_read);
    planned.device = &device(arguments.device);
    planned.plan =
        make_plan(planned.model.graph, *planned.device, arguments.planner, options_for(planned.model.graph));
    return planned;
  }
  if (!arguments.override_file.empty())
    throw Error("--override with --plan: a saved plan is not planned again",
                "give MODEL and --planner instead");
  if (!arguments.weights.empty())
    throw Error("--weights with --plan: a saved plan says itself what is done once",
                "give MODEL and --planner instead");
  const std::string& file = arguments.plan_file;
  const std::string text = read_file(file);
  const PlanHeader header = read_plan_header(text, file);
  planned.model = arguments.open.load(
      arguments.model.empty() ? model_of_plan(header.model_path, file) : arguments.model, trace, as_read);
  if (planned.model.graph.source_sha256 != header.model_sha256)
    throw Error(file, 0, 0,
                fmt::format("made for another version of {} (sha256 {}, the file's is {})", header.model_path,
                            header.model_sha256, planned.model.graph.source_sha256),
                "plan the model again");
  planned.plan = plan_from_json(planned.model.graph, text, file);
  planned.device = &device(planned.plan.device);
  require_valid(planned.model.graph, *planned.device, planned.plan, file);
  if (const auto* library = arguments.library(); library && library->sha256 != planned.plan.library)
    throw Error(file, 0, 0,
                planned.plan.library.empty()
                    ? std::string("the plan was made without a library")
                    : fmt::format("the plan was made by another library (sha256 {}, that of {} is {})",
                                  planned.plan.library, arguments.library_file, library->sha256),
                "give --plan with the library that it was made by, or MODEL and --planner instead");
  if (arguments.tf32 && !planned.plan.tf32) allow_tf32(planned.model.graph, *planned.device, planned.plan);
  return planned;
}

}  // namespace

Planned load_planned(const PlanArguments& arguments, bool record_decisions, OpTrace* trace, Graph* as_read) {
  return load_and_plan(arguments, trace, as_read,
                       [&](const Graph&) { return arguments.options(record_decisions); });
}

Planned load_explained(const PlanArguments& arguments, OpTrace& trace, const std::string& op) {
  return load_and_plan(arguments, &trace, nullptr, [&](const Graph& model) {
    PlanOptions options = arguments.options(true);
    // Where a planner rewrites the model another op stands for this one, which is not known before.
    if (planner(arguments.planner).rewrite != nullptr) return options;
    const std::optional<AsRead> read = op_as_read(model, trace, op);
    options.decisions_about = std::vector{read ? read->op : op};
    return options;
  });
}

std::string loops_line(const std::vector<LoopTrips>& loops) {
  // A choice, not measured: what 120 columns hold. Loops of unknown trips are told before others.
  constexpr std::size_t kMost = 2;
  std::vector<LoopTrips> shown = loops;
  std::ranges::stable_partition(shown, [](const LoopTrips& loop) { return !loop.trips; });
  const std::size_t more = shown.size() > kMost ? shown.size() - kMost : 0;
  shown.resize(shown.size() - more);
  return fmt::format("loops: {}{}; each counts as often as it runs", to_text(shown),
                     more > 0 ? fmt::format(", {} more (--json)", more) : "");
}

nlohmann::ordered_json loops_json(const std::vector<LoopTrips>& loops) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const LoopTrips& loop : loops)
    list.push_back({{"op", loop.op},
                    {"computation", loop.computation},
                    {"trips", loop.trips ? nlohmann::ordered_json(*loop.trips) : nlohmann::ordered_json()}});
  return list;
}

void print_checks(const Cli& cli, const Executable& executable) {
  // A choice, not measured: a model's layers are alike, and so is what is said of each.
  constexpr int kMostOfRule = 4;
  std::map<std::string, int> said;
  for (const Decision& d : executable.checks)
    if (++said[d.verdict.rule] <= kMostOfRule)
      cli.err << fmt::format("{}: {} [{}]\n", d.subject, d.verdict.why, d.verdict.rule);
  for (const auto& [rule, count] : said)
    if (count > kMostOfRule) cli.err << fmt::format("{} more [{}] (--json)\n", count - kMostOfRule, rule);
}

void add_fast_math(CLI::App& command, bool& fast_math) {
  command.add_flag(
      "--fast-math", fast_math,
      "approximate division, square root, exp, log, tanh, power, sine and cosine; subnormal numbers are "
      "zero");
}

void add_sanitize(CLI::App& command, std::string& sanitizers) {
  command.add_option("--sanitize", sanitizers,
                     "comma-separated: race (unordered accesses), init (memory and registers never set), "
                     "sync (lanes that an "
                     "exchange names and that do not come); mem (bounds), barriers are always checked");
}

void add_common(CLI::App& command, Cli& cli, const std::string& examples) {
  command.add_flag("--json", cli.json, "print one JSON document");
  command.footer("Examples:\n" + examples);
}

int run_cli(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  Cli cli{out, err};
  cli.terminal = isatty(STDERR_FILENO) != 0;
  cli.words.assign(argv + std::min(argc, 1), argv + argc);
  CLI::App app{"How would this model be fused, why, and how fast would it be?", "stitchwork"};
  app.set_version_flag("--version", version_text());
  app.formatter(std::make_shared<Help>());  // of its commands, too
  app.require_subcommand(1);
  for (auto add :
       {add_info,    add_inputs,  add_datasets, add_lists,     add_rules,      add_rewrite,    add_plan,
        add_verify,  add_explain, add_advise,   add_compare,   add_diff,       add_quality,    add_compile,
        add_run,     add_explore, add_ptx,      add_occupancy, add_experiment, add_reproduce,  add_figure,
        add_library, add_profile, add_report,   add_view,      add_demo,       add_completion, add_man})
    add(app, cli);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    cli.json = cli.json || std::find(cli.words.begin(), cli.words.end(), "--json") != cli.words.end();
    if (cli.json && dynamic_cast<const CLI::CallForVersion*>(&e) != nullptr)
      return cli.print(version_json()), written(cli, kExitOk);
    if (e.get_exit_code() == 0) {  // help, version
      cli.to_out([&] { app.exit(e, out, err); });
      return written(cli, kExitOk);
    }
    cli.progress("");
    report_error(cli, usage_error(app, cli.words, e));
    return written(cli, kExitUsage);
  } catch (const Error& e) {
    cli.progress("");
    report_error(cli, e);
    return written(cli, dynamic_cast<const UsageError*>(&e) != nullptr ? kExitUsage : kExitBadInput);
  } catch (const std::exception& e) {
    cli.progress("");
    report_error(cli, ends_memory(e) ? out_of_memory()
                                     : Error(e.what(),
                                             "this is a bug in stitchwork; please report it with "
                                             "the command line"));
    return kExitBadInput;
  }
  return written(cli, cli.exit_code);
}

}  // namespace stitchwork
