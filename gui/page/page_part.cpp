#include <fmt/ranges.h>

#include "analysis/explain/boundaries.h"
#include "analysis/explain/explain.h"
#include "analysis/explain/remedy.h"
#include "analysis/judge/library_cost.h"
#include "analysis/plan/assemble.h"
#include "core/hlo/hlo_text.h"
#include "gui/page/page_data.h"

namespace stitchwork::gui {
namespace {

using nlohmann::ordered_json;

/// Texts of ops of thousands of operands are cut, as the workbench does.
constexpr std::size_t kMostOfText = 600;

ordered_json decision_row(const Device& device, const Decision& d) {
  return {d.step,         d.subject,     d.object,         d.verdict.ok ? 1 : 0,
          d.verdict.rule, d.verdict.why, remedy(device, d)};
}

/// A column for each thing that is known of an op; rows are ops by id.
ordered_json ops_json(const Graph& graph, const FusionPlan& plan) {
  const Computation& computation = graph.entry_computation();
  std::vector<char> in_kernel(computation.nodes.size());
  for (const KernelPlan& kernel : plan.kernels)
    for (const NodeId op : kernel.ops) in_kernel[static_cast<std::size_t>(op)] = 1;
  ordered_json names = ordered_json::array(), opcodes = names, shapes = names, scopes_of = names,
               lines = names, operands = names, texts = names, outside = names, products = names,
               origins = names;
  const Device& target = device(plan.device);
  const auto steps = steps_outside_kernels(plan);
  for (const Node& node : computation.nodes) {
    names.push_back(node.name);
    opcodes.push_back(def(node.op).name);
    shapes.push_back(to_text(node.shape));
    scopes_of.push_back(fmt::format("{}", fmt::join(scopes(node.metadata.op_name), " / ")));
    lines.push_back(node.line);
    operands.push_back(node.operands);
    std::string text = to_text(graph, computation, node);
    if (text.size() > kMostOfText) text.resize(kMostOfText), text += " …";
    texts.push_back(std::move(text));
    const bool out = in_kernel[static_cast<std::size_t>(node.id)] == 0;
    const auto known = steps.find(node.id);
    const PlanStep* const step = known == steps.end() ? nullptr : known->second;
    outside.push_back(out ? step_text(computation, step, node) : std::string());
    const auto product = out ? called_product(computation, plan, step, node) : std::nullopt;
    products.push_back(product ? to_text(*product, library_time(target, *product)) : std::string());
    if (plan.rewritten == nullptr) continue;
    ordered_json from = ordered_json::array();
    for (const NodeId op : model_ops(plan, node.id))
      from.push_back(plan.rewritten->model->entry_computation().node(op).name);
    origins.push_back(std::move(from));
  }
  ordered_json ops{{"name", std::move(names)},           {"opcode", std::move(opcodes)},
                   {"shape", std::move(shapes)},         {"scope", std::move(scopes_of)},
                   {"line", std::move(lines)},           {"operands", std::move(operands)},
                   {"text", std::move(texts)},           {"outside", std::move(outside)},
                   {"library_time", std::move(products)}};
  if (plan.rewritten != nullptr) ops["from"] = std::move(origins);
  return ops;
}

}  // namespace

ordered_json page_part(const Graph& graph, const FusionPlan& plan) {
  const PlanView view(graph, plan);
  const Device& target = device(plan.device);
  ordered_json decisions = ordered_json::array(), refusals = ordered_json::array(),
               meets = ordered_json::array(), kernels = ordered_json::array();
  for (const Decision& d : view.decisions()) {
    decisions.push_back(decision_row(target, d));
    decisions.back().push_back(decides_kernels(d.step) ? 1 : 0);
  }
  for (const StepBoundary& b : boundaries(graph, plan))
    meets.push_back({b.value, b.reader, b.from, b.to, decision_row(target, why_apart(view, plan, b))});
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    ordered_json mappings = ordered_json::array(), forms = ordered_json::array();
    for (const Group& group : plan.kernels[k].groups) mappings.push_back(to_text(group.mapping, group.deal));
    for (const Decision& form : view.forms(k)) forms.push_back(decision_row(target, form));
    kernels.push_back({{"mappings", std::move(mappings)},
                       {"forms", std::move(forms)},
                       {"inputs", kernel_inputs(graph, plan.kernels[k])},
                       {"computes", view.ops(k)}});
  }
  return {{"computation", graph.entry_computation().name},
          {"ops", ops_json(graph, plan)},
          {"decisions", std::move(decisions)},
          {"boundaries", std::move(meets)},
          {"kernels", std::move(kernels)}};
}

}  // namespace stitchwork::gui
