// stitchwork info MODEL: what a model is made of.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/explain/statistics.h"
#include "analysis/facts/facts.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

std::string_view class_name(OpClass cls) {
  switch (cls) {
    case OpClass::kSource:
      return "source";
    case OpClass::kLightElementwise:
      return "light element-wise";
    case OpClass::kHeavyElementwise:
      return "heavy element-wise";
    case OpClass::kBroadcast:
      return "broadcast";
    case OpClass::kLayout:
      return "layout";
    case OpClass::kGather:
      return "gather";
    case OpClass::kReduce:
      return "reduce";
    case OpClass::kWindow:
      return "window";
    case OpClass::kScatter:
      return "scatter";
    case OpClass::kLinear:
      return "linear";
    case OpClass::kSort:
      return "sort";
    case OpClass::kStructure:
      return "structure";
    case OpClass::kOpaque:
      return "opaque";
  }
  return "?";
}

struct Facts {
  int ops = 0, memory_ops = 0, library_ops = 0, opaque_ops = 0;
  std::map<std::string, int> classes, opcodes;
  std::map<std::string, int> shapes;
  std::int64_t parameter_bytes = 0;
};

Facts gather_facts(const Graph& graph) {
  Facts facts;
  const Computation& entry = graph.entry_computation();
  for (const Node& node : entry.nodes) {
    ++facts.ops;
    ++facts.classes[std::string(class_name(def(node.op).cls))];
    ++facts.opcodes[std::string(def(node.op).name)];
    if (node.op == Op::kParameter) facts.parameter_bytes += node.shape.byte_size();
    switch (plan_role(node)) {
      case PlanRole::kMemory:
        ++facts.memory_ops;
        ++facts.shapes[to_text(node.shape)];
        break;
      case PlanRole::kLibrary:
        ++facts.library_ops;
        break;
      case PlanRole::kOpaque:
        ++facts.opaque_ops;
        break;
      case PlanRole::kSource:
      case PlanRole::kAlias:
        break;
    }
  }
  return facts;
}

/// Most frequent first, names break ties.
std::vector<std::pair<std::string, int>> ranked(const std::map<std::string, int>& counts) {
  std::vector<std::pair<std::string, int>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return rows;
}

ordered_json to_json(const std::vector<std::pair<std::string, int>>& rows) {
  ordered_json object = ordered_json::object();
  for (const auto& [key, count] : rows) object[key] = count;
  return object;
}

std::string histogram_text(const std::map<int, int>& histogram) {
  Table table({"elements of memory-intensive ops", ">ops", ""});
  int most = 1;
  for (const auto& [power, count] : histogram) most = std::max(most, count);
  for (const auto& [power, count] : histogram)
    table.add({power < 0 ? "none" : fmt::format("from {}", with_commas(1LL << power)), fmt::to_string(count),
               std::string(static_cast<std::size_t>((40LL * count + most - 1) / most), '#')});
  return table.text();
}

std::string irregular_text(const std::vector<IrregularReduction>& reductions) {
  if (reductions.empty()) return "no irregular row reduction\n";
  Table table({"irregular row reduction", ">rows", ">cols", "", ""});
  for (auto first = reductions.begin(); first != reductions.end();) {  // equal ones follow each other: a line
    const auto end = std::find_if(first, reductions.end(), [&](const IrregularReduction& r) {
      return r.rows != first->rows || r.cols != first->cols || r.why != first->why;
    });
    table.add({end - first == 1 ? first->op : fmt::format("{} and {} more", first->op, end - first - 1),
               with_commas(first->rows), with_commas(first->cols), first->what, first->why});
    first = end;
  }
  return table.text();
}

ordered_json to_json(const Shares& s) {
  return {{"memory_kernels", s.memory_kernels}, {"library_calls", s.library_calls},
          {"kernel_share", s.kernel_share()},   {"memory_us", s.memory_us},
          {"library_us", s.library_us},         {"time_share", s.time_share()}};
}

ordered_json to_json(const std::vector<IrregularReduction>& reductions) {
  ordered_json list = ordered_json::array();
  for (const IrregularReduction& r : reductions)
    list.push_back({{"op", r.op},
                    {"rows", r.rows},
                    {"cols", r.cols},
                    {"block", r.block},
                    {"what", r.what},
                    {"why", r.why}});
  return list;
}

ordered_json sizes_json(const std::map<int, int>& histogram) {
  ordered_json list = ordered_json::array();
  for (const auto& [power, count] : histogram)
    list.push_back({{"from", power < 0 ? 0 : std::int64_t{1} << power}, {"ops", count}});
  return list;
}

/// The shape, or of many arrays the first.
std::string result_text(const Shape& shape) {
  // A choice, not measured: the line has 120 columns, and some fifty are what stands before.
  constexpr std::size_t kMost = 70;
  if (!shape.is_tuple || to_text(shape).size() <= kMost) return to_text(shape);
  std::string text;
  for (const Shape& part : shape.elements) {
    const std::string next = to_text(part) + ", ";
    if (text.size() + next.size() > kMost) break;
    text += next;
  }
  return fmt::format("({}... {} arrays)", text, shape.elements.size());
}

std::int64_t ops_of(const Graph& graph) {
  std::int64_t ops = 0;
  for (const Computation& computation : graph.computations)
    ops += static_cast<std::int64_t>(computation.nodes.size());
  return ops;
}

/// `ops_read`: of all computations of the file, as `datasets` counts them.
void info(Cli& cli, const Model& model, std::int64_t ops_read, const std::string& device_name) {
  const Device& target = device(device_name);
  const Facts facts = gather_facts(model.graph);
  const Shares share = shares(model.graph, target);
  const std::map<int, int> sizes = size_histogram(model.graph);
  const std::vector<IrregularReduction> irregular = irregular_reductions(model.graph, target);
  const std::vector<LoopTrips> known = loops(model.graph);
  const Computation& entry = model.graph.entry_computation();
  if (cli.json) {
    ordered_json parameters = ordered_json::array();
    for (NodeId id : entry.parameters)
      parameters.push_back({{"name", entry.node(id).name}, {"shape", to_text(entry.node(id).shape)}});
    return cli.print(
        ordered_json{{"schema", "stitchwork.info/1"},
                     {"model", {{"path", model.graph.source}, {"sha256", model.graph.source_sha256}}},
                     {"module", model.graph.name},
                     {"ops", facts.ops},
                     {"ops_read", ops_read},
                     {"memory_ops", facts.memory_ops},
                     {"library_ops", facts.library_ops},
                     {"opaque_ops", facts.opaque_ops},
                     {"parameter_bytes", facts.parameter_bytes},
                     {"classes", to_json(ranked(facts.classes))},
                     {"opcodes", to_json(ranked(facts.opcodes))},
                     {"shapes", to_json(ranked(facts.shapes))},
                     {"device", target.id},
                     {"unfused", to_json(share)},
                     {"loops", loops_json(known)},
                     {"sizes", sizes_json(sizes)},
                     {"irregular", to_json(irregular)},
                     {"parameters", parameters},
                     {"result", to_text(entry.node(entry.root).shape)}});
  }
  std::string text = fmt::format(
      "{} ({}): {}, {} memory-intensive, {}{}; {} as read\n", model.graph.name, model.graph.source,
      counted(facts.ops, "op"), with_commas(facts.memory_ops), counted(facts.library_ops, "library call"),
      facts.opaque_ops ? fmt::format(", {} opaque", facts.opaque_ops) : "", with_commas(ops_read));
  text += fmt::format("{}, {}; result {}\n\n", counted(std::ssize(entry.parameters), "parameter"),
                      human_bytes(static_cast<double>(facts.parameter_bytes)),
                      result_text(entry.node(entry.root).shape));
  Table classes({"class", ">ops"});
  for (const auto& [cls, count] : ranked(facts.classes)) classes.add({cls, fmt::to_string(count)});
  text += classes.text() + "\n";
  Table shapes({"shape of memory-intensive ops", ">ops"});
  const auto rows = ranked(facts.shapes);
  const std::size_t shown = std::min<std::size_t>(rows.size(), 12);
  for (std::size_t i = 0; i < shown; ++i) shapes.add({rows[i].first, fmt::to_string(rows[i].second)});
  text += shapes.text();
  if (shown < rows.size())
    text += fmt::format("... and {} more shapes (--json lists all)\n", rows.size() - shown);
  text += "\n" + histogram_text(sizes) + "\n" + irregular_text(irregular);
  text += fmt::format(
      "\nunfused on {}: {} memory-intensive kernels ({}), {:.1f} us ({}); {} library calls, {:.1f} us; "
      "modelled\n",
      target.id, with_commas(share.memory_kernels), percent(share.kernel_share()), share.memory_us,
      percent(share.time_share()), with_commas(share.library_calls), share.library_us);
  if (!known.empty()) text += loops_line(known) + "\n";
  cli.print(text);
}

}  // namespace

void add_info(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("info", "what a model is made of");
  auto name = std::make_shared<std::string>();
  auto open = std::make_shared<ModelOptions>();
  command->add_option("MODEL", *name, kModelHelp)->required();
  open->add(*command);
  auto target = std::make_shared<std::string>("v100-sxm2");
  command->add_option("--device,-d", *target, "whose blocks and bandwidth count")->capture_default_str();
  add_common(*command, cli,
             "  stitchwork info bert_base\n  stitchwork info my_model.hlo --json\n  stitchwork info "
             "my_model.onnx --dim batch=8");
  command->callback([&cli, name, open, target] {
    Graph as_read;
    const Model model = open->load(*name, nullptr, &as_read);
    info(cli, model, ops_of(as_read), *target);
  });
}

}  // namespace stitchwork
