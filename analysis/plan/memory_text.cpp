#include "analysis/plan/memory_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/format.h"

namespace stitchwork {
namespace {

using Json = nlohmann::ordered_json;

std::string bytes_text(std::int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

/// "3" or "end": the results stay.
std::string last_step(const PlanMemory& memory, const BufferLife& buffer) {
  return buffer.last == memory.steps.size() ? "end" : fmt::to_string(buffer.last);
}

/// "p = reshape.3": a buffer's op and the other names of its values, the first few.
std::string names_of_values(const Computation& computation, const BufferLife& buffer) {
  // A choice, not measured: a line is as long as a terminal is wide.
  constexpr std::size_t kMost = 4;
  std::string text = computation.node(buffer.owner).name;
  for (std::size_t i = 0; i < std::min(kMost, buffer.aliases.size()); ++i)
    text += " = " + computation.node(buffer.aliases[i]).name;
  if (buffer.aliases.size() > kMost) text += fmt::format(" = {} more", buffer.aliases.size() - kMost);
  return text;
}

std::string step_name(const FusionPlan& plan, const PlanStep& step) {
  return step.kind == StepKind::kKernel
             ? step.id + " " + plan.kernels[static_cast<std::size_t>(step.kernel)].name
             : step.id;
}

}  // namespace

std::string to_text(const Graph& model, const FusionPlan& plan, const PlanMemory& memory) {
  const Graph& graph = planned_graph(model, plan);
  const Computation& computation = graph.entry_computation();
  if (memory.steps.empty()) return "no steps, no device memory\n";
  const PlanMemory::Step& most = memory.steps[memory.peak_step];
  std::string text = fmt::format("peak {} (modelled) at step {}, {}: {} in buffers, {} beside\n\n",
                                 bytes_text(memory.peak_bytes), memory.peak_step,
                                 step_name(plan, plan.steps[memory.peak_step]), bytes_text(most.buffers),
                                 bytes_text(most.beside));
  text += fmt::format("{:>5}  {:>12}  {:>12}  what\n", "step", "buffers", "beside");
  for (std::size_t s = 0; s < memory.steps.size(); ++s)
    text += fmt::format("{:>5}  {:>12}  {:>12}  {}{}\n", s, bytes_text(memory.steps[s].buffers),
                        bytes_text(memory.steps[s].beside), step_name(plan, plan.steps[s]),
                        s == memory.peak_step ? "  <- peak" : "");
  text += fmt::format("\n{:>12}  {:>5}  {:>5}  {:<9}  values (* alive at the peak)\n", "bytes", "first",
                      "last", "role");
  for (const BufferLife& buffer : memory.buffers)
    text += fmt::format("{:>12}  {:>5}  {:>5}  {:<9}  {}{}\n", with_commas(buffer.bytes), buffer.first,
                        last_step(memory, buffer), role_of_buffer(computation, memory, buffer),
                        names_of_values(computation, buffer), buffer.alive_at(memory.peak_step) ? " *" : "");
  return text;
}

Json memory_json(const Graph& model, const FusionPlan& plan, const PlanMemory& memory) {
  const Graph& graph = planned_graph(model, plan);
  const Computation& computation = graph.entry_computation();
  Json steps = Json::array(), buffers = Json::array();
  for (std::size_t s = 0; s < memory.steps.size(); ++s)
    steps.push_back({{"id", plan.steps[s].id},
                     {"buffer_bytes", memory.steps[s].buffers},
                     {"beside_bytes", memory.steps[s].beside}});
  for (const BufferLife& buffer : memory.buffers) {
    Json aliases = Json::array();
    for (const NodeId alias : buffer.aliases) aliases.push_back(computation.node(alias).name);
    buffers.push_back({{"op", computation.node(buffer.owner).name},
                       {"role", role_of_buffer(computation, memory, buffer)},
                       {"bytes", buffer.bytes},
                       {"first_step", buffer.first},
                       {"last_step", buffer.last == memory.steps.size() ? Json(nullptr) : Json(buffer.last)},
                       {"alive_at_peak", buffer.alive_at(memory.peak_step)},
                       {"aliases", aliases}});
  }
  return {{"method", "modelled"},
          {"peak_bytes", memory.peak_bytes},
          {"peak_step", memory.steps.empty() ? Json(nullptr) : Json(memory.peak_step)},
          {"steps", steps},
          {"buffers", buffers}};
}

}  // namespace stitchwork
