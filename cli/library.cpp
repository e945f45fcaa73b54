// stitchwork library collect|show|merge: times of single ops (FusionStitching 2018, section 4.4).
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cli/cli.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/version.h"
#include "experiments/library_collect.h"
#include "experiments/performance_library.h"
#include "runtime/cuda/backend.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct CollectArguments {
  PlanArguments plan;
  std::vector<std::string> models;
  std::string backend = "sim", mode = "exact", db;
  int repeats = 20;
  bool mixed = false;
  const CLI::Option* device = nullptr;  ///< whether it was given
};

void collect(Cli& cli, const CollectArguments& a) {
  CollectOptions options;
  options.planner = a.plan.planner;
  options.plan = a.plan.options();
  options.backend = a.backend;
  options.sampled = a.mode == "sampled";
  options.repeats = a.repeats;
  options.mixed = a.mixed;
  options.progress = [&](std::size_t done, std::size_t of, const std::string& what) {
    cli.progress(of == 0 ? what : fmt::format("[{}/{}] {}", done, of, what));
  };
  const bool unnamed_gpu = a.backend == "cuda" && a.device->count() == 0;
  const Device& target =
      unnamed_gpu ? cuda::described(cuda::gpu(*cuda::load_driver(), 0)) : device(a.plan.device);
  std::vector<Model> models;
  for (const std::string& name : a.models) models.push_back(a.plan.open.load(name));
  const Collected done = collect_library(models, target, a.db, options);
  cli.progress("");
  if (cli.json)
    return cli.print(ordered_json{{"schema", "stitchwork.library-collection/1"},
                                  {"library", a.db},
                                  {"device", target.id},
                                  {"models", a.models},
                                  {"planner", a.plan.planner},
                                  {"method", done.method},
                                  {"built", done.built},
                                  {"keys", done.keys},
                                  {"missing", done.missing},
                                  {"rounds", done.rounds},
                                  {"compiler", done.built > 0 ? ordered_json(done.compiler) : ordered_json()},
                                  {"sha256", done.sha256}});
  cli.print(fmt::format("{}: {} kernels built and {}, {} keys of {}, {} missing; planned {} times", a.db,
                        with_commas(static_cast<long long>(done.built)), done.method,
                        with_commas(static_cast<long long>(done.keys)), target.id, done.missing,
                        done.rounds));
}

/// The rows of one op and method, whatever their schedules.
struct OpRows {
  std::size_t keys = 0;
  const LibraryRow* fastest = nullptr;
  double most_us = 0;
};

/// "tanh f32[64,256]" and "row 0/4 t128": the op, and how it was cut.
std::pair<std::string, std::string> parts_of(const std::string& key) {
  const std::size_t at = key.find(" row ");
  if (at == std::string::npos) return {key, ""};
  return {key.substr(0, at), key.substr(at + 1)};
}

void show(Cli& cli, const std::string& file) {
  const LibraryContents contents = read_library(file);
  std::set<std::string> compilers, versions;
  for (const LibraryRow& row : contents.rows) {
    compilers.insert(row.compiler);
    versions.insert(row.tool_version);
  }
  if (cli.json) {
    ordered_json rows = ordered_json::array();
    for (const LibraryRow& row : contents.rows)
      rows.push_back({{"key", row.key},
                      {"us", row.us},
                      {"method", row.method},
                      {"compiler", row.compiler},
                      {"tool_version", row.tool_version}});
    return cli.print(ordered_json{{"schema", "stitchwork.library/1"},
                                  {"library", file},
                                  {"sha256", contents.sha256},
                                  {"device", contents.device()},
                                  {"methods", contents.methods},
                                  {"rows", rows}});
  }
  std::map<std::pair<std::string, std::string>, OpRows> ops;
  for (const LibraryRow& row : contents.rows) {
    OpRows& of = ops[{parts_of(row.key).first, row.method}];
    ++of.keys;
    if (of.fastest == nullptr || row.us < of.fastest->us) of.fastest = &row;
    of.most_us = std::max(of.most_us, row.us);
  }
  Table table({"op", ">keys", "method", ">us at least", ">at most", "fastest"});
  for (const auto& [op, of] : ops)
    table.add({op.first, fmt::to_string(of.keys), op.second, fmt::format("{:.2f}", of.fastest->us),
               fmt::format("{:.2f}", of.most_us), parts_of(of.fastest->key).second});
  std::string text = table.text();
  text += fmt::format(
      "{} keys of {}, {}; by {}; sha256 {}\n", contents.rows.size(),
      contents.rows.empty() ? "no device" : contents.device(),
      contents.methods.empty() ? "no times" : fmt::format("{}", fmt::join(contents.methods, " and ")),
      compilers.empty() ? "no compiler" : fmt::format("{}", fmt::join(compilers, " and ")), contents.sha256);
  if (std::any_of(versions.begin(), versions.end(),
                  [](const std::string& version) { return version != results_version(); }))
    text += fmt::format("timed by programs of results {}; this one's are {}\n", fmt::join(versions, ", "),
                        results_version());
  cli.print(text);
}

void merge(Cli& cli, const std::string& into, const std::vector<std::string>& from, bool mixed) {
  const LibraryMerged merged = merge_libraries(into, from, mixed);
  if (cli.json)
    return cli.print(ordered_json{{"schema", "stitchwork.library-merge/1"},
                                  {"library", into},
                                  {"others", from},
                                  {"added", merged.added},
                                  {"known", merged.known}});
  cli.print(fmt::format("{} keys added to {}, {} were there", merged.added, into, merged.known));
}

void add_collect(CLI::App& library, Cli& cli) {
  CLI::App* command = library.add_subcommand(
      "collect", "build and time the kernels of single ops that planning of models asks for");
  auto a = std::make_shared<CollectArguments>();
  a->plan.planner = "fusionstitching-2018";
  command->add_option("MODEL", a->models, kModelHelp)->required();
  a->plan.open.add(*command);
  command->add_option("--planner,-p", a->plan.planner, "planner that takes a library")->capture_default_str();
  a->plan.add_knobs(*command);
  a->device = a->plan.add_device(*command);
  command->add_option("--backend", a->backend, "sim (simulated) or cuda (measured)")
      ->check(CLI::IsMember({"sim", "cuda"}))
      ->capture_default_str();
  command->add_option("--mode", a->mode, "exact or sampled: simulate all or some of each kernel's blocks")
      ->check(CLI::IsMember({"exact", "sampled"}))
      ->capture_default_str();
  command->add_option("--repeats", a->repeats, "launches of each kernel on a GPU")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--db", a->db, "the library's file; what it has is not built again")->required();
  command->add_flag("--mixed", a->mixed, "add to a library whose times are of another method");
  add_common(*command, cli,
             "  stitchwork library collect softmax_tiny layer_norm_tiny --device v100 --db v100.library\n"
             "  stitchwork library collect bert_layer --backend cuda --db measured.library");
  command->callback([&cli, a] { collect(cli, *a); });
}

}  // namespace

void add_library(CLI::App& app, Cli& cli) {
  CLI::App* library =
      app.add_subcommand("library", "times of single ops that planners choose by: collect, show, merge");
  library->require_subcommand(1);
  add_collect(*library, cli);
  {
    CLI::App* command = library->add_subcommand("show", "what a library holds");
    auto file = std::make_shared<std::string>();
    command->add_option("FILE", *file, "of `stitchwork library collect`")->required();
    add_common(*command, cli, "  stitchwork library show v100.library");
    command->callback([&cli, file] { show(cli, *file); });
  }
  {
    CLI::App* command = library->add_subcommand("merge", "add the times of other libraries");
    auto into = std::make_shared<std::string>();
    auto from = std::make_shared<std::vector<std::string>>();
    auto mixed = std::make_shared<bool>(false);
    command->add_option("INTO", *into, "library that is added to, made where it is missing")->required();
    command->add_option("FROM", *from, "libraries of the same device; they are not changed")->required();
    command->add_flag("--mixed", *mixed, "also where times are of several methods");
    add_common(*command, cli, "  stitchwork library merge all.library monday.library tuesday.library");
    command->callback([&cli, into, from, mixed] { merge(cli, *into, *from, *mixed); });
  }
}

}  // namespace stitchwork
