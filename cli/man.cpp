// stitchwork man: a page of the manual for each command, from the commands themselves.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/usage.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/version.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;

/// What the program reads of its environment; docs/cli.md says the same.
struct Variable {
  const char *name, *meaning;
};
constexpr Variable kVariables[] = {
    {"STITCHWORK_DATASETS", "another folder of datasets"},
    {"STITCHWORK_EXPERIMENTS", "another folder of experiments and papers' values"},
    {"STITCHWORK_DEVICES", "a folder of device descriptions that are added, or replace those of the same id"},
    {"STITCHWORK_FIGURES", "another module that draws figures"},
    {"STITCHWORK_COMPILED_BY", "the compiler whose kernels in the cache are taken where none is installed"},
    {"CUDA_HOME", "the CUDA toolkit"},
    {"XDG_DATA_HOME", "the default store is stitchwork/runs.db in it (default ~/.local/share)"},
    {"XDG_CACHE_HOME", "compiled kernels are kept in stitchwork/ in it (default ~/.cache)"},
};

struct Page {
  std::string file, command, text;
};

/// Text of a page: backslashes, hyphens and what begins a request are escaped, `words` are bold.
std::string escaped(std::string_view text) {
  std::string result;
  bool bold = false, begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    begins = c == '\n';
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else if (c == '`')
      result += (bold = !bold) ? "\\fB" : "\\fR";
    else
      result += c;
  }
  return bold ? result + "\\fR" : result;
}

std::string page_name(const CLI::App& command) {
  std::string name = full_name(command);
  std::ranges::replace(name, ' ', '-');
  return name;
}

/// "MODEL", "--planner,-p TEXT": how an option is written.
std::string written_option(const CLI::Option& option) {
  if (option.get_positional() && !option.nonpositional())
    return fmt::format("\\fI{}\\fR", escaped(option.get_name(true)));
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("\\fB" + escaped("-" + name) + "\\fR");
  for (const std::string& name : option.get_lnames()) names.push_back("\\fB" + escaped("--" + name) + "\\fR");
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (option.get_items_expected_max() > 0 && !option.get_type_name().empty())
    text += " \\fI" + escaped(option.get_type_name()) + "\\fR";
  return text;
}

std::string synopsis(const CLI::App& command) {
  std::string text = fmt::format("\\fB{}\\fR", escaped(full_name(command)));
  if (!command.get_subcommands({}).empty()) text += " \\fICOMMAND\\fR";
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name =
        escaped(option->get_name(true)) + (option->get_items_expected_max() > 1 ? "..." : "");
    text += option->get_required() ? fmt::format(" \\fI{}\\fR", name) : fmt::format(" [\\fI{}\\fR]", name);
  }
  return text + " [\\fIoptions\\fR]";
}

std::string options_section(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    std::string meaning = escaped(option->get_description());
    if (!option->get_default_str().empty())
      meaning += fmt::format(" (default {})", escaped(option->get_default_str()));
    if (option->get_required()) meaning += " (required)";
    text += fmt::format(".TP\n{}\n{}\n", written_option(*option), meaning);
  }
  return text.empty() ? text : ".SH OPTIONS\n" + text;
}

std::string commands_section(const CLI::App& command) {
  std::string text;
  for (const CLI::App* sub : command.get_subcommands({}))
    text +=
        fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", escaped(page_name(*sub)), escaped(sub->get_description()));
  return text.empty() ? text : ".SH COMMANDS\n" + text;
}

std::string examples_section(const CLI::App& command) {
  std::string footer = command.get_footer();
  constexpr std::string_view kHeading = "Examples:\n";
  if (!footer.starts_with(kHeading)) return {};
  return fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", escaped(footer.substr(kHeading.size())));
}

/// What holds for the program as a whole.
std::string program_sections() {
  std::string text = ".SH ENVIRONMENT\n";
  for (const Variable& v : kVariables) text += fmt::format(".TP\n.B {}\n{}\n", v.name, escaped(v.meaning));
  return text +
         ".SH FILES\nDatasets, experiments, devices and schemas are in share/stitchwork of the prefix that "
         "the program lies in.\n";
}

Page page_of(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  const std::string name = page_name(command);
  std::string heading = name;
  std::ranges::transform(heading, heading.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string text = fmt::format(".TH {} 1 \"\" \"stitchwork {}\" \"Stitchwork\"\n", escaped(heading),
                                 escaped(version().described));
  text += fmt::format(".SH NAME\n{} \\- {}\n", escaped(name), escaped(command.get_description()));
  text += fmt::format(".SH SYNOPSIS\n{}\n", synopsis(command));
  text += commands_section(command) + options_section(command) + examples_section(command);
  text +=
      ".SH EXIT STATUS\n0: done. 1: bad input, or something was checked and found wrong. 2: wrong usage. 3: "
      "a difference was found where asked to fail on one.\n";
  if (parent == nullptr) text += program_sections();
  text += fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n",
                      escaped(parent == nullptr ? "stitchwork-gui" : page_name(*parent)));
  return {name + ".1", full_name(command), text};
}

void collect_pages(const CLI::App& command, std::vector<Page>& pages) {
  pages.push_back(page_of(command));
  for (const CLI::App* sub : command.get_subcommands({})) collect_pages(*sub, pages);
}

/// The page of the command that the words name.
Page asked_page(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<Page> pages;
  collect_pages(app, pages);
  const std::string asked = fmt::format("stitchwork{}{}", words.empty() ? "" : " ", fmt::join(words, " "));
  const auto found = std::ranges::find(pages, asked, &Page::command);
  if (found == pages.end())
    throw Error(fmt::format("no command '{}' has a page", fmt::join(words, " ")),
                "`stitchwork --help` lists the commands");
  return *found;
}

void write_pages(const Cli& cli, const CLI::App& app, const std::string& folder) {
  std::vector<Page> pages;
  collect_pages(app, pages);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(folder, 0, 0, fmt::format("cannot be made: {}", error.message()));
  std::vector<std::string> files;
  for (const Page& page : pages) {
    files.push_back((fs::path(folder) / page.file).string());
    write_file(files.back(), page.text);
  }
  if (cli.json) return cli.print(nlohmann::ordered_json{{"schema", "stitchwork.man/1"}, {"files", files}});
  cli.print(fmt::format("{} pages written to {}", files.size(), folder));
}

}  // namespace

void add_man(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("man", "pages of the manual, one a command");
  auto words = std::make_shared<std::vector<std::string>>();
  auto folder = std::make_shared<std::string>();
  command->add_option("COMMAND", *words, "whose page is printed; none: the program's");
  command->add_option("-o", *folder, "writes the pages of all commands to this folder instead");
  add_common(*command, cli, "  stitchwork man experiment run\n  stitchwork man -o man1");
  command->callback([&cli, &app, words, folder] {
    if (!folder->empty()) return write_pages(cli, app, *folder);
    const Page page = asked_page(app, *words);
    if (!cli.json) return cli.print(page.text);
    cli.print(nlohmann::ordered_json{
        {"schema", "stitchwork.man/1"}, {"command", page.command}, {"file", page.file}, {"text", page.text}});
  });
}

}  // namespace stitchwork
