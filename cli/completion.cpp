// stitchwork completion bash|zsh|fish: generated from the commands themselves.
#include "cli/cli.h"

namespace stitchwork {
namespace {

struct CommandWords {
  std::string name, help;
  std::vector<std::string> options;
};

std::vector<CommandWords> commands_of(const CLI::App& app) {
  std::vector<CommandWords> commands;
  for (const CLI::App* sub : app.get_subcommands({})) {
    CommandWords words{sub->get_name(), sub->get_description(), {}};
    for (const CLI::Option* option : sub->get_options())
      for (const std::string& name : option->get_lnames()) words.options.push_back("--" + name);
    for (const CLI::App* nested : sub->get_subcommands({})) words.options.push_back(nested->get_name());
    commands.push_back(std::move(words));
  }
  return commands;
}

std::vector<std::string> model_words() {
  std::vector<std::string> words;
  for (const Dataset& d : datasets()) words.push_back(d.name);
  return words;
}

std::string bash(const std::vector<CommandWords>& commands) {
  std::string names, cases;
  for (const CommandWords& c : commands) {
    names += c.name + " ";
    cases += fmt::format("    {}) words=\"{}\" ;;\n", c.name, fmt::join(c.options, " "));
  }
  return fmt::format(
      "_stitchwork() {{\n  local words current=${{COMP_WORDS[COMP_CWORD]}}\n  if [ \"$COMP_CWORD\" -eq 1 ]; "
      "then\n"
      "    COMPREPLY=($(compgen -W \"{}\" -- \"$current\"))\n    return\n  fi\n  case ${{COMP_WORDS[1]}} "
      "in\n{}  esac\n"
      "  case $current in\n    -*) ;;\n    *) words=\"$words {}\" ;;\n  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -f -- \"$current\"))\n}}\ncomplete -o filenames -F _stitchwork "
      "stitchwork\n",
      names, cases, fmt::join(model_words(), " "));
}

std::string zsh(const std::vector<CommandWords>& commands) {
  return "autoload -U +X bashcompinit && bashcompinit\n" + bash(commands);
}

std::string fish(const std::vector<CommandWords>& commands) {
  std::string text;
  for (const CommandWords& c : commands) {
    text += fmt::format("complete -c stitchwork -n __fish_use_subcommand -a {} -d '{}'\n", c.name, c.help);
    for (const std::string& option : c.options)
      text += option.rfind("--", 0) == 0
                  ? fmt::format("complete -c stitchwork -n '__fish_seen_subcommand_from {}' -l {}\n", c.name,
                                option.substr(2))
                  : fmt::format("complete -c stitchwork -n '__fish_seen_subcommand_from {}' -a {}\n", c.name,
                                option);
  }
  for (const std::string& model : model_words()) text += fmt::format("complete -c stitchwork -a {}\n", model);
  return text;
}

}  // namespace

void add_completion(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("completion", "shell completion");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_common(*command, cli, "  source <(stitchwork completion bash)\n  stitchwork completion fish | source");
  command->callback([&cli, &app, shell] {
    const std::vector<CommandWords> commands = commands_of(app);
    const std::string text = *shell == "bash"  ? bash(commands)
                             : *shell == "zsh" ? zsh(commands)
                                               : fish(commands);
    cli.print(text);
  });
}

}  // namespace stitchwork
