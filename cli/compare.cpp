// stitchwork compare MODEL --planners a,b,c
#include "analysis/explain/compare.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/compare_table.h"
#include "cli/peer_plan.h"
#include "cli/table.h"
#include "core/base/format.h"
#include "core/passes/trip_count.h"

namespace stitchwork {

namespace {

using nlohmann::ordered_json;

/// A column: its head and the text of a row, in the table and, all digits, as comma-separated values.
struct Column {
  std::string_view head, key;
  std::string (*text)(const CompareRow&);
  std::string (*digits)(const CompareRow&);
};

/// A number that a compiler's plan has none of, or that was not asked for.
std::string or_none(bool known, const std::string& text) { return known ? text : "-"; }

constexpr Column kColumns[] = {
    {"planner", "planner", [](const CompareRow& r) { return r.planner; },
     [](const CompareRow& r) { return r.planner; }},
    {"device", "device", [](const CompareRow& r) { return r.device; },
     [](const CompareRow& r) { return r.device; }},
    {">kernels", "memory_kernels", [](const CompareRow& r) { return with_commas(r.memory_kernels); },
     [](const CompareRow& r) { return fmt::to_string(r.memory_kernels); }},
    {">launched", "dynamic_memory_kernels", [](const CompareRow& r) { return with_commas(r.launched); },
     [](const CompareRow& r) { return fmt::to_string(r.launched); }},
    {">with products", "product_kernels", [](const CompareRow& r) { return with_commas(r.product_kernels); },
     [](const CompareRow& r) { return fmt::to_string(r.product_kernels); }},
    {">calls", "library_calls", [](const CompareRow& r) { return with_commas(r.library_calls); },
     [](const CompareRow& r) { return fmt::to_string(r.library_calls); }},
    {">copies", "copies", [](const CompareRow& r) { return with_commas(r.copies); },
     [](const CompareRow& r) { return fmt::to_string(r.copies); }},
    {">barriers", "grid_barriers", [](const CompareRow& r) { return with_commas(r.grid_barriers); },
     [](const CompareRow& r) { return fmt::to_string(r.grid_barriers); }},
    {">us", "predicted_us",
     [](const CompareRow& r) { return or_none(!r.method.empty(), fmt::format("{:.1f}", r.predicted_us)); },
     [](const CompareRow& r) { return or_none(!r.method.empty(), fmt::to_string(r.predicted_us)); }},
    {">of kernels", "memory_us",
     [](const CompareRow& r) { return or_none(!r.method.empty(), fmt::format("{:.1f}", r.memory_us)); },
     [](const CompareRow& r) { return or_none(!r.method.empty(), fmt::to_string(r.memory_us)); }},
    {">once us", "once_us", [](const CompareRow& r) { return fmt::format("{:.1f}", r.once_us); },
     [](const CompareRow& r) { return fmt::to_string(r.once_us); }},
    {"method", "method", [](const CompareRow& r) { return or_none(!r.method.empty(), r.method); },
     [](const CompareRow& r) { return r.method; }},
    {">DRAM bytes", "dram_bytes",
     [](const CompareRow& r) { return or_none(!r.method.empty(), with_commas(r.dram_bytes)); },
     [](const CompareRow& r) { return or_none(!r.method.empty(), fmt::to_string(r.dram_bytes)); }},
    {">recomputed", "recomputed_elements",
     [](const CompareRow& r) { return or_none(r.dump.empty(), with_commas(r.recomputed_elements)); },
     [](const CompareRow& r) { return or_none(r.dump.empty(), fmt::to_string(r.recomputed_elements)); }},
    {">plan ms", "plan_ms",
     [](const CompareRow& r) { return or_none(r.dump.empty(), fmt::format("{:.1f}", r.plan_ms)); },
     [](const CompareRow& r) { return or_none(r.dump.empty(), fmt::to_string(r.plan_ms)); }},
};

/// Columns in which rows differ, or that say more beside a compiler's rows, are shown then only.
bool is_shown(std::string_view key, const std::vector<CompareRow>& rows) {
  const auto any = [&](auto holds) { return std::ranges::any_of(rows, holds); };
  if (key == "device") return any([&](const CompareRow& r) { return r.device != rows.front().device; });
  if (key == "dynamic_memory_kernels")
    return any([](const CompareRow& r) { return r.launched != r.memory_kernels; });
  // Every line of the table has the devices' names then, and no room for a column of zeros.
  if (key == "copies" && is_shown("device", rows))
    return any([](const CompareRow& r) { return r.copies > 0; });
  if (key == "once_us") return any([](const CompareRow& r) { return r.once_us > 0; });
  if (key == "product_kernels") return any([](const CompareRow& r) { return r.product_kernels > 0; });
  if (key == "memory_us" || key == "method") return any([](const CompareRow& r) { return !r.dump.empty(); });
  return true;
}

Table table_of(const std::vector<CompareRow>& rows) {
  std::vector<std::string> heads;
  const bool dumps = is_shown("method", rows);
  for (const Column& column : kColumns)
    if (is_shown(column.key, rows))
      heads.emplace_back(column.key == "predicted_us" && !dumps ? ">predicted us" : column.head);
  Table table(heads);
  for (const CompareRow& r : rows) {
    std::vector<std::string> row;
    for (const Column& column : kColumns)
      if (is_shown(column.key, rows)) row.push_back(column.text(r));
    table.add(std::move(row));
  }
  return table;
}

/// Every column under its name in the document, all digits.
std::string csv_of(const std::vector<CompareRow>& rows) {
  std::vector<std::string> heads;
  for (const Column& column : kColumns) heads.emplace_back(column.key);
  Table table(heads);
  for (const CompareRow& r : rows) {
    std::vector<std::string> row;
    for (const Column& column : kColumns) row.push_back(column.digits(r));
    table.add(std::move(row));
  }
  return table.csv();
}

ordered_json to_json(const CompareRow& r) {
  const auto timed = [&](auto value) { return r.method.empty() ? ordered_json() : ordered_json(value); };
  const auto planned = [&](auto value) { return r.dump.empty() ? ordered_json(value) : ordered_json(); };
  return {{"planner", r.planner},
          {"dump", r.dump.empty() ? ordered_json() : ordered_json(r.dump)},
          {"device", r.device},
          {"method", timed(r.method)},
          {"memory_kernels", r.memory_kernels},
          {"dynamic_memory_kernels", r.launched},
          {"product_kernels", r.product_kernels},
          {"library_calls", r.library_calls},
          {"copies", r.copies},
          {"grid_barriers", r.grid_barriers},
          {"predicted_us", timed(r.predicted_us)},
          {"memory_us", timed(r.memory_us)},
          {"once_us", planned(r.once_us)},
          {"dram_bytes", timed(r.dram_bytes)},
          {"recomputed_elements", planned(r.recomputed_elements)},
          {"plan_ms", planned(r.plan_ms)}};
}

struct CompareArguments {
  PlanArguments plan;
  std::vector<std::string> planners, devices, dumps;
  bool csv = false, untimed = false;
  const CLI::Option* device = nullptr;  ///< whether it was given
};

/// Compilers' plans, each on the device that it is for, which has to be the one that was asked for.
std::vector<CompareRow> rows_of_dumps(const Cli& cli, const Model& model, const CompareArguments& a) {
  std::vector<CompareRow> rows;
  for (const std::string& path : a.dumps) {
    if (a.device->count() > 0) require_card(read_dump(path), device(a.plan.device));
    const Peer peer = shown_peer(cli, path, model, !a.untimed);
    rows.push_back(row_of(model.graph, peer.plan, 0));
  }
  return rows;
}

void compare_command(Cli& cli, const CompareArguments& a) {
  if (a.plan.model.empty()) throw CLI::RequiredError("MODEL");
  const Model model = a.plan.open.load(a.plan.model);
  std::vector<std::string> names = a.planners, targets = a.devices;
  if (names.empty())
    for (const Planner& p : planners_for(model.graph)) names.emplace_back(p.name);
  std::vector<CompareRow> of_dumps = rows_of_dumps(cli, model, a);
  if (targets.empty())
    targets.push_back(of_dumps.empty() || a.device->count() > 0 ? a.plan.device : of_dumps.front().device);
  std::vector<CompareRow> rows;
  for (const std::string& target : targets)
    for (CompareRow& row : compare(model.graph, device(target), names, a.plan.options()))
      rows.push_back(std::move(row));
  rows.insert(rows.end(), of_dumps.begin(), of_dumps.end());
  const std::vector<LoopTrips> known = loops(model.graph);
  if (cli.json) {
    ordered_json list = ordered_json::array();
    for (const CompareRow& r : rows) list.push_back(to_json(r));
    return cli.print(
        ordered_json{{"schema", "stitchwork.compare/1"},
                     {"model", {{"path", model.graph.source}, {"sha256", model.graph.source_sha256}}},
                     {"device", device(targets.front()).id},
                     {"loops", loops_json(known)},
                     {"rows", list}});
  }
  if (a.csv) return cli.print(csv_of(rows));
  cli.print(compare_table(rows));
  cli.print(fmt::format("{}{}; times, bytes and recomputation are modelled from the plans{}",
                        model.graph.source,
                        targets.size() == 1 ? " on " + device(targets.front()).id : std::string(),
                        of_dumps.empty() ? ""
                                         : "; compilers' own kernels were run in the simulator, their "
                                           "library calls are modelled"));
  if (!known.empty()) cli.print(loops_line(known));
}

}  // namespace

std::string compare_table(const std::vector<CompareRow>& rows) { return table_of(rows).text(); }

void add_compare(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("compare", "planners side by side on one model");
  auto a = std::make_shared<CompareArguments>();
  a->plan.add_model(*command);
  a->device = a->plan.add_device(*command);
  command
      ->add_option("--with", a->dumps,
                   "what compilers made of the model (docs/peers.md), comma-separated: run in the simulator, "
                   "a row each")
      ->take_all()
      ->delimiter(',');
  add_untimed(*command, a->untimed);
  command->add_option("--devices", a->devices, "comma-separated: a row a planner and device")->delimiter(',');
  command->add_option("--planners", a->planners, "comma-separated (default: all that take the model)")
      ->delimiter(',');
  command->add_flag("--csv", a->csv, "the rows as comma-separated values, all digits");
  a->plan.add_options(*command);
  add_common(*command, cli,
             "  stitchwork compare bert_base --planners unfused,xla,astitch\n"
             "  stitchwork compare fig7 --device a100-sxm-80 --json\n"
             "  stitchwork compare fig7 --devices v100,t4,h200 --csv\n"
             "  stitchwork compare softmax --with dumps/softmax-a100");
  command->callback([&cli, a] { compare_command(cli, *a); });
}

}  // namespace stitchwork
