#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "analysis/facts/once.h"
#include "analysis/judge/cost.h"
#include "analysis/plan/constraints.h"
#include "analysis/plan/control_flow.h"
#include "analysis/planners/astra/planner.h"
#include "analysis/planners/fusionstitching/library.h"
#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "core/base/sorted.h"
#include "core/substitute/derivation.h"
#include "occupancy_model/library.h"

namespace stitchwork {
namespace {

constexpr std::array<std::string_view, 16> kAstitchKnobs = {"adaptive_mapping",
                                                            "dominant_merging",
                                                            "proactive_locality",
                                                            "shared_reuse",
                                                            "register_relaxation",
                                                            "remote_stitching",
                                                            "exhaustive_stitching",
                                                            "data_reuse",
                                                            "across_rows",
                                                            "residence",
                                                            "tiles",
                                                            "async_copies",
                                                            "one_pass",
                                                            "clusters",
                                                            "wide_vectors",
                                                            "mapping"};
/// No quantity: AStitch's (but without exhaustive stitching there are no forms) and `auto`'s own.
constexpr auto kAutoKnobs = [] {
  constexpr auto kOwn =
      std::to_array<std::string_view>({"recompute", "epilogues", "products", "weights", "mapping"});
  std::array<std::string_view, kAstitchKnobs.size() - 2 + kOwn.size()> result;
  const auto end =
      std::copy_if(kAstitchKnobs.begin(), kAstitchKnobs.end(), result.begin(),
                   [](std::string_view name) { return name != "exhaustive_stitching" && name != "mapping"; });
  std::copy(kOwn.begin(), kOwn.end(), end);
  return result;
}();
constexpr std::array<std::string_view, 10> kIlpKnobs = {
    "products",   "solver",  "score",   "launch_cost",  "exploratory",
    "remainders", "packing", "mapping", "shared_limit", "shared_reuse"};
constexpr std::array<std::string_view, 6> kAstraKnobs = {"gemm_fusion", "gemm_kernels", "allocations",
                                                         "views",       "streams",      "elementwise"};
constexpr std::array<std::string_view, 1> kTvmKnobs = {"duplicate_cheap"};
constexpr std::array<std::string_view, 4> kKorchKnobs = {"fission", "reassociate", "candidates", "effort"};
constexpr std::array<std::string_view, 5> kTvmFissionKnobs = {"duplicate_cheap", "fission", "reassociate",
                                                              "effort", "weights"};
/// Those of the rewriting, and `auto`'s.
constexpr auto kFissionKnobs = [] {
  constexpr auto kOwn = std::to_array<std::string_view>({"fission", "reassociate", "effort"});
  std::array<std::string_view, kOwn.size() + kAutoKnobs.size()> result;
  std::copy(kAutoKnobs.begin(), kAutoKnobs.end(), std::copy(kOwn.begin(), kOwn.end(), result.begin()));
  return result;
}();

constexpr std::array<std::string_view, 7> kFusionStitching2018Knobs = {
    "products", "roof", "elementwise_fusion", "size_shrinking", "shared_limit", "shared_reuse", "mapping"};

constexpr std::array kXlaEdits = {EditKind::kForbidMerge, EditKind::kSplit};
constexpr std::array kIlpEdits = {EditKind::kMerge, EditKind::kForbidMerge, EditKind::kSplit,
                                  EditKind::kBlock, EditKind::kTemplate};
constexpr std::array kAstitchEdits = {EditKind::kResidency,   EditKind::kScheme, EditKind::kMerge,
                                      EditKind::kForbidMerge, EditKind::kSplit,  EditKind::kBlock,
                                      EditKind::kSplitFactor};
constexpr std::array kRewriteEdits = {EditKind::kRewrite, EditKind::kForbidRewrite};
constexpr std::array kFissionEdits = {EditKind::kResidency,   EditKind::kScheme,  EditKind::kMerge,
                                      EditKind::kForbidMerge, EditKind::kSplit,   EditKind::kBlock,
                                      EditKind::kSplitFactor, EditKind::kRewrite, EditKind::kForbidRewrite};
constexpr std::array kFusionStitching2018Edits = {EditKind::kForbidMerge, EditKind::kSplit, EditKind::kBlock};

// Steps of the paper's ablation (Table 4), and TVM as the paper describes it, are presets of other rows'
// knobs.
constexpr std::array kAtm = {KnobSetting{"exhaustive_stitching", "off"}};
constexpr std::array kHdm = {KnobSetting{"dominant_merging", "off"}};
/// Of the row of 2018 by itself: "we leave the decision of whether to fuse BatchMatMul to the user"
/// (section 2.1).
constexpr std::array kNoProducts = {KnobSetting{"products", "off"}};
/// Of the rows after the papers, which take softmaxes apart and nothing else.
constexpr std::array kSoftmaxes = {KnobSetting{"fission", "softmax"}};
constexpr std::array kDuplicating = {KnobSetting{"duplicate_cheap", "on"}};

// Columns of the paper's tables (section 6.1).
constexpr std::array kAstraF = {KnobSetting{"gemm_kernels", "off"}, KnobSetting{"streams", "1"},
                                KnobSetting{"allocations", "off"}};
constexpr std::array kAstraFk = {KnobSetting{"streams", "1"}, KnobSetting{"allocations", "off"}};
constexpr std::array kAstraFks = {KnobSetting{"allocations", "off"}};
constexpr std::array kAstraAstitch = {KnobSetting{"elementwise", "astitch"}};

constexpr Planner astra_row(std::string_view name, std::string_view summary,
                            std::span<const KnobSetting> presets) {
  return {name, summary, kAstraKnobs, presets, {}, plan_astra, nullptr, false, rewrite_astra};
}

constexpr std::array kPlanners = {
    Planner{"unfused", "every op its own kernel", {}, {}, {}, plan_unfused},
    Planner{
        "eager",
        "what an eager framework (PyTorch) launches: views cost nothing, a library function is one kernel",
        {},
        {},
        {},
        plan_eager,
        nullptr,
        false,
        rewrite_eager},
    Planner{"xla",
            "XLA's fusion passes of 2019-2020: instruction fusion, fusion merger, multi-output fusion",
            {},
            {},
            kXlaEdits,
            plan_xla},
    Planner{"xla-today",
            "XLA's fusion of today: normalisations, priority fusion by its cost model, multi-output fusion",
            {},
            {},
            kXlaEdits,
            plan_xla_today,
            nullptr,
            false,
            rewrite_xla_today},
    Planner{"xla+atm", "XLA's kernels with AStitch's adaptive thread mapping (ATM of the paper's Table 4)",
            kAstitchKnobs, kAtm, kXlaEdits, plan_astitch},
    Planner{"tvm",
            "TVM's GraphPartitioner: an op is fused with all up to where its readers meet again",
            kTvmKnobs,
            {},
            {},
            plan_tvm},
    Planner{"tvm-duplicating",
            "tvm, with cheap producers computed in every kernel that reads them",
            kTvmKnobs,
            kDuplicating,
            {},
            plan_tvm},
    Planner{"tvm+fission",
            "tvm of the model whose softmaxes are taken apart, their sums products (operator fission)",
            kTvmFissionKnobs, kSoftmaxes, kRewriteEdits, plan_tvm, nullptr, false, rewrite_model},
    Planner{
        "korch",
        "Korch: of all TVM functions of the fissioned model the cheapest that make its values, by a program",
        kKorchKnobs, kSoftmaxes, kRewriteEdits, plan_korch, nullptr, false, rewrite_model},
    Planner{"fusionstitching",
            "FusionStitching (2019): patterns chosen by an integer program, small products in kernels",
            kIlpKnobs,
            {},
            kIlpEdits,
            plan_fusionstitching},
    Planner{"fusionstitching-no-products", "fusionstitching, with every product a library call", kIlpKnobs,
            kNoProducts, kIlpEdits, plan_fusionstitching},
    Planner{"astitch-no-dominant-merging",
            "exhaustive stitching, every candidate a group of its own (HDM of the paper's Table 4)",
            kAstitchKnobs, kHdm, kAstitchEdits, plan_astitch},
    Planner{"astitch",
            "AStitch (ASPLOS 2022): memory-intensive ops stitched into one kernel a cluster",
            kAstitchKnobs,
            {},
            kAstitchEdits,
            plan_astitch},
    Planner{
        "fusionstitching-2018",
        "FusionStitching (2018): deep fusion by layers, one schedule a fusion, values through shared memory",
        kFusionStitching2018Knobs, kNoProducts, kFusionStitching2018Edits, plan_fusionstitching_2018, nullptr,
        true},
    Planner{"imported",
            "what the dump itself decided: a kernel a fusion of XLA's, calls and the rest as they stand",
            {},
            {},
            {},
            plan_imported,
            takes_imported},
    Planner{"auto",
            "for each stitched kernel the cheapest of its forms by the estimate: stitched, cut, XLA's, other "
            "blocks",
            kAutoKnobs,
            {},
            kAstitchEdits,
            plan_auto},
    Planner{"fission",
            "auto of the model written otherwise: the rewritings, found by search, that it gains by",
            kFissionKnobs,
            {},
            kFissionEdits,
            plan_fission,
            nullptr,
            false,
            rewrite_model},
    astra_row("astra-f",
              "Astra (ASPLOS 2019), products fused alone: how many become one is explored, modelled",
              kAstraF),
    astra_row("astra-fk", "astra-f, with the kernel of each product explored", kAstraFk),
    astra_row("astra-fks", "astra-fk, with steps on two streams, explored epoch by epoch", kAstraFks),
    astra_row("astra", "astra-fks, with every strategy of which products may be fused together", {}),
    astra_row("astra+astitch", "astra, with AStitch's kernels between the products", kAstraAstitch),
};

const Knob& knob(std::string_view name) {
  const auto found = std::ranges::find(knobs(), name, &Knob::name);
  if (found != knobs().end()) return *found;
  std::vector<std::string_view> names;
  for (const Knob& k : knobs()) names.push_back(k.name);
  throw Error(fmt::format("no knob is called '{}'", name), fmt::format("known: {}", fmt::join(names, ", ")));
}

bool honours(const Planner& row, std::string_view name) {
  return std::find(row.knobs.begin(), row.knobs.end(), name) != row.knobs.end();
}

void require_edits(const Planner& row, const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) {
    if (std::find(row.edits.begin(), row.edits.end(), edit.kind) != row.edits.end()) continue;
    std::vector<std::string_view> known, others;
    for (const EditKind kind : row.edits) known.push_back(name(kind));
    for (const Planner& other : planners())
      if (other.presets.empty() && std::ranges::find(other.edits, edit.kind) != other.edits.end())
        others.push_back(other.name);
    throw Error(fmt::format("override '{}': planner {} cannot honour {}; planners that do: {}", to_text(edit),
                            row.name, name(edit.kind), fmt::join(others, ", ")),
                known.empty() ? std::string("it takes no overrides")
                              : fmt::format("it honours {}", fmt::join(known, ", ")));
  }
}

}  // namespace

std::string_view default_value(const Planner& row, std::string_view name) {
  for (const KnobSetting& preset : row.presets)
    if (preset.name == name) return preset.value;
  return knob(name).default_value;
}

std::map<std::string, std::string> resolve_knobs(const Planner& row, const PlanOptions& options) {
  for (const auto& [name, value] : options.knobs) {
    const Knob& known = knob(name);
    if (std::find(known.values.begin(), known.values.end(), value) == known.values.end())
      throw Error(fmt::format("knob {} has no value '{}'", name, value),
                  fmt::format("known: {}", fmt::join(known.values, ", ")));
    if (!honours(row, name))
      throw Error(fmt::format("planner {} has no knob {}", row.name, name),
                  row.knobs.empty() ? std::string("it has none")
                                    : fmt::format("it has: {}", fmt::join(row.knobs, ", ")));
  }
  std::map<std::string, std::string> values;
  for (std::string_view name : row.knobs) {
    const auto given = options.knobs.find(std::string(name));
    values[std::string(name)] =
        given == options.knobs.end() ? std::string(default_value(row, name)) : given->second;
  }
  return values;
}

std::span<const Planner> planners() { return kPlanners; }

const Planner& planner(std::string_view name) {
  const auto found =
      std::find_if(kPlanners.begin(), kPlanners.end(), [&](const Planner& p) { return p.name == name; });
  if (found != kPlanners.end()) return *found;
  std::vector<std::string_view> names;
  for (const Planner& p : kPlanners) names.push_back(p.name);
  throw Error(fmt::format("no planner is called '{}'", name),
              fmt::format("known: {}", fmt::join(names, ", ")));
}

Verdict takes(const Planner& row, const Graph& graph) {
  return row.takes == nullptr ? Verdict::yes() : row.takes(graph);
}

std::vector<Planner> planners_for(const Graph& graph) {
  std::vector<Planner> rows;
  std::copy_if(kPlanners.begin(), kPlanners.end(), std::back_inserter(rows),
               [&](const Planner& row) { return static_cast<bool>(takes(row, graph)); });
  return rows;
}

namespace {

/// The plan of the entry computation; `parts` are those of what its loops and branches run.
FusionPlan plan_computation(const Planner& row, const Graph& graph, const Device& device,
                            const PlanOptions& resolved, const std::vector<ComputationPlan>& parts) {
  FusionPlan plan = row.plan(graph, device, resolved);
  plan.planner = row.name;
  plan.edits = resolved.edits;
  plan.tf32 = resolved.tf32;
  plan.weights = resolved.weights;
  if (resolved.library != nullptr) plan.library = resolved.library->sha256;
  require_honoured(graph, plan, resolved.edits);
  plan.options.clear();
  for (const auto& [name, value] : resolved.knobs)
    if (name == "mapping" || value != default_value(row, name)) plan.options[name] = value;
  require_grids(graph, plan);
  const PlanEvaluations found = evaluations(graph.entry_computation(), plan);
  predict(graph, device, plan, found);
  add_control(graph, device, plan, parts);
  add_control_counts(graph, plan, parts);
  const std::vector<Verdict> problems = verify(graph, device, plan, &found);
  SW_CHECK(problems.empty(), "planner {} made an invalid plan of {}: {} [{}]{}", row.name, graph.name,
           problems[0].why, problems[0].rule,
           problems.size() > 1 ? fmt::format(" and {} more", problems.size() - 1) : "");
  return plan;
}

void require_library(const Planner& row, const Device& device,
                     const fusionstitching::PerformanceLibrary& library) {
  std::vector<std::string_view> known;
  for (const Planner& p : kPlanners)
    if (p.takes_library) known.push_back(p.name);
  if (!row.takes_library)
    throw Error(fmt::format("planner {} takes no performance library", row.name),
                fmt::format("of the planners {} does", fmt::join(known, ", ")));
  if (library.device != device.id)
    throw Error(fmt::format("the performance library is of {}, the plan for {}", library.device, device.id),
                "`stitchwork library collect` makes one of the other device");
}

/// null: the model is planned as it is.
std::shared_ptr<const rewriting::RewrittenGraph> rewrite(const Planner& row, const Graph& model,
                                                         const Device& device, const PlanOptions& resolved,
                                                         Recorder& recorder) {
  if (row.rewrite == nullptr) {
    if (resolved.rewrites && !resolved.rewrites->empty())
      throw Error(fmt::format("planner {} plans a model as it is, without rewriting", row.name),
                  "`stitchwork planners` says which rewrite");
    return nullptr;
  }
  // Astra's exploration over modelled times is deterministic, so that it says why of a saved plan, too.
  if (resolved.rewrites && recorder.enabled() && row.rewrite == rewrite_astra)
    row.rewrite(model, device, resolved, recorder);
  auto result = std::make_shared<const rewriting::RewrittenGraph>(
      resolved.rewrites ? rewriting::replay(model, *resolved.rewrites)
                        : row.rewrite(model, device, resolved, recorder));
  return result->steps.empty() ? nullptr : result;
}

void add_rewrite_decisions(const std::vector<rewriting::Rewrite>& steps, std::vector<Decision>& decisions) {
  for (const rewriting::Rewrite& step : steps)
    for (const rewriting::Place& place : step.at)
      decisions.push_back(
          {"rewrite", place.front(), "",
           Verdict::yes("rewrite." + step.rule, std::string(rewriting::rule_named(step.rule).summary))});
}

/// The model with its weights, where the planner is to know them; else `resolved` has none.
std::optional<Graph> declared_weights(const Graph& model, PlanOptions& resolved) {
  const auto knob = resolved.knobs.find("weights");
  if (knob == resolved.knobs.end() || knob->second != "stable") {
    resolved.weights.clear();
    return std::nullopt;
  }
  const std::vector<std::string>& declared = resolved.weights.empty() ? model.weights : resolved.weights;
  if (declared.empty())
    throw Error(model.source, 0, 0, "weights=stable, and no parameter is declared as a weight",
                "`--weights 'params.*'` declares those of such names");
  resolved.weights = weights_named(model, declared);
  return with_weights(model, resolved.weights);
}

void add_counts(PlanCounts& total, const PlanCounts& part) {
  total.memory_kernels += part.memory_kernels;
  total.library_calls += part.library_calls;
  total.copies += part.copies;
  total.memsets += part.memsets;
}

}  // namespace

PlanOptions as_planned(const FusionPlan& plan, bool record_decisions) {
  PlanOptions options{plan.options, plan.edits, record_decisions, plan.weights, plan.tf32};
  options.rewrites.emplace();
  if (plan.rewritten != nullptr) options.rewrites = plan.rewritten->steps;
  return options;
}

FusionPlan make_plan(const Graph& given, const Device& device, std::string_view planner_name,
                     const PlanOptions& options) {
  const Planner& row = planner(planner_name);
  PlanOptions resolved = options;
  resolved.knobs = resolve_knobs(row, options);
  const std::optional<Graph> declared = declared_weights(given, resolved);
  const Graph& model = declared ? *declared : given;
  require_edits(row, options.edits);
  if (options.tf32) require_tf32(device);
  if (options.library != nullptr) require_library(row, device, *options.library);
  if (const Verdict verdict = takes(row, model); !verdict)
    throw Error(model.source, 0, 0,
                fmt::format("planner {} cannot plan this model: {}", row.name, verdict.why),
                "`stitchwork planners` lists the others");
  Recorder of_rewriting(options.record_decisions);
  const std::shared_ptr<const rewriting::RewrittenGraph> rewritten =
      rewrite(row, model, device, resolved, of_rewriting);
  const Graph& graph = rewritten == nullptr ? model : rewritten->graph;
  PlanOptions inner = resolved;
  inner.edits.clear();
  inner.weights.clear();
  std::vector<ComputationPlan> parts;
  for (const ComputationId id : run_by_control(graph))
    parts.push_back({id, plan_computation(row, entered(graph, id), device, inner, parts)});
  FusionPlan plan = plan_computation(row, graph, device, resolved, parts);
  for (const ComputationPlan& part : parts) {
    add_counts(plan.counts, part.plan.counts);
    plan.decisions.insert(plan.decisions.end(), part.plan.decisions.begin(), part.plan.decisions.end());
    plan.library_misses.insert(plan.library_misses.end(), part.plan.library_misses.begin(),
                               part.plan.library_misses.end());
  }
  sort_unique(plan.library_misses);
  plan.computations = std::move(parts);
  if (options.record_decisions) {
    std::vector<Decision> decisions = edit_decisions(options.edits);
    for (Decision& decision : of_rewriting.take()) decisions.push_back(std::move(decision));
    if (rewritten != nullptr) add_rewrite_decisions(rewritten->steps, decisions);
    plan.decisions.insert(plan.decisions.begin(), decisions.begin(), decisions.end());
  }
  plan.rewritten = rewritten;
  return plan;
}

}  // namespace stitchwork
