// stitchwork rules: the substitutions that `stitchwork rewrite` knows.
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/cli.h"
#include "core/substitute/rule.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

void list_rules(Cli& cli) {
  std::vector<rewriting::Rule> rules(rewriting::rules().begin(), rewriting::rules().end());
  rules.insert(rules.end(), rewriting::chosen_rules().begin(), rewriting::chosen_rules().end());
  if (cli.json) {
    ordered_json rows = ordered_json::array();
    for (const rewriting::Rule& rule : rules)
      rows.push_back({{"name", rule.name},
                      {"summary", rule.summary},
                      {"holds", rule.holds},
                      {"exactness", rewriting::name(rule.exactness)},
                      {"tidy", rule.tidy},
                      {"macro", rule.steps != nullptr}});
    return cli.print(ordered_json{{"schema", "stitchwork.rules/1"}, {"rules", rows}});
  }
  std::string text;
  for (const rewriting::Rule& rule : rules)
    text += fmt::format("{} ({}{}{}{})\n  {}\n  if {}\n", rule.name, rewriting::name(rule.exactness),
                        rule.tidy ? ", tidy" : "", rule.steps != nullptr ? ", macro" : "",
                        rule.find_all != nullptr ? ", chosen by planners" : "", rule.summary, rule.holds);
  cli.print(text);
}

}  // namespace

void add_rules(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("rules", "list the rules that rewrite a graph");
  add_common(*command, cli, "  stitchwork rules\n  stitchwork rules --json");
  command->callback([&cli] { list_rules(cli); });
}

}  // namespace stitchwork
