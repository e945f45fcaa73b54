#include <array>
#include <unordered_map>

#include "analysis/json/json_cursor.h"
#include "analysis/json/mapping_json.h"
#include "analysis/json/overrides_json.h"
#include "analysis/json/plan_json.h"
#include "analysis/plan/control_flow.h"
#include "core/base/error.h"
#include "core/substitute/derivation.h"

namespace stitchwork {
namespace {

constexpr std::string_view kPlanSchema = "stitchwork.plan/1";
constexpr std::string_view kMadeBy = "a plan is what `stitchwork plan -o` writes";

class Reader {
 public:
  explicit Reader(const Graph& graph) : computation_(graph.entry_computation()), graph_(graph) {
    for (const Node& node : computation_.nodes) ids_.emplace(node.name, node.id);
  }

  FusionPlan plan(const JsonCursor& c) {
    FusionPlan plan;
    plan.model_path = c.at("model").at("path").text();
    plan.model_sha256 = c.at("model").at("sha256").text();
    plan.device = c.at("device").text();
    plan.planner = c.at("planner").text();
    c.at("options").each_member([&](const std::string& knob, const JsonCursor& v) {
      (knob == "library" ? plan.library : plan.options[knob]) = v.text();
    });
    if (const auto tf32 = c.find("tf32")) plan.tf32 = tf32->boolean();
    if (const auto weights = c.find("weights"))
      weights->each([&](const JsonCursor& name) { plan.weights.push_back(name.text()); });
    if (const auto overrides = c.find("overrides")) plan.edits = read_edits(*overrides);
    body(c, plan);
    if (const auto computations = c.find("computations"))
      computations->each(
          [&](const JsonCursor& part) { plan.computations.push_back(computation(part, plan)); });
    if (const auto decisions = c.find("decisions"))
      decisions->each([&](const JsonCursor& d) {
        plan.decisions.push_back({d.at("step").text(), d.at("subject").text(), d.at("object").text(),
                                  Verdict{d.at("ok").boolean(), d.at("rule").text(), d.at("why").text()}});
      });
    return plan;
  }

 private:
  /// What the plans of the entry and of a computation have in common.
  void body(const JsonCursor& c, FusionPlan& plan) {
    c.at("kernels").each([&](const JsonCursor& k) { kernel(k, plan); });
    c.at("steps").each([&](const JsonCursor& s) { plan.steps.push_back(step(s)); });
    const JsonCursor counts = c.at("counts");
    plan.counts.memory_kernels = counts.at("memory_kernels").small();
    plan.counts.library_calls = counts.at("library_calls").small();
    plan.counts.copies = counts.at("copies").small();
    plan.counts.memsets = counts.at("memsets").small();
    plan.counts.dynamic_memory_kernels = counts.at("dynamic_memory_kernels").integer();
    plan.predicted_us = c.at("predicted_us").number();
    if (const auto once = c.find("once_us")) plan.once_us = once->number();
  }

  ComputationPlan computation(const JsonCursor& c, const FusionPlan& of) const {
    const std::string called = c.at("name").text();
    const auto found = std::ranges::find(graph_.computations, called, &Computation::name);
    if (found == graph_.computations.end())
      c.at("name").fail(fmt::format("'{}' is no computation of {}", called, graph_.name));
    ComputationPlan part{static_cast<ComputationId>(found - graph_.computations.begin()), {}};
    part.plan.model_path = of.model_path;
    part.plan.model_sha256 = of.model_sha256;
    part.plan.device = of.device;
    part.plan.planner = of.planner;
    part.plan.options = of.options;
    part.plan.tf32 = of.tf32;
    const Graph inner = entered(graph_, part.computation);
    Reader(inner).body(c, part.plan);
    return part;
  }

  NodeId op(const JsonCursor& c, const std::string& op_name) const {
    const auto found = ids_.find(op_name);
    if (found == ids_.end())
      c.fail(fmt::format("'{}' is no op of {}", op_name, graph_.name), "ops are written by their HLO names");
    return found->second;
  }
  NodeId op(const JsonCursor& c) const { return op(c, c.text()); }

  std::vector<NodeId> ops(const JsonCursor& c) const {
    std::vector<NodeId> list;
    c.each([&](const JsonCursor& item) { list.push_back(op(item)); });
    return list;
  }

  PlanStep step(const JsonCursor& c) const {
    PlanStep step;
    step.kind = c.at("kind").one_of(std::array{StepKind::kKernel, StepKind::kLibrary, StepKind::kCopy,
                                               StepKind::kMemset, StepKind::kControl});
    step.id = c.at("id").text();
    if (step.kind == StepKind::kKernel) {
      const auto found = kernels_.find(step.id);
      if (found == kernels_.end()) c.at("id").fail(fmt::format("there is no kernel '{}'", step.id));
      step.kernel = found->second;
    } else {
      step.nodes = ops(c.at("ops"));
    }
    step.stream = c.at("stream").small();
    if (const auto waits = c.find("waits"))
      waits->each([&](const JsonCursor& w) { step.waits.push_back(w.small()); });
    step.predicted_us = c.at("predicted_us").number();
    if (const auto trips = c.find("trips")) step.trips = trips->integer();
    if (const auto once = c.find("once")) step.once = once->boolean();
    if (const auto variant = c.find("variant")) step.variant = variant->text();
    return step;
  }

  Group group(const JsonCursor& c) const {
    Group group;
    group.dominant = op(c.at("dominant"));
    group.sub_dominants = ops(c.at("sub_dominants"));
    if (const auto across = c.find("across")) group.across = ops(*across);
    if (const auto one_pass = c.find("one_pass")) group.one_pass = ops(*one_pass);
    group.ops = ops(c.at("ops"));
    const Dealt dealt = mapping_from_json(c.at("mapping"));
    group.mapping = dealt.mapping;
    group.deal = dealt.deal;
    group.lane = c.at("lane").small();
    group.deal.first_block = c.at("first_block").integer();
    return group;
  }

  std::vector<MemorySlot> slots(const JsonCursor& c) const {
    std::vector<MemorySlot> list;
    c.each([&](const JsonCursor& item) {
      const JsonCursor of = item.at("op");
      list.push_back(
          {of.is_null() ? kNoNode : op(of), item.at("offset").integer(), item.at("bytes").integer()});
    });
    return list;
  }

  Residence residence(const JsonCursor& c) const {
    const std::string& in = c.at("in").text();
    if (in != "shared" && in != "registers")
      c.at("in").fail(fmt::format("'{}' is no place of a resident value", in), "it is shared or registers");
    return {op(c.at("op")), op(c.at("group")),        c.at("level").small(),
            in == "shared", c.at("offset").integer(), c.at("bytes").integer()};
  }

  void kernel(const JsonCursor& c, FusionPlan& plan) {
    KernelPlan kernel;
    kernel.id = c.at("id").text();
    if (!kernels_.emplace(kernel.id, static_cast<int>(plan.kernels.size())).second)
      c.at("id").fail(fmt::format("there are two kernels '{}'", kernel.id));
    kernel.name = c.at("name").text();
    kernel.ops = ops(c.at("ops"));
    kernel.outputs = ops(c.at("outputs"));
    c.at("groups").each([&](const JsonCursor& g) { kernel.groups.push_back(group(g)); });
    c.at("schemes").each_member([&](const std::string& key, const JsonCursor& value) {
      kernel.schemes[op(value, key)] =
          value.one_of(std::array{Scheme::kIndependent, Scheme::kLocal, Scheme::kRegional, Scheme::kResident,
                                  Scheme::kGlobal, Scheme::kRecomputed});
    });
    c.at("levels").each_member([&](const std::string& key, const JsonCursor& value) {
      kernel.levels[op(value, key)] = value.small();
    });
    if (const auto near = c.find("in_phase"))
      near->each_member([&](const std::string& key, const JsonCursor& value) {
        kernel.in_phase[op(value, key)] = value.one_of(std::array{Scheme::kRegional, Scheme::kLocal});
      });
    kernel.shared = slots(c.at("shared"));
    kernel.scratch = slots(c.at("scratch"));
    if (const auto resident = c.find("resident"))
      resident->each([&](const JsonCursor& r) { kernel.resident.push_back(residence(r)); });
    if (const auto tiles = c.find("tiles"))
      tiles->each([&](const JsonCursor& t) {
        kernel.tiles.push_back({op(t.at("op")), op(t.at("group")), t.at("level").small(),
                                t.at("offset").integer(), t.at("bytes").integer()});
        if (const auto stages = t.find("stages")) kernel.tiles.back().stages = stages->small();
      });
    if (const auto shrunk = c.find("shrunk")) kernel.shrunk = ops(*shrunk);
    KernelLaunch& launch = kernel.launch;
    launch.grid = c.at("grid").integer();
    launch.block = c.at("block").small();
    launch.shared_bytes = c.at("shared_bytes").integer();
    launch.scratch_bytes = c.at("scratch_bytes").integer();
    launch.register_bound = c.at("register_bound").small();
    launch.blocks_per_sm = c.at("blocks_per_sm").small();
    launch.blocks_per_wave = c.at("blocks_per_wave").integer();
    launch.grid_barriers = c.at("grid_barriers").small();
    if (const auto cluster = c.find("cluster")) launch.cluster = cluster->small();
    kernel.predicted_us = c.at("predicted_us").number();
    plan.kernels.push_back(std::move(kernel));
  }

  const Computation& computation_;
  const Graph& graph_;
  std::unordered_map<std::string, NodeId> ids_;
  std::unordered_map<std::string, int> kernels_;
};

}  // namespace

namespace {

rewriting::Rewrite rewrite(const JsonCursor& c) {
  rewriting::Rewrite step{c.at("rule").text(), c.at("computation").text(), {}};
  c.at("at").each([&](const JsonCursor& place) {
    rewriting::Place& ops = step.at.emplace_back();
    place.each([&](const JsonCursor& op) { ops.push_back(op.text()); });
  });
  return step;
}

/// null: the plan is of the model as it is.
std::shared_ptr<const rewriting::RewrittenGraph> rewritten(const Graph& model, const JsonCursor& c,
                                                           const std::string& file) {
  const auto steps = c.find("rewrites");
  if (!steps) return nullptr;
  rewriting::Derivation derivation(model);
  steps->each([&](const JsonCursor& step) {
    try {
      derivation.repeat(rewrite(step));
    } catch (const Error& error) {
      step.fail(error.message(), "made by other rules, or edited: plan the model again");
    }
  });
  auto result = std::make_shared<const rewriting::RewrittenGraph>(derivation.result());
  const std::string sha256 = rewriting::sha256_of(*result);
  if (const JsonCursor said = c.at("rewritten_sha256"); said.text() != sha256)
    throw Error(
        file, 0, 0,
        fmt::format("its rewrites give another graph (sha256 {}, the plan's is {})", sha256, said.text()),
        "made by other rules, or edited: plan the model again");
  return result;
}

}  // namespace

/// A compiler's kernels are in its dump, not in the document.
static void refuse_peers(const JsonCursor& root) {
  if (const auto peer = root.find("peer"))
    peer->fail("a compiler made the plan: its kernels are not in this file",
               fmt::format("give the dump itself, {}", peer->at("dump").text()));
}

FusionPlan plan_from_json(const Graph& model, const std::string& text, const std::string& file) {
  const JsonDocument document(text, file, kPlanSchema, kMadeBy, "docs/schema/plan.schema.json");
  refuse_peers(document.root());
  auto graph = rewritten(model, document.root(), file);
  FusionPlan plan = Reader(graph == nullptr ? model : graph->graph).plan(document.root());
  plan.rewritten = std::move(graph);
  return plan;
}

PlanHeader read_plan_header(const std::string& text, const std::string& file) {
  const JsonDocument document(text, file, kPlanSchema, kMadeBy, "docs/schema/plan.schema.json");
  refuse_peers(document.root());
  const JsonCursor model = document.root().at("model");
  return {model.at("path").text(), model.at("sha256").text()};
}

}  // namespace stitchwork
