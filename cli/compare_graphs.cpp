#include "cli/compare_graphs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/table.h"
#include "core/base/at.h"
#include "core/base/format.h"
#include "core/base/memory.h"
#include "core/evaluate/evaluator.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;
using rewriting::Origins;
using rewriting::RewrittenGraph;

ArrayError error_of(std::string op, const Literal& value, const Literal& reference) {
  ArrayError result{std::move(op), to_text(reference.shape), 0, 0};
  const std::int64_t count = reference.shape.elements_count();
  double squares = 0;
  std::int64_t finite = 0;
  for (std::int64_t i = 0; i < count; ++i)
    if (const double r = reference.get_double(i); std::isfinite(r)) squares += r * r, ++finite;
  const double rms = finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double r = reference.get_double(i), error = std::abs(value.get_double(i) - r);
    if (!std::isfinite(error) || error == 0) continue;
    result.max_abs = std::max(result.max_abs, error);
    result.max_rel = std::max(result.max_rel, error / (std::abs(r) + rms));
  }
  return result;
}

/// The model's op by the op of the rewritten graph that gives its value; arrays alone.
std::map<NodeId, NodeId> in_both(const RewrittenGraph& rewritten) {
  std::map<NodeId, NodeId> result;
  const Computation& entry = rewritten.graph.entry_computation();
  const Computation* model = rewritten.model_computation(entry.name);
  if (model == nullptr) return result;
  const Origins& origins = rewritten.origins[at(rewritten.graph.entry)];
  for (const Node& node : model->nodes)
    if (const NodeId now = origins.now.empty() ? kNoNode : origins.now[at(node.id)];
        now != kNoNode && !node.shape.is_tuple && node.op != Op::kParameter && node.op != Op::kConstant)
      result.emplace(now, node.id);
  return result;
}

double bytes_needed(const Graph& model, const RewrittenGraph& rewritten,
                    const std::map<NodeId, NodeId>& compared) {
  double kept = 0;
  for (const auto& [now, op] : compared)
    kept += static_cast<double>(model.entry_computation().node(op).shape.byte_size());
  return input_bytes(model) + std::max(evaluation_bytes(model), evaluation_bytes(rewritten.graph)) + kept;
}

}  // namespace

GraphComparison compare_graphs(const Model& model, const RewrittenGraph& rewritten, std::uint64_t seed,
                               bool of_ops) {
  const std::map<NodeId, NodeId> compared = of_ops ? in_both(rewritten) : std::map<NodeId, NodeId>{};
  require_memory(bytes_needed(model.graph, rewritten, compared), "evaluating both graphs",
                 "check a smaller model");
  const InputGenerator generate(model.graph, seed, model.inputs);
  std::vector<Literal> inputs;
  for (std::size_t i = 0; i < model.graph.entry_computation().parameters.size(); ++i)
    inputs.push_back(generate(i));
  GraphComparison result;
  std::map<NodeId, Literal> values;  // of the rewritten graph, by the model's op
  const std::vector<Literal> outputs =
      evaluate(rewritten.graph, inputs, [&](const Node& node, const Literal& value) {
        if (const auto found = compared.find(node.id); found != compared.end())
          values.emplace(found->second, value);
      });
  if (of_ops) {
    evaluate(model.graph, inputs, [&](const Node& node, const Literal& value) {
      const auto found = values.find(node.id);
      if (found == values.end() || !found->second.shape.compatible(value.shape)) return;
      ++result.ops;
      ArrayError error = error_of(node.name, found->second, value);
      if (error.max_abs > 0) result.differ.push_back(std::move(error));
      values.erase(found);
    });
    std::ranges::stable_sort(result.differ, std::ranges::greater(), &ArrayError::max_rel);
  }
  Judge judge(model.graph, std::move(inputs));
  result.judged = judge.check(outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    result.results.push_back(error_of("", outputs[i], judge.reference()[i]));
  return result;
}

ordered_json to_json(const GraphComparison& comparison, std::uint64_t seed) {
  ordered_json results = ordered_json::array();
  for (std::size_t i = 0; i < comparison.results.size(); ++i)
    results.push_back({{"result", i},
                       {"shape", comparison.results[i].shape},
                       {"max_abs_error", comparison.results[i].max_abs},
                       {"max_rel_error", comparison.results[i].max_rel}});
  return {{"ok", comparison.judged.ok},
          {"seed", seed},
          {"elements", comparison.judged.elements},
          {"allowed", comparison.judged.allowed},
          {"nan", comparison.judged.nan},
          {"message", comparison.judged.message},
          {"results", results}};
}

std::string results_text(const GraphComparison& comparison) {
  Table table({">result", "shape", ">max abs error", ">max rel error"});
  for (std::size_t i = 0; i < comparison.results.size(); ++i)
    table.add({fmt::to_string(i), comparison.results[i].shape,
               fmt::format("{:.3g}", comparison.results[i].max_abs),
               fmt::format("{:.3g}", comparison.results[i].max_rel)});
  const CheckResult& judged = comparison.judged;
  std::string text = table.text() + (judged.ok ? "check: ok" : "check: FAILED: " + judged.message);
  return text + remarks(judged) + "\n";
}

std::string ops_text(const GraphComparison& comparison, std::size_t most) {
  std::string text = fmt::format("{} ops have a value in both graphs, {} of them differ\n", comparison.ops,
                                 comparison.differ.size());
  if (comparison.differ.empty()) return text;
  Table table({"op", "shape", ">max abs error", ">max rel error"});
  for (std::size_t i = 0; i < std::min(most, comparison.differ.size()); ++i) {
    const ArrayError& error = comparison.differ[i];
    table.add(
        {error.op, error.shape, fmt::format("{:.3g}", error.max_abs), fmt::format("{:.3g}", error.max_rel)});
  }
  text += table.text();
  if (comparison.differ.size() > most)
    text += fmt::format("{} more that differ less (--json has all)\n", comparison.differ.size() - most);
  return text;
}

}  // namespace stitchwork
