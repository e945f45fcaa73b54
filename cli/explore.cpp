// stitchwork explore MODEL: Astra's custom-wirer over mini-batches
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/json/plan_json.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "cli/usage.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/format.h"
#include "experiments/explore_buckets.h"
#include "figures/data/renderer.h"
#include "runtime/cuda/gpu.h"

namespace stitchwork {
namespace {

struct ExploreArguments {
  PlanArguments plan;
  std::string times = "modelled", mode = "exact", history, output, figure;
  std::vector<std::string> state, buckets;
  std::string lengths;
  std::size_t batches = 0;
  std::uint64_t seed = 0;
  int repeats = 3;
  bool resume = false, check = false, train = false;
  const CLI::Option* limited = nullptr;  ///< --batches, whether it was given
  const CLI::Option* device = nullptr;   ///< likewise
};

/// By the name's end; before the long work.
std::optional<FigureFormat> format_of(const std::string& file) {
  if (file.empty()) return std::nullopt;
  for (const FigureFormat format : {FigureFormat::kSvg, FigureFormat::kPdf, FigureFormat::kPng})
    if (file.ends_with("." + std::string(name(format)))) {
      if (!can_render()) throw Error(file, 0, 0, "cannot be drawn: " + why_not_rendered());
      return format;
    }
  throw Error(file, 0, 0, "is no kind of figure", "known: .svg, .pdf, .png");
}

/// "7,776" or "10^812"
std::string size_text(double log10) {
  // No quantity: as many digits as are exact.
  constexpr double kExactDigits = 15;
  if (log10 > kExactDigits) return fmt::format("10^{:.0f}", log10);
  return with_commas(static_cast<long long>(std::llround(std::pow(10, log10))));
}

/// Of the best mini-batch's products: "tiled-32x32/8 (2), tiled-64x64 (1)".
std::string kernels_of(const Exploration& e) {
  std::map<std::string, int> products;
  for (const auto& [name, option] : e.minibatches[e.best].bindings)
    if (std::find(e.kernels.begin(), e.kernels.end(), option) != e.kernels.end()) ++products[option];
  std::vector<std::string> texts;
  for (const auto& [kernel, count] : products) texts.push_back(fmt::format("{} ({})", kernel, count));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string summary(const Exploration& e) {
  Table table({"tried", ">mini-batches"});
  for (const char* dimension : {"default", "fusion", "kernels", "streams", "allocations"})
    if (const auto found = e.by_dimension.find(dimension); found != e.by_dimension.end())
      table.add({dimension, with_commas(static_cast<long long>(found->second))});
  const MiniBatch &first = e.minibatches.front(), &best = e.minibatches[e.best], &last = e.minibatches.back();
  std::string text = table.text();
  text += fmt::format("first {:.2f} us, best {:.2f} us (mini-batch {}, {:.2f}x), last {:.2f} us ({})\n",
                      first.us, best.us, e.best + 1, first.us / best.us, last.us, e.method);
  text += fmt::format(
      "{}{}; option by option {} trials, all configurations {}; {}\n",
      fmt::format("{} mini-batches", with_commas(static_cast<long long>(e.minibatches.size()))),
      e.resumed > 0 ? fmt::format(", {} of them before", e.resumed) : "", with_commas(std::llround(e.trials)),
      size_text(e.log10_configurations), e.done ? "nothing is left to try" : "there is more to try");
  if (first.loss && last.loss)
    text += fmt::format("trained: loss {:.6g} of the first mini-batch, {:.6g} of the last; {}\n", *first.loss,
                        *last.loss, e.state);
  else if (!e.state.empty())
    text += fmt::format("trained: {}\n", e.state);
  if (e.points_overhead)
    text +=
        fmt::format("events behind the steps make mini-batches {:.2f} % longer\n", 100 * *e.points_overhead);
  if (e.library_us)
    text += fmt::format("products by {}; the best with a library's, modelled: {:.2f} us\n", kernels_of(e),
                        *e.library_us);
  if (!e.why_library.empty()) text += fmt::format("products are a library's, modelled: {}\n", e.why_library);
  text += fmt::format("{}: {}; predicted {:.2f} us (modelled)", e.planner, to_text(e.plan.counts),
                      e.plan.predicted_us);
  return text;
}

/// But for what is fed back, which the model says.
ExploreOptions options_of(Cli& cli, const ExploreArguments& a) {
  ExploreOptions options;
  options.trial.planner = a.plan.planner;
  options.trial.options = a.plan.options();
  options.trial.device = a.plan.device;
  options.trial.backend = a.times == "modelled" ? "model" : a.times == "measured" ? "cuda" : "sim";
  options.trial.repeats = a.repeats;
  options.trial.sampled = a.mode == "sampled";
  options.trial.seed = a.seed;
  options.trial.check = a.check;
  if (a.times == "modelled" && a.check)
    throw Error("--check needs mini-batches that are run", "use --times simulated, or measured");
  if (a.times != "simulated" && options.trial.sampled)
    throw Error("--mode sampled is of simulated mini-batches", "use --times simulated, or leave it out");
  if ((a.train || !a.state.empty()) && options.trial.sampled)
    throw Error("--mode sampled makes no results that could be fed back", "leave out --train, or --mode");
  if (options.trial.backend == "cuda" && a.device->count() == 0)
    options.trial.device = cuda::described(cuda::gpu(*cuda::load_driver(), 0)).id;
  if (a.limited->count() > 0) options.batches = a.batches;
  if (a.resume && a.history.empty())
    throw Error("--resume goes on with a history", "name its file with --history");
  options.history = a.history;
  options.resume = a.resume;
  options.progress = [&](std::size_t done, double last_us, double best_us, const std::string& what) {
    cli.progress(done == 0 ? what
                           : fmt::format("[mini-batch {}] {:.2f} us, best {:.2f} us; {}", done, last_us,
                                         best_us, what));
  };
  return options;
}

void feed_back(const ExploreArguments& a, const Model& model, ExploreOptions& options) {
  if (a.train && a.state.empty()) options.train = training_state(model.graph);
  for (const std::string& one : a.state) {
    if (!options.train) options.train.emplace();
    options.train->push_back(parse_fed_back(model, one));
  }
}

void write_results(const Exploration& e, const Model& model, const std::string& output,
                   const std::string& figure, const std::optional<FigureFormat>& format) {
  if (e.minibatches.empty()) return;
  if (format) write_file(figure, render_figure(trajectory(e), *format));
  if (!output.empty()) write_file(output, plan_document(model.graph, e.plan).dump(2) + "\n");
}

void explore_model(Cli& cli, const ExploreArguments& a) {
  const std::optional<FigureFormat> format = format_of(a.figure);
  ExploreOptions options = options_of(cli, a);
  const Model model = a.plan.open.load(a.plan.model);
  feed_back(a, model, options);
  const Exploration e = explore(model, options);
  cli.progress("");
  write_results(e, model, a.output, a.figure, format);
  if (cli.json) {
    nlohmann::ordered_json document = exploration_json(e);
    document["history"] = a.history.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(a.history);
    return cli.print(document);
  }
  if (e.minibatches.empty()) return cli.print("no mini-batch was run");
  cli.print(summary(e));
}

/// "best.b13.json"
std::string of_bucket(const std::string& file, int length) {
  if (file.empty()) return "";
  std::filesystem::path path = file;
  return path.replace_extension(fmt::format(".b{}{}", length, path.extension().string())).string();
}

std::string summary(const BucketedExploration& e) {
  Table table({"bucket", ">share", ">mini-batches", ">first us", ">best us", ">", "left"});
  for (std::size_t b = 0; b < e.buckets.size(); ++b) {
    const Exploration& of = e.explorations[b];
    const std::string count = with_commas(static_cast<long long>(of.minibatches.size()));
    const std::string share = fmt::format("{:.1f} %", 100 * e.shares[b]);
    if (of.minibatches.empty()) {
      table.add({fmt::to_string(e.buckets[b].length), share, count, "-", "-", "-", "all"});
      continue;
    }
    const double first = of.minibatches.front().us, best = of.minibatches[of.best].us;
    table.add({fmt::to_string(e.buckets[b].length), share, count, fmt::format("{:.2f}", first),
               fmt::format("{:.2f}", best), fmt::format("{:.2f}x", first / best),
               of.done ? "nothing" : "there is more to try"});
  }
  std::string text = table.text();
  if (e.first_us && e.best_us)
    text += fmt::format("a mini-batch of these shares: first {:.2f} us, best {:.2f} us, {:.2f}x ({}); ",
                        *e.first_us, *e.best_us, *e.first_us / *e.best_us, e.explorations.front().method);
  text += fmt::format("{} mini-batches", with_commas(static_cast<long long>(e.minibatches)));
  return text;
}

void explore_models(Cli& cli, const ExploreArguments& a) {
  const std::optional<FigureFormat> format = format_of(a.figure);
  ExploreOptions options = options_of(cli, a);
  const std::vector<Bucket> buckets = parse_buckets(a.buckets);
  const std::vector<int> lengths =
      a.lengths.empty() ? std::vector<int>() : parse_lengths(read_file(a.lengths), a.lengths);
  std::vector<Model> models;
  for (const Bucket& bucket : buckets) models.push_back(a.plan.open.load(bucket.model));
  feed_back(a, models.front(), options);
  const BucketedExploration e = explore_buckets(buckets, models, lengths, options);
  cli.progress("");
  for (std::size_t b = 0; b < buckets.size(); ++b)
    write_results(e.explorations[b], models[b], of_bucket(a.output, buckets[b].length),
                  of_bucket(a.figure, buckets[b].length), format);
  if (cli.json) return cli.print(exploration_json(e));
  cli.print(summary(e));
}

}  // namespace

void add_explore(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand(
      "explore", "run mini-batches of a training step, each another way, and keep the fastest");
  auto a = std::make_shared<ExploreArguments>();
  a->plan.planner = "astra";
  CLI::Option* model = command->add_option("MODEL", a->plan.model, kModelHelp);
  a->plan.open.add(*command);
  command
      ->add_option("--planner,-p", a->plan.planner,
                   "what is explored: astra-f, astra-fk, astra-fks, astra, astra+astitch")
      ->capture_default_str();
  a->plan.add_knobs(*command);
  a->device = a->plan.add_device(*command);
  command
      ->add_option("--times", a->times,
                   "of mini-batches: modelled; simulated (kernels, and matrix products by our own; other "
                   "library calls are modelled); or measured, each run as a whole on this machine's GPU")
      ->check(CLI::IsMember({"modelled", "simulated", "measured"}))
      ->capture_default_str();
  command->add_option("--mode", a->mode, "simulated: exact or sampled, all or some of each kernel's blocks")
      ->check(CLI::IsMember({"exact", "sampled"}))
      ->capture_default_str();
  command->add_option("--repeats", a->repeats, "measured: passes of a mini-batch, of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_seed(*command, a->seed, "of the generated inputs");
  command->add_flag(
      "--train", a->train,
      "mini-batches that are run train: what a step makes of the model's parameters is the next "
      "one's, and its other inputs are drawn anew");
  command
      ->add_option("--state", a->state,
                   "likewise, with these results and parameters: RESULT=PARAMETER[,...], numbers or names "
                   "(default: those that optimizers write element by element)")
      ->delimiter(',');
  command->add_flag(
      "--check", a->check,
      "simulated or measured: each plan's results are compared with the model's, each simulated product's "
      "with the host's");
  a->limited = command->add_option(
      "--batches", a->batches, "mini-batches to run now, at most (default: until nothing is left to try)");
  command->add_option("--history", a->history, "file that keeps every mini-batch, whenever this is stopped");
  command->add_flag("--resume", a->resume, "go on with the history, or begin it");
  command->add_option("-o,--output", a->output, "write the best plan as JSON");
  command->add_option("--figure", a->figure, "draw each mini-batch's time: FILE.svg, .pdf or .png");
  CLI::Option* buckets =
      command
          ->add_option("--buckets", a->buckets,
                       "in place of MODEL: it unrolled to several lengths, LENGTH=MODEL[,...], ascending; a "
                       "mini-batch runs in the first that holds it")
          ->delimiter(',')
          ->excludes(model);
  command
      ->add_option(
          "--lengths", a->lengths,
          "file with the length of each mini-batch's sequences, one a line (default: buckets are drawn "
          "equally)")
      ->needs(buckets);
  add_common(
      *command, cli,
      "  stitchwork explore stacked_lstm_tiny\n"
      "  stitchwork explore scrnn_tiny --times simulated --check --batches 20\n"
      "  stitchwork explore scrnn_tiny -p astra+astitch --device p100 -o best.json --figure trials.svg\n"
      "  stitchwork explore scrnn_tiny --times measured --train --history trained.db\n"
      "  stitchwork explore --buckets 13=rnn_t13.hlo.gz,30=rnn_t30.hlo.gz --lengths lengths.txt\n"
      "  stitchwork explore scrnn_tiny --history scrnn.db --batches 30\n"
      "  stitchwork explore scrnn_tiny --history scrnn.db --resume");
  command->callback([&cli, a] {
    if (!a->buckets.empty()) return explore_models(cli, *a);
    if (a->plan.model.empty()) throw CLI::RequiredError("MODEL");
    explore_model(cli, *a);
  });
}

}  // namespace stitchwork
