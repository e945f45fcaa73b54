// stitchwork rewrite MODEL: the same model written by other ops.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/json/plan_json.h"
#include "cli/cli.h"
#include "cli/compare_graphs.h"
#include "cli/usage.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/format.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"
#include "core/substitute/derivation.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;
using rewriting::Derivation;
using rewriting::RewrittenGraph;
using rewriting::Rule;

constexpr const char* kTidy = "tidy";

struct RewriteArguments {
  std::string model, at, output;
  ModelOptions open;
  std::vector<std::string> rules;
  bool check = false;
  std::uint64_t seed = 0;
};

void apply_rule(Derivation& derivation, const std::string& name, const std::string& at) {
  if (name == kTidy) {
    derivation.tidy();
    return;
  }
  const Rule& rule = rewriting::rule_named(name);
  if (at.empty()) {
    derivation.apply_everywhere(rule);
  } else if (!derivation.apply(rule, rewriting::computation_of(derivation.result().graph, at), at)) {
    throw Error(derivation.result().graph.source, 0, 0, fmt::format("{} does not hold at {}", name, at),
                fmt::format("{}, if {}", rule.summary, rule.holds));
  }
}

/// Names of the ops that one has and the other lacks, by computation.
std::vector<std::pair<const Computation*, const Node*>> lacking(const Graph& has, const Graph& lacks) {
  std::vector<std::pair<const Computation*, const Node*>> result;
  for (const ComputationId id : rewriting::running_computations(has)) {
    const Computation& computation = has.computation(id);
    std::set<std::string_view> names;
    if (const ComputationId other = rewriting::computation_named(lacks, computation.name); other >= 0)
      for (const Node& node : lacks.computation(other).nodes) names.insert(node.name);
    for (const Node& node : computation.nodes)
      if (!names.contains(node.name)) result.emplace_back(&computation, &node);
  }
  return result;
}

int running_ops(const Graph& graph) {
  int ops = 0;
  for (const ComputationId id : rewriting::running_computations(graph)) ops += graph.computation(id).size();
  return ops;
}

ordered_json made_json(const RewrittenGraph& rewritten) {
  ordered_json made = ordered_json::array();
  for (const auto& [computation, node] : lacking(rewritten.graph, *rewritten.model)) {
    const Computation& model = *rewritten.model_computation(computation->name);
    const auto id =
        static_cast<std::size_t>(rewriting::computation_named(rewritten.graph, computation->name));
    ordered_json origins = ordered_json::array();
    for (const NodeId origin : rewritten.origins[id].of[static_cast<std::size_t>(node->id)])
      origins.push_back(model.node(origin).name);
    made.push_back({{"op", node->name},
                    {"computation", computation->name},
                    {"shape", to_text(node->shape)},
                    {"for", origins}});
  }
  return made;
}

ordered_json gone_json(const RewrittenGraph& rewritten) {
  ordered_json gone = ordered_json::array();
  for (const auto& [computation, node] : lacking(*rewritten.model, rewritten.graph)) {
    ordered_json now;
    if (const ComputationId id = rewriting::computation_named(rewritten.graph, computation->name); id >= 0)
      if (const NodeId by =
              rewritten.origins[static_cast<std::size_t>(id)].now[static_cast<std::size_t>(node->id)];
          by != kNoNode)
        now = rewritten.graph.computation(id).node(by).name;
    gone.push_back({{"op", node->name}, {"computation", computation->name}, {"now", now}});
  }
  return gone;
}

ordered_json document(const Model& model, const RewrittenGraph& rewritten, const RewriteArguments& a,
                      const std::optional<GraphComparison>& check) {
  ordered_json result{
      {"schema", "stitchwork.rewrite/1"},
      {"model", {{"path", model.graph.source}, {"sha256", model.graph.source_sha256}}},
      {"steps", rewrites_to_json(rewritten.steps)},
      {"ops", {{"before", running_ops(model.graph)}, {"after", running_ops(rewritten.graph)}}},
      {"made", made_json(rewritten)},
      {"gone", gone_json(rewritten)},
      {"graph_sha256", sha256_hex(to_text(rewritten.graph))},
      {"output", a.output.empty() ? ordered_json() : ordered_json(a.output)},
      {"check", nullptr}};
  if (!check) return result;
  result["check"] = to_json(*check, a.seed);
  return result;
}

void rewrite(Cli& cli, const RewriteArguments& a) {
  std::vector<std::string> names = a.rules;
  for (const std::string& name : names)
    if (name != kTidy) rewriting::rule_named(name);  // before a model is read
  if (names.empty() && !a.at.empty())
    throw Error("--at needs rules", "for example --rules dot-chain --at dot.31");
  const Model model = a.open.load(a.model);
  Derivation derivation(model.graph);
  for (const std::string& name : names) apply_rule(derivation, name, a.at);
  derivation.tidy();
  const RewrittenGraph& rewritten = derivation.result();
  validate(rewritten.graph);
  if (!a.output.empty()) write_file(a.output, to_text(rewritten.graph));
  std::optional<GraphComparison> check;
  if (a.check) check = compare_graphs(model, rewritten, a.seed, false);
  if (check && !check->judged.ok) cli.exit_code = kExitBadInput;
  if (cli.json) return cli.print(document(model, rewritten, a, check));
  std::string text =
      rewritten.steps.empty() ? "no rule holds: nothing is changed\n" : to_text(rewritten.steps);
  text += fmt::format("{} ops, {} before; {} made, {} gone\n", with_commas(running_ops(rewritten.graph)),
                      with_commas(running_ops(model.graph)), lacking(rewritten.graph, model.graph).size(),
                      lacking(model.graph, rewritten.graph).size());
  if (check) text += results_text(*check);
  cli.print(text);
}

}  // namespace

void add_rewrite(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("rewrite", "write a model by other ops, by rules");
  auto a = std::make_shared<RewriteArguments>();
  command->add_option("MODEL", a->model, kModelHelp)->required();
  a->open.add(*command);
  command
      ->add_option(
          "--rules", a->rules,
          "rules (`stitchwork rules`), or tidy, in this order, each wherever it holds: R[,R...]; tidy "
          "rules follow in any case")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--at", a->at, "the op at which the rules are to hold, and no other");
  command->add_flag("--check", a->check, "evaluate both graphs and compare their results");
  add_seed(*command, a->seed, "of the inputs of --check");
  command->add_option("-o,--output", a->output, "write the graph as HLO text");
  add_common(*command, cli,
             "  stitchwork rewrite softmax_block --rules softmax-dot --check\n"
             "  stitchwork rewrite my_model.hlo -o tidy.hlo\n"
             "  stitchwork rewrite softmax_block --rules scale-out-of-dot --at dot.31 -o out.hlo --json");
  command->callback([&cli, a] { rewrite(cli, *a); });
}

}  // namespace stitchwork
