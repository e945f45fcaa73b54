#include <nlohmann/json.hpp>

#include "analysis/json/mapping_json.h"
#include "analysis/json/overrides_json.h"
#include "analysis/json/plan_json.h"
#include "analysis/judge/cost.h"
#include "analysis/plan/control_flow.h"
#include "core/base/parallel.h"
#include "occupancy_model/timing_text.h"

namespace stitchwork {
namespace {

using Json = nlohmann::ordered_json;

class Writer {
 public:
  explicit Writer(const Graph& graph) : Writer(graph, graph.entry) {}
  Writer(const Graph& graph, ComputationId id) : graph_(graph), computation_(graph.computation(id)) {}

  Json plan(const FusionPlan& plan) const {
    Json json;
    json["schema"] = "stitchwork.plan/1";
    json["model"] = {{"path", plan.model_path}, {"sha256", plan.model_sha256}};
    json["device"] = plan.device;
    json["planner"] = plan.planner;
    json["options"] = Json::object();
    for (const auto& [knob, value] : plan.options) json["options"][knob] = value;
    if (!plan.library.empty()) json["options"]["library"] = plan.library;
    if (plan.tf32) json["tf32"] = true;
    if (!plan.weights.empty()) json["weights"] = plan.weights;
    if (!plan.edits.empty()) json["overrides"] = edits_to_json(plan.edits);
    if (plan.peer != nullptr) json["peer"] = peer(*plan.peer);
    if (plan.rewritten != nullptr && plan.peer == nullptr) {
      json["rewrites"] = rewrites_to_json(plan.rewritten->steps);
      json["rewritten_sha256"] = rewriting::sha256_of(*plan.rewritten);
    }
    body(plan, json);
    if (!plan.computations.empty()) {
      json["computations"] = Json::array();
      for (const ComputationPlan& part : plan.computations) {
        Json one;
        one["name"] = graph_.computation(part.computation).name;
        Writer(graph_, part.computation).body(part.plan, one);
        json["computations"].push_back(std::move(one));
      }
    }
    if (!plan.decisions.empty()) json["decisions"] = decisions_to_json(plan.decisions);
    return json;
  }

 private:
  void body(const FusionPlan& plan, Json& json) const {
    json["counts"] = {{"memory_kernels", plan.counts.memory_kernels},
                      {"library_calls", plan.counts.library_calls},
                      {"copies", plan.counts.copies},
                      {"memsets", plan.counts.memsets},
                      {"dynamic_memory_kernels", plan.counts.dynamic_memory_kernels}};
    if (plan.counts.product_kernels > 0) json["counts"]["product_kernels"] = plan.counts.product_kernels;
    json["predicted_us"] = times_method(plan).empty() ? Json() : Json(plan.predicted_us);
    if (plan.once_us > 0) json["once_us"] = plan.once_us;
    json["steps"] = Json::array();
    for (const PlanStep& step : plan.steps) json["steps"].push_back(this->step(plan, step));
    json["kernels"] = Json::array();
    for (const KernelPlan& kernel : plan.kernels) {
      json["kernels"].push_back(this->kernel(kernel));
      if (kernel.code) code(plan, kernel, json["kernels"].back());
    }
  }

  static Json peer(const PeerPlan& peer) {
    return {{"dump", peer.dump},
            {"title", peer.title},
            {"method", peer.simulated ? Json("simulated") : Json()},
            {"gone", peer.gone},
            {"own", peer.own}};
  }

  /// A compiler's own kernel: its code, and which of the model's ops each of its ops stands for.
  void code(const FusionPlan& plan, const KernelPlan& kernel, Json& json) const {
    const KernelCode& code = *kernel.code;
    Json stands = Json::object();
    if (plan.rewritten != nullptr) {
      const Computation& model = plan.rewritten->model->entry_computation();
      for (const NodeId id : kernel.ops) {
        Json& of = stands[op(id)] = Json::array();
        for (const NodeId own : model_ops(plan, id)) of.push_back(model.node(own).name);
      }
    } else {
      for (const NodeId id : kernel.ops) stands[op(id)] = {op(id)};
    }
    json["code"] = {{"module", code.module},
                    {"entry", code.entry},
                    {"instruction", code.instruction},
                    {"kind", code.kind},
                    {"product", code.product},
                    {"dram_bytes", code.timed ? Json(code.dram_bytes) : Json()},
                    {"model_ops", stands},
                    {"not_linked_to", code.not_linked_to}};
    if (!code.timed) json["predicted_us"] = nullptr;
  }

  const std::string& op(NodeId id) const { return computation_.node(id).name; }

  Json ops(const std::vector<NodeId>& ids) const {
    Json list = Json::array();
    for (NodeId id : ids) list.push_back(op(id));
    return list;
  }

  Json step(const FusionPlan& plan, const PlanStep& step) const {
    Json json;
    json["kind"] = name(step.kind);
    json["id"] = step.kernel >= 0 ? plan.kernels.at(static_cast<std::size_t>(step.kernel)).id : step.id;
    if (step.kind != StepKind::kKernel) json["ops"] = ops(step.nodes);
    json["stream"] = step.stream;
    if (!step.waits.empty()) json["waits"] = step.waits;
    if (step.once) json["once"] = true;
    if (!step.variant.empty()) json["variant"] = step.variant;
    const bool is_modelled = step.kind != StepKind::kKernel && step.kind != StepKind::kControl;
    const bool ran = is_modelled || !times_method(plan).empty();
    json["predicted_us"] = ran ? Json(step.predicted_us) : Json();
    if (step.trips) json["trips"] = *step.trips;
    return json;
  }

  Json group(const Group& group) const {
    Json json;
    json["dominant"] = op(group.dominant);
    json["sub_dominants"] = ops(group.sub_dominants);
    if (!group.across.empty()) json["across"] = ops(group.across);
    if (!group.one_pass.empty()) json["one_pass"] = ops(group.one_pass);
    json["ops"] = ops(group.ops);
    json["mapping"] = mapping_to_json(group.mapping, group.deal);
    json["lane"] = group.lane;
    json["first_block"] = group.deal.first_block;
    return json;
  }

  Json slots(const std::vector<MemorySlot>& slots) const {
    Json list = Json::array();
    for (const MemorySlot& slot : slots)
      list.push_back({{"op", slot.op == kNoNode ? Json(nullptr) : Json(op(slot.op))},
                      {"offset", slot.offset},
                      {"bytes", slot.bytes}});
    return list;
  }

  /// An object of a member an op. Names of ops are unique: its operator[] would look through all of them.
  template <typename Value, typename Write>
  Json by_op(const std::map<NodeId, Value>& values, Write write) const {
    Json::object_t object;
    object.reserve(values.size());
    for (const auto& [id, value] : values)
      static_cast<Json::object_t::Container&>(object).emplace_back(op(id), write(value));
    return object;
  }

  Json kernel(const KernelPlan& kernel) const {
    const KernelLaunch& launch = kernel.launch;
    Json json;
    json["id"] = kernel.id;
    json["name"] = kernel.name;
    json["ops"] = ops(kernel.ops);
    json["outputs"] = ops(kernel.outputs);
    json["groups"] = Json::array();
    for (const Group& g : kernel.groups) json["groups"].push_back(group(g));
    const auto name_of = [](Scheme scheme) { return name(scheme); };
    json["schemes"] = by_op(kernel.schemes, name_of);
    json["levels"] = by_op(kernel.levels, [](int level) { return level; });
    if (!kernel.in_phase.empty()) json["in_phase"] = by_op(kernel.in_phase, name_of);
    json["shared"] = slots(kernel.shared);
    json["scratch"] = slots(kernel.scratch);
    if (!kernel.resident.empty()) {
      json["resident"] = Json::array();
      for (const Residence& r : kernel.resident)
        json["resident"].push_back({{"op", op(r.op)},
                                    {"group", op(r.group)},
                                    {"level", r.level},
                                    {"in", r.shared ? "shared" : "registers"},
                                    {"offset", r.offset},
                                    {"bytes", r.bytes}});
    }
    if (!kernel.tiles.empty()) {
      json["tiles"] = Json::array();
      for (const Tile& tile : kernel.tiles) {
        json["tiles"].push_back({{"op", op(tile.op)},
                                 {"group", op(tile.group)},
                                 {"level", tile.level},
                                 {"offset", tile.offset},
                                 {"bytes", tile.bytes}});
        if (tile.stages > 1) json["tiles"].back()["stages"] = tile.stages;
      }
    }
    if (!kernel.shrunk.empty()) json["shrunk"] = ops(kernel.shrunk);
    json["grid"] = launch.grid;
    json["block"] = launch.block;
    json["shared_bytes"] = launch.shared_bytes;
    json["scratch_bytes"] = launch.scratch_bytes;
    json["register_bound"] = launch.register_bound;
    json["blocks_per_sm"] = launch.blocks_per_sm;
    json["blocks_per_wave"] = launch.blocks_per_wave;
    json["grid_barriers"] = launch.grid_barriers;
    if (launch.cluster > 1) json["cluster"] = launch.cluster;
    json["predicted_us"] = kernel.predicted_us;
    return json;
  }

  const Graph& graph_;
  const Computation& computation_;
};

}  // namespace

nlohmann::ordered_json decisions_to_json(const std::vector<Decision>& decisions) {
  Json list = Json::array();
  for (const Decision& d : decisions)
    list.push_back({{"step", d.step},
                    {"subject", d.subject},
                    {"object", d.object},
                    {"ok", d.verdict.ok},
                    {"rule", d.verdict.rule},
                    {"why", d.verdict.why}});
  return list;
}

Json rewrites_to_json(const std::vector<rewriting::Rewrite>& steps) {
  Json list = Json::array();
  for (const rewriting::Rewrite& step : steps)
    list.push_back({{"rule", step.rule}, {"computation", step.computation}, {"at", step.at}});
  return list;
}

nlohmann::ordered_json plan_to_json(const Graph& model, const FusionPlan& plan) {
  return Writer(planned_graph(model, plan)).plan(plan);
}

Json not_modelled_json(const std::vector<NotModelled>& left_out) {
  Json list = Json::array();
  for (const NotModelled& effect : left_out) list.push_back({{"id", effect.id}, {"why", effect.why}});
  return list;
}

Json time_parts_json(const KernelTime& t, std::string_view method) {
  Json shares = Json::object();
  for (std::size_t u = 0; u < kUnits.size(); ++u)
    if (t.busy_us[u] > 0) shares[std::string(kUnits[u].id)] = unit_share(t, u);
  return {{"method", method},           {"limited_by", limited_by(t)},
          {"launch_us", t.launch_us},   {"dram_us", t.dram_us},
          {"l2_us", t.l2_us},           {"issue_us", t.issue_us},
          {"latency_us", t.latency_us}, {"tail_us", t.tail_us},
          {"barrier_us", t.barrier_us}, {"speed_of_light", std::move(shares)}};
}

Json plan_document(const Graph& model, const FusionPlan& plan) {
  const Graph& graph = planned_graph(model, plan);
  Json document = plan_to_json(graph, plan);
  const Device& target = device(plan.device);
  const auto add = [&](const Graph& of, const FusionPlan& part, Json& kernels) {
    parallel_for(part.kernels.size(), [&](std::size_t k) {
      const std::optional<KernelCode>& code = part.kernels[k].code;
      if (code && !code->timed) return;  // it was not run
      const TimedKernel timed = kernel_cost(of, target, part.kernels[k]).timed;
      kernels[k]["time_parts"] = time_parts_json(timed.time, code ? "simulated" : "modelled");
      kernels[k]["not_modelled"] = not_modelled_json(not_modelled(target, timed));
    });
  };
  add(graph, plan, document["kernels"]);
  for (std::size_t c = 0; c < plan.computations.size(); ++c) {
    const ComputationPlan& part = plan.computations[c];
    add(entered(graph, part.computation), part.plan, document["computations"][c]["kernels"]);
  }
  return document;
}

}  // namespace stitchwork
