#include "experiments/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "core/base/error.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace {

std::vector<NodeId> results_of(const Computation& computation) {
  const Node& root = computation.node(computation.root);
  return root.op == Op::kTuple ? root.operands : std::vector<NodeId>{computation.root};
}

std::optional<std::size_t> number_of(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void require_fitting(const Graph& graph, const FedBack& one) {
  const Computation& computation = graph.entry_computation();
  const Node& parameter = computation.node(computation.parameters[one.parameter]);
  const Node& result = computation.node(results_of(computation)[one.result]);
  if (!parameter.shape.compatible(result.shape))
    throw Error(graph.source, 0, 0,
                fmt::format("result {} is {}, parameter {} is {}", one.result, to_text(result.shape),
                            parameter.name, to_text(parameter.shape)),
                "what is fed back has the parameter's shape");
}

}  // namespace

Training::Training(const Model& model, std::uint64_t seed, std::vector<FedBack> state)
    : model_(model), seed_(seed), fed_back_(std::move(state)) {
  if (fed_back_.empty())
    throw Error(model.graph.source, 0, 0, "no result is what a parameter becomes element by element",
                "say which are with --state RESULT=PARAMETER, or leave out --train");
  const InputGenerator generate(model.graph, seed, model.inputs);
  std::set<std::size_t> parameters, results;
  for (const FedBack& one : fed_back_) {
    require_fitting(model.graph, one);
    if (!parameters.insert(one.parameter).second || !results.insert(one.result).second)
      throw Error(model.graph.source, 0, 0,
                  fmt::format("result {} or its parameter is fed back twice", one.result),
                  "name each once with --state");
    values_.emplace_back(one.parameter, generate(one.parameter));
  }
}

std::vector<Literal> Training::inputs(std::size_t number) const {
  const std::size_t parameters = model_.graph.entry_computation().parameters.size();
  const InputGenerator generate(model_.graph, seed_ + number, model_.inputs);
  std::vector<Literal> inputs(parameters);
  std::vector<bool> held(parameters, false);
  for (const auto& [parameter, value] : values_) {
    inputs[parameter] = value;
    held[parameter] = true;
  }
  for (std::size_t p = 0; p < parameters; ++p)
    if (!held[p]) inputs[p] = generate(p);
  return inputs;
}

void Training::step(const std::vector<Literal>& outputs) {
  for (std::size_t i = 0; i < fed_back_.size(); ++i) values_[i].second = outputs.at(fed_back_[i].result);
}

void Training::take(const Training& other) {
  const auto name_of = [](const Training& of, std::size_t parameter) -> const std::string& {
    const Computation& computation = of.model_.graph.entry_computation();
    return computation.node(computation.parameters[parameter]).name;
  };
  for (auto& [parameter, value] : values_) {
    const std::string& name = name_of(*this, parameter);
    const auto found = std::find_if(other.values_.begin(), other.values_.end(), [&](const auto& theirs) {
      return name_of(other, theirs.first) == name && theirs.second.shape.compatible(value.shape);
    });
    if (found == other.values_.end())
      throw Error(other.model_.graph.source, 0, 0,
                  fmt::format("has no parameter {} {} that is fed back, as {} has", name,
                              to_text(value.shape), model_.graph.source),
                  "buckets are one training step, unrolled to several lengths");
    value = found->second;
  }
}

std::optional<double> Training::loss(const std::vector<Literal>& outputs) const {
  for (std::size_t r = 0; r < outputs.size(); ++r) {
    const bool state =
        std::any_of(fed_back_.begin(), fed_back_.end(), [&](const FedBack& one) { return one.result == r; });
    if (!state && !outputs[r].shape.is_tuple && is_floating(outputs[r].shape.dtype) &&
        outputs[r].shape.dims.empty())
      return outputs[r].get_double(0);
  }
  return std::nullopt;
}

void Training::restore(const StateBytes& bytes) {
  bool fits = bytes.size() == values_.size();
  for (std::size_t i = 0; fits && i < bytes.size(); ++i)
    fits = bytes[i].size() == values_[i].second.bytes.size();
  if (!fits) throw Error("the history's state is not this model's", "start another history");
  for (std::size_t i = 0; i < bytes.size(); ++i)
    std::copy(bytes[i].begin(), bytes[i].end(), values_[i].second.bytes.begin());
}

std::string Training::text() const {
  const Computation& computation = model_.graph.entry_computation();
  std::string text;
  for (const FedBack& one : fed_back_)
    text += fmt::format("{}{} <- result {}", text.empty() ? "" : ", ",
                        computation.node(computation.parameters[one.parameter]).name, one.result);
  return text;
}

FedBack parse_fed_back(const Model& model, const std::string& text) {
  const std::size_t equal = text.find('=');
  const std::string where = fmt::format("--state {}", text);
  if (equal == std::string::npos) throw Error(where + " is no RESULT=PARAMETER", "such as 1=variables.w");
  const Computation& computation = model.graph.entry_computation();
  const std::size_t results = results_of(computation).size();
  const auto result = number_of(std::string_view(text).substr(0, equal));
  if (!result || *result >= results)
    throw Error(fmt::format("{}: there is no such result", where),
                fmt::format("results are numbered 0 to {}", results - 1));
  const std::string name = text.substr(equal + 1);
  for (std::size_t p = 0; p < computation.parameters.size(); ++p)
    if (computation.node(computation.parameters[p]).name == name || number_of(name) == p) return {*result, p};
  throw Error(fmt::format("{}: there is no parameter {}", where, name),
              fmt::format("parameters are numbered 0 to {}, or named as in the model",
                          computation.parameters.size() - 1));
}

}  // namespace stitchwork
