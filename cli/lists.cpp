// stitchwork devices | planners
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/table.h"
#include "occupancy_model/device.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

void list_devices(Cli& cli) {
  if (cli.json) {
    ordered_json rows = ordered_json::array();
    for (const Device& d : devices())
      rows.push_back({{"id", d.id},
                      {"aliases", d.aliases},
                      {"name", d.name},
                      {"compute_capability", fmt::format("{}.{}", d.cc_major, d.cc_minor)},
                      {"sms", d.sms},
                      {"clock_ghz", d.clock_ghz},
                      {"shared_bytes_per_sm", d.shared_bytes_per_sm},
                      {"max_warps_per_sm", d.max_warps_per_sm},
                      {"max_blocks_per_sm", d.max_blocks_per_sm},
                      {"l2_bytes", d.l2_bytes},
                      {"dram_gb_s", d.dram_gb_s}});
    return cli.print(ordered_json{{"schema", "stitchwork.devices/1"}, {"devices", rows}});
  }
  Table table({"device", "name", "cc", ">SMs", ">GHz", ">shared KB/SM", ">warps/SM", ">L2 MB", ">GB/s"});
  for (const Device& d : devices())
    table.add({d.aliases.empty() ? d.id : fmt::format("{} ({})", d.id, fmt::join(d.aliases, ", ")), d.name,
               fmt::format("{}.{}", d.cc_major, d.cc_minor), fmt::to_string(d.sms),
               fmt::format("{:g}", d.clock_ghz), fmt::to_string(d.shared_bytes_per_sm / 1024),
               fmt::to_string(d.max_warps_per_sm), fmt::to_string(d.l2_bytes / (1024 * 1024)),
               fmt::format("{:g}", d.dram_gb_s)});
  cli.print(table.text());
}

/// Words in lines of at most `width`.
std::string wrapped(const std::vector<std::string_view>& words, std::size_t width,
                    const std::string& indent) {
  std::string text = indent;
  std::size_t column = indent.size();
  for (const std::string_view word : words) {
    if (column > indent.size() && column + 1 + word.size() > width) {
      text += "\n" + indent;
      column = indent.size();
    }
    if (column > indent.size()) text += " ", ++column;
    text += word;
    column += word.size();
  }
  return text + "\n";
}

std::string knobs_text() {
  Table table({"knob", "values", "default", "what it does"});
  for (const Knob& k : knobs())
    table.add({std::string(k.name), fmt::format("{}", fmt::join(k.values, ", ")),
               std::string(k.default_value), std::string(k.meaning)});
  return table.text();
}

void list_planners(Cli& cli) {
  if (cli.json) {
    ordered_json rows = ordered_json::array(), all = ordered_json::array();
    for (const Planner& p : planners()) {
      ordered_json presets = ordered_json::object();
      for (const KnobSetting& preset : p.presets) presets[std::string(preset.name)] = preset.value;
      rows.push_back({{"name", p.name}, {"summary", p.summary}, {"knobs", p.knobs}, {"presets", presets}});
    }
    for (const Knob& k : knobs())
      all.push_back(
          {{"name", k.name}, {"values", k.values}, {"default", k.default_value}, {"meaning", k.meaning}});
    return cli.print(ordered_json{{"schema", "stitchwork.planners/1"}, {"planners", rows}, {"knobs", all}});
  }
  constexpr std::size_t kColumns = 120;  // A choice, not measured: half of a wide screen.
  std::string text;
  for (const Planner& p : planners()) {
    text += fmt::format("{}: {}\n", p.name, p.summary);
    std::vector<std::string_view> words{"knobs:"};
    words.insert(words.end(), p.knobs.begin(), p.knobs.end());
    if (!p.knobs.empty()) text += wrapped(words, kColumns, "  ");
    for (const KnobSetting& preset : p.presets)
      text += fmt::format("  preset: {}={}\n", preset.name, preset.value);
  }
  cli.print(text + "\nknobs (--set NAME=VALUE[,NAME=VALUE...]; docs/planners/knobs.md)\n" + knobs_text());
}

}  // namespace

void add_lists(CLI::App& app, Cli& cli) {
  struct List {
    const char *name, *help;
    void (*run)(Cli&);
  };
  for (const List& list :
       {List{"devices", "list the GPUs that can be planned for and simulated", list_devices},
        List{"planners", "list the planners and their knobs", list_planners}}) {
    CLI::App* command = app.add_subcommand(list.name, list.help);
    add_common(*command, cli, fmt::format("  stitchwork {0}\n  stitchwork {0} --json", list.name));
    command->callback([&cli, run = list.run] { run(cli); });
  }
}

}  // namespace stitchwork
