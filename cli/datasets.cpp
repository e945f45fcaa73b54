// stitchwork datasets [NAME...]: the models that come with the program, or all that is known of some of them.
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/table.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const Dataset& d) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? ordered_json() : ordered_json(text);
  };
  return {{"name", d.name},
          {"title", d.title},
          {"description", d.description},
          {"kind", d.kind},
          {"paper", or_null(d.paper)},
          {"substitution", or_null(d.substitution)},
          {"framework", or_null(d.framework)},
          {"dtype", d.dtype},
          {"ops", d.ops},
          {"parameter_bytes", d.parameter_bytes},
          {"large", d.large},
          {"configuration", ordered_json::parse(d.configuration)},
          {"source", d.source},
          {"licence", d.licence}};
}

std::string framework(const Dataset& d) { return d.framework.empty() ? "by hand" : d.framework; }

/// What the other columns of the list leave of 120.
constexpr std::size_t kTitleWidth = 50;

std::string list_text(const std::vector<Dataset>& rows) {
  Table table({"dataset", "class", "type", "from", ">ops", ">inputs", "what it is"});
  for (const Dataset& d : rows) {
    std::string title = d.title;  // `datasets NAME` has all of it
    if (title.size() > kTitleWidth) title = title.substr(0, kTitleWidth - 3) + "...";
    table.add({d.name, d.kind, d.dtype, framework(d), with_commas(d.ops),
               human_bytes(static_cast<double>(d.parameter_bytes)), std::move(title)});
  }
  return table.text();
}

std::string description_text(const Dataset& d) {
  std::string text = fmt::format("{}: {}\n{}\n", d.name, d.title, d.description);
  const auto line = [&](std::string_view what, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<14}{}\n", what, value);
  };
  line("class", d.kind + (d.large ? ", large: tests only plan it" : ""));
  line("paper", d.paper);
  line("in its place", d.substitution);
  line("source", d.source);
  line("from", framework(d));
  line("size", fmt::format("{} ops of {}, {} of inputs", with_commas(d.ops), d.dtype,
                           human_bytes(static_cast<double>(d.parameter_bytes))));
  const ordered_json sizes = ordered_json::parse(d.configuration);
  std::vector<std::string> configuration;
  for (const auto& [key, value] : sizes.items())
    configuration.push_back(
        fmt::format("{}={}", key, value.is_string() ? value.get<std::string>() : value.dump()));
  line("configuration", fmt::format("{}", fmt::join(configuration, " ")));
  line("licence", d.licence);
  line("file", d.path);
  return text;
}

void run_datasets(const Cli& cli, const std::vector<std::string>& names) {
  std::vector<Dataset> rows;
  if (names.empty()) rows = datasets();
  for (const std::string& name : names) rows.push_back(find_dataset(name));
  if (cli.json) {
    ordered_json list = ordered_json::array();
    for (const Dataset& d : rows) list.push_back(to_json(d));
    return cli.print(ordered_json{{"schema", "stitchwork.datasets/1"}, {"datasets", list}});
  }
  if (names.empty()) return cli.print(list_text(rows));
  for (const Dataset& d : rows) cli.print(description_text(d) + (&d == &rows.back() ? "" : "\n"));
}

}  // namespace

void add_datasets(CLI::App& app, Cli& cli) {
  CLI::App* command =
      app.add_subcommand("datasets", "list the models that come with the program, or describe some");
  auto names = std::make_shared<std::vector<std::string>>();
  command->add_option("NAME", *names, "datasets to describe (default: list all)");
  add_common(*command, cli,
             "  stitchwork datasets\n  stitchwork datasets bert dien\n  stitchwork datasets --json");
  command->callback([&cli, names] { run_datasets(cli, *names); });
}

}  // namespace stitchwork
