#include "cli/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>

#include "core/base/suggest.h"

namespace stitchwork {
namespace {

/// The command that the words name, as far as they do: `run`, `ptx run`, or the program.
const CLI::App& command_of(const CLI::App& app, const std::vector<std::string>& words, std::size_t& used) {
  const CLI::App* at = &app;
  for (used = 0; used < words.size(); ++used) {
    const std::vector<const CLI::App*> subs = at->get_subcommands({});
    const auto next = std::find_if(subs.begin(), subs.end(),
                                   [&](const CLI::App* sub) { return sub->get_name() == words[used]; });
    if (next == subs.end()) break;
    at = *next;
  }
  return *at;
}

/// "did you mean plan?", or "".
std::string near(const std::string& word, const std::vector<std::string>& names) {
  const std::string_view found = closest(word, {names.begin(), names.end()});
  return found.empty() ? std::string() : fmt::format("did you mean {}?", found);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// The first word that looks like an option and is none of the command's.
std::string unknown_option(const CLI::App& command, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (!word.starts_with("--") || word.size() < 3) continue;
    const std::string name = word.substr(0, word.find('='));
    if (command.get_option_no_throw(name) == nullptr) return name;
  }
  return {};
}

/// Those of its commands that have the option.
std::vector<std::string> commands_with(const CLI::App& command, const std::string& option) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands({}))
    if (sub->get_option_no_throw(option) != nullptr) names.push_back(sub->get_name());
  return names;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return text;
}

}  // namespace

std::string full_name(const CLI::App& command) {
  return command.get_parent() == nullptr ? command.get_name()
                                         : full_name(*command.get_parent()) + " " + command.get_name();
}

Error usage_error(const CLI::App& app, std::vector<std::string> words, const CLI::ParseError& error) {
  std::erase(words, "--json");  // wherever it stands
  std::size_t used = 0;
  const CLI::App& command = command_of(app, words, used);
  const std::string help = fmt::format("`{} --help` shows how", full_name(command));
  const auto hint = [&](const std::string& nearest) { return nearest.empty() ? help : nearest + " " + help; };
  const bool names_one = used < words.size() && !words[used].starts_with("-");
  if (!command.get_subcommands({}).empty() && command.get_require_subcommand_min() > 0) {
    const std::vector<std::string> known = command_names(command);
    if (names_one)
      return Error(fmt::format("{} has no command '{}'", full_name(command), words[used]),
                   hint(near(words[used], known)));
    const std::string option = unknown_option(command, words);
    if (option.empty())
      return Error("no command given", fmt::format("one of {}; {}", fmt::join(known, ", "), help));
    const std::vector<std::string> those = commands_with(command, option);
    return Error(fmt::format("{} has no option {}", full_name(command), option),
                 those.empty() ? hint(near(option, options_of(command)))
                               : fmt::format("an option stands behind its command, here one of {}; {}",
                                             fmt::join(those, ", "), help));
  }
  if (const std::string option = unknown_option(command, words);
      !option.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    return Error(fmt::format("{} has no option {}", full_name(command), option),
                 hint(near(option, options_of(command))));
  const std::string said = one_line(error.what());
  const std::size_t colon = std::min(said.find(": "), said.size());  // "NAME: what", "what: words"
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && colon < said.size())
    return Error(fmt::format("{} takes no '{}' there", full_name(command), said.substr(colon + 2)), help);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && said.ends_with(" missing"))
    return Error(fmt::format("{}: {} needs a value", full_name(command), said.substr(0, colon)), help);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && said.find(": At Most 1 ") == colon)
    return Error(fmt::format("{}: {} is given more than once", full_name(command), said.substr(0, colon)),
                 help);
  return Error(fmt::format("{}: {}", full_name(command), said), help);
}

UsageError no_model() { return UsageError("no model given", "name a file or dataset, or give --plan FILE"); }

void add_seed(CLI::App& command, std::uint64_t& seed, const std::string& help) {
  command
      .add_option_function<std::string>(
          "--seed",
          [&seed](const std::string& text) {
            const char* end = text.data() + text.size();
            const auto [at, failure] = std::from_chars(text.data(), end, seed);
            if (failure != std::errc() || at != end)
              throw CLI::ValidationError("--seed", fmt::format("'{}' is no whole number from 0 to "
                                                               "18446744073709551615",
                                                               text));
          },
          help)
      ->default_str(fmt::to_string(seed));
}

}  // namespace stitchwork
