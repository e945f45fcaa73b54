// stitchwork completion bash|zsh|fish: generated from the commands themselves.
#include <map>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "core/substitute/rule.h"
#include "occupancy_model/device.h"

namespace stitchwork {
namespace {

struct CommandWords {
  std::string path, name, help;             ///< "experiment run", "run", what it does
  std::vector<std::string> options, below;  ///< below: names of its own commands
};

/// Depth first, as the help lists them.
void add_commands(const CLI::App& app, const std::string& path, std::vector<CommandWords>& commands) {
  for (const CLI::App* sub : app.get_subcommands({})) {
    CommandWords words{path.empty() ? sub->get_name() : path + " " + sub->get_name(),
                       sub->get_name(),
                       sub->get_description(),
                       {},
                       {}};
    for (const CLI::Option* option : sub->get_options())
      for (const std::string& name : option->get_lnames()) words.options.push_back("--" + name);
    for (const CLI::App* nested : sub->get_subcommands({})) words.below.push_back(nested->get_name());
    const std::string own = words.path;
    commands.push_back(std::move(words));
    add_commands(*sub, own, commands);
  }
}

std::vector<CommandWords> commands_of(const CLI::App& app) {
  std::vector<CommandWords> commands;
  add_commands(app, "", commands);
  return commands;
}

bool is_nested(const CommandWords& command) { return command.path.size() != command.name.size(); }

std::vector<std::string> model_words() {
  std::vector<std::string> words;
  for (const Dataset& d : datasets()) words.push_back(d.name);
  return words;
}

/// Options whose values are known names.
struct Values {
  std::vector<std::string_view> options;
  std::vector<std::string> words;
};

std::vector<Values> option_values() {
  Values planner_names{{"--planner", "--planners"}, {}}, device_ids{{"--device", "--devices"}, {}},
      knob_values{{"--set"}, {}}, rule_names{{"--rules"}, {"tidy"}};
  for (const Planner& p : planners()) planner_names.words.emplace_back(p.name);
  for (const Device& d : devices()) {
    device_ids.words.push_back(d.id);
    device_ids.words.insert(device_ids.words.end(), d.aliases.begin(), d.aliases.end());
  }
  for (const Knob& k : knobs())
    for (const std::string_view value : k.values)
      knob_values.words.push_back(fmt::format("{}={}", k.name, value));
  for (const rewriting::Rule& rule : rewriting::rules()) rule_names.words.emplace_back(rule.name);
  return {planner_names, device_ids, knob_values, rule_names};
}

std::string bash(const std::vector<CommandWords>& commands) {
  std::string names, nested, cases, values;
  for (const CommandWords& c : commands) {
    (is_nested(c) ? nested : names) +=
        is_nested(c) ? fmt::format("{}\"{}\"", nested.empty() ? "" : "|", c.path) : c.name + " ";
    cases += fmt::format("    \"{}\") words=\"{}\"; below=\"{}\" ;;\n", c.path, fmt::join(c.options, " "),
                         fmt::join(c.below, " "));
  }
  for (const Values& v : option_values())
    values += fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;\n",
                          fmt::join(v.options, "|"), fmt::join(v.words, " "));
  return fmt::format(
      R"sh(_stitchwork() {{
  local words below command=${{COMP_WORDS[1]}} i current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{}" -- "$current"))
    return
  fi
  for ((i = 2; i < COMP_CWORD; ++i)); do
    case "$command ${{COMP_WORDS[i]}}" in
      {}) command="$command ${{COMP_WORDS[i]}}" ;;
      *) break ;;
    esac
  done
  case $before in
    -p) before=--planner ;;
    -d) before=--device ;;
    --at) COMPREPLY=($(compgen -W "$(stitchwork completion --ops "${{COMP_WORDS[2]}}" 2>/dev/null)" -- "$current")); return ;;
  esac
  case $before in
{}  esac
  case $command in
{}  esac
  case $current in
    -*) ;;
    *) if [ -n "$below" ]; then
         COMPREPLY=($(compgen -W "$below" -- "$current"))
         return
       fi
       words="$words {}"
       if [ "$command" = explain ] && [ "$COMP_CWORD" -eq 3 ]; then
         words="$(stitchwork completion --ops "${{COMP_WORDS[2]}}" 2>/dev/null)"
       fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -f -- "$current"))
}}
complete -o filenames -F _stitchwork stitchwork
)sh",
      names, nested, values, cases, fmt::join(model_words(), " "));
}

/// To be sourced, and to lie in $fpath: there it is the function that zsh calls.
std::string zsh(const std::vector<CommandWords>& commands) {
  return "#compdef stitchwork\nautoload -U +X bashcompinit && bashcompinit\n" + bash(commands) +
         "if [ \"${funcstack[1]}\" = _stitchwork ]; then _bash_complete -o filenames -F _stitchwork; fi\n";
}

/// For single quotes of fish.
std::string quoted_for_fish(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '\'') result += '\\';
    result += c;
  }
  return result;
}

std::string fish(const std::vector<CommandWords>& commands) {
  // Whether the line begins with a command's words; whether it ends with them.
  std::string text = R"fish(function __stitchwork_is
  set -l words (commandline -opc)[2..]
  set -l n (count $argv)
  test (count $words) -ge $n; and test "$words[1..$n]" = "$argv"
end
function __stitchwork_asks
  test (count (commandline -opc)) -eq (math 1 + (count $argv)); and begin
    test (count $argv) -eq 0; or __stitchwork_is $argv
  end
end
)fish";
  std::map<std::string, std::vector<std::string>> known;
  for (const Values& v : option_values())
    for (const std::string_view option : v.options) known[std::string(option)] = v.words;
  for (const CommandWords& c : commands) {
    const std::string parent = is_nested(c) ? c.path.substr(0, c.path.size() - c.name.size() - 1) : "";
    text += fmt::format("complete -c stitchwork -n '__stitchwork_asks {}' -f -a {} -d '{}'\n", parent, c.name,
                        quoted_for_fish(c.help));
    for (const std::string& option : c.options) {
      const std::string seen =
          fmt::format("complete -c stitchwork -n '__stitchwork_is {}' -l {}", c.path, option.substr(2));
      if (const auto values = known.find(option); values != known.end())
        text += fmt::format("{} -x -a '{}'\n", seen, fmt::join(values->second, " "));
      else
        text += seen + "\n";
    }
  }
  std::string takes_models = "not __stitchwork_asks";
  for (const CommandWords& c : commands)
    if (!c.below.empty()) takes_models += "; and not __stitchwork_asks " + c.path;
  for (const std::string& model : model_words())
    text += fmt::format("complete -c stitchwork -n '{}' -a {}\n", takes_models, model);
  return text +
         "complete -c stitchwork -n '__fish_seen_subcommand_from explain' -a "
         "'(stitchwork completion --ops (commandline -opc)[3] 2>/dev/null)'\n"
         "complete -c stitchwork -n '__fish_seen_subcommand_from rewrite' -l at -x -a "
         "'(stitchwork completion --ops (commandline -opc)[3] 2>/dev/null)'\n";
}

std::vector<std::string> ops_of(const std::string& model) {
  std::vector<std::string> ops;
  for (const Node& node : load_model(model).graph.entry_computation().nodes) ops.push_back(node.name);
  return ops;
}

}  // namespace

void add_completion(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("completion", "shell completion");
  auto shell = std::make_shared<std::string>(), model = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->add_option("--ops", *model, "the names of a model's ops instead, a line each");
  add_common(*command, cli, "  source <(stitchwork completion bash)\n  stitchwork completion fish | source");
  command->callback([&cli, &app, shell, model] {
    nlohmann::ordered_json document{{"schema", "stitchwork.completion/1"}};
    if (!model->empty()) {
      const std::vector<std::string> ops = ops_of(*model);
      document["ops"] = ops;
      return cli.json ? cli.print(document) : cli.print(fmt::format("{}", fmt::join(ops, "\n")));
    }
    if (shell->empty()) throw CLI::RequiredError("SHELL");
    const std::vector<CommandWords> commands = commands_of(app);
    const std::string text = *shell == "bash"  ? bash(commands)
                             : *shell == "zsh" ? zsh(commands)
                                               : fish(commands);
    document["shell"] = *shell;
    document["text"] = text;
    cli.json ? cli.print(document) : cli.print(text);
  });
}

}  // namespace stitchwork
