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

constexpr int kElsewhere = -2;  ///< No quantity: a step that is not shown; -1 is a result

ordered_json decision_row(const Device& device, const Decision& d) {
  return {d.step,         d.subject,     d.object,         d.verdict.ok ? 1 : 0,
          d.verdict.rule, d.verdict.why, remedy(device, d)};
}

/// Numbers of those that are shown.
ordered_json rows_of(const PartExcerpt& excerpt, const auto& ops) {
  ordered_json rows = ordered_json::array();
  for (const NodeId op : ops)
    if (const int row = excerpt.row[static_cast<std::size_t>(op)]; row >= 0) rows.push_back(row);
  return rows;
}

/// By op: what computes it that is no kernel whose ops are shown; "": such a kernel does.
std::vector<std::string> outside_kernels(const Graph& graph, const FusionPlan& plan,
                                         const PartExcerpt& excerpt, const std::set<std::string>& closed) {
  const Computation& computation = graph.entry_computation();
  const auto steps = steps_outside_kernels(plan);
  std::vector<std::string> where(computation.nodes.size());
  for (const NodeId op : excerpt.ops) {
    const auto known = steps.find(op);
    where[static_cast<std::size_t>(op)] =
        step_text(computation, known == steps.end() ? nullptr : known->second, computation.node(op));
  }
  for (const PlanStep& step : plan.steps)
    if (step.kernel >= 0)
      for (const NodeId op : plan.kernels[static_cast<std::size_t>(step.kernel)].ops)
        if (excerpt.row[static_cast<std::size_t>(op)] >= 0)
          where[static_cast<std::size_t>(op)] =
              fmt::format("{} {}, whose ops are not on this page", step.id,
                          plan.kernels[static_cast<std::size_t>(step.kernel)].name);
  for (const std::size_t k : excerpt.kernels)
    if (!closed.contains(plan.kernels[k].id))
      for (const NodeId op : plan.kernels[k].ops) where[static_cast<std::size_t>(op)].clear();
  return where;
}

/// A column for each thing that is known of an op; rows are ops by id.
ordered_json ops_json(const Graph& graph, const FusionPlan& plan, const PartExcerpt& excerpt,
                      const std::set<std::string>& closed) {
  const Computation& computation = graph.entry_computation();
  const std::vector<std::string> where = outside_kernels(graph, plan, excerpt, closed);
  ordered_json names = ordered_json::array(), opcodes = names, shapes = names, scopes_of = names,
               lines = names, operands = names, texts = names, outside = names, products = names,
               origins = names;
  const Device& target = device(plan.device);
  const auto steps = steps_outside_kernels(plan);
  for (const NodeId op : excerpt.ops) {
    const Node& node = computation.node(op);
    names.push_back(node.name);
    opcodes.push_back(def(node.op).name);
    shapes.push_back(to_text(node.shape));
    scopes_of.push_back(fmt::format("{}", fmt::join(scopes(node.metadata.op_name), " / ")));
    lines.push_back(node.line);
    operands.push_back(rows_of(excerpt, node.operands));
    std::string text = to_text(graph, computation, node);
    if (text.size() > kMostOfText) text.resize(kMostOfText), text += " …";
    texts.push_back(std::move(text));
    const auto known = steps.find(node.id);
    const PlanStep* const step = known == steps.end() ? nullptr : known->second;
    outside.push_back(where[static_cast<std::size_t>(op)]);
    const auto product = !outside.back().get_ref<const std::string&>().empty()
                             ? called_product(computation, plan, step, node)
                             : std::nullopt;
    products.push_back(product ? to_text(*product, library_time(target, *product)) : std::string());
    if (plan.rewritten == nullptr) continue;
    ordered_json from = ordered_json::array();
    for (const NodeId of : model_ops(plan, node.id))
      from.push_back(plan.rewritten->model->entry_computation().node(of).name);
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

ordered_json page_part(const Graph& graph, const FusionPlan& plan, const PartExcerpt& excerpt,
                       const std::set<std::string>& closed) {
  const PlanView view(graph, plan);
  const Device& target = device(plan.device);
  ordered_json decisions = ordered_json::array(), refusals = ordered_json::array(),
               meets = ordered_json::array(), kernels = ordered_json::array();
  const bool whole = excerpt.ops.size() == graph.entry_computation().nodes.size();
  const auto row = [&](NodeId op) { return op == kNoNode ? -1 : excerpt.row[static_cast<std::size_t>(op)]; };
  for (std::size_t d = 0; d < view.decisions().size(); ++d) {
    const auto [subject, object] = view.about(d);
    if (!whole && row(subject) < 0 && row(object) < 0) continue;
    decisions.push_back(decision_row(target, view.decisions()[d]));
    decisions.back().push_back(decides_kernels(view.decisions()[d].step) ? 1 : 0);
  }
  const auto step = [&](int s) {
    if (s < 0) return -1;
    const int shown = excerpt.step[static_cast<std::size_t>(s)];
    return shown < 0 ? kElsewhere : shown;
  };
  for (const StepBoundary& b : excerpt.boundaries) {
    meets.push_back({row(b.value), row(b.reader), step(b.from), step(b.to),
                     decision_row(target, why_apart(view, plan, b))});
    for (const int end : {b.from, b.to})
      if (step(end) == kElsewhere) meets.back().push_back(step_elsewhere(graph, plan, end));
  }
  for (const std::size_t k : excerpt.kernels) {
    const ordered_json none = ordered_json::array();
    ordered_json mappings = none, forms = none, inputs = none, computes = none;
    if (!closed.contains(plan.kernels[k].id)) {
      for (const Group& group : plan.kernels[k].groups)
        mappings.push_back(to_text(group.mapping, group.deal));
      inputs = rows_of(excerpt, kernel_inputs(graph, plan.kernels[k]));
      computes = rows_of(excerpt, view.ops(k));
    }
    for (const Decision& form : view.forms(k)) forms.push_back(decision_row(target, form));
    kernels.push_back({{"mappings", std::move(mappings)},
                       {"forms", std::move(forms)},
                       {"inputs", std::move(inputs)},
                       {"computes", std::move(computes)}});
  }
  return {{"computation", graph.entry_computation().name},
          {"ops", ops_json(graph, plan, excerpt, closed)},
          {"decisions", std::move(decisions)},
          {"boundaries", std::move(meets)},
          {"kernels", std::move(kernels)}};
}

}  // namespace stitchwork::gui
