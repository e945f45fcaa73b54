// Operator fission: the model written otherwise before it is planned. Venkatram and Oliaro, "ML computation
// graph operator fission and fusion", section 2.1.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "analysis/judge/cost.h"
#include "analysis/planners/fission/effort.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/substitute/derivation.h"
#include "core/substitute/softmax.h"

namespace stitchwork {
namespace {

using fission::Move;
using fission::Region;
using fission::RegionSearch;
using rewriting::Derivation;
using rewriting::Rule;

/// Gains below are noise: the error of modelled times of two forms of one work (auto's, for its reason:
/// docs/planners/auto.md).
constexpr double kMargin = 0.03;

/// Regions of one text, and the moves found for them.
struct Alike {
  std::vector<const Region*> regions;
  RegionSearch found;

  double gain_us() const { return (found.before_us - found.after_us) * static_cast<double>(regions.size()); }
};

/// Whether a running computation has an op of that name.
bool runs_op(const Graph& graph, const std::string& op) {
  return std::ranges::any_of(rewriting::running_computations(graph),
                             [&](ComputationId id) { return graph.computation(id).find(op) != kNoNode; });
}

bool has_narrow_floats(const Graph& graph) {
  return std::ranges::any_of(graph.entry_computation().nodes, [](const Node& node) {
    return !node.shape.is_tuple && (node.shape.dtype == DType::kF16 || node.shape.dtype == DType::kBF16);
  });
}

/// Of 16-bit floats those alone that move values: what is summed otherwise is rounded elsewhere, and beyond
/// what the check of results allows (docs/rewriting.md). With TF32 a product of ones would round summands.
std::vector<const Rule*> rules_for(const Region& region, bool reassociate, bool tf32) {
  std::vector<const Rule*> result;
  const bool may = reassociate && !has_narrow_floats(region.graph);
  for (const Rule& rule : rewriting::rules()) {
    if (rule.tidy || (rule.exactness == rewriting::Exactness::kReassociates && !may)) continue;
    if (tf32 && (rule.name == "reduce-as-dot" || rule.name == "softmax-dot")) continue;
    result.push_back(&rule);
  }
  return result;
}

class Search {
 public:
  /// From `asked` on, which holds what overrides ask for.
  Search(Derivation asked, const Device& device, const PlanOptions& options, Recorder& recorder)
      : device_(device),
        recorder_(recorder),
        reassociate_(options.knobs.at("reassociate") == "on"),
        effort_(fission::effort(options.knobs.at("effort"))),
        asked_(std::move(asked)),
        now_(asked_) {
    for (const std::string_view knob : planner("auto").knobs)
      if (const auto set = options.knobs.find(std::string(knob)); set != options.knobs.end())
        plain_.knobs.insert(*set);
    for (const Edit& edit : options.edits)
      if (!is_rewriting(edit)) named_.insert(named_.end(), edit.ops.begin(), edit.ops.end());
    plain_.tf32 = options.tf32;
    plain_.weights = options.weights;
    plain_.judge = options.judge;
    auto_.row = &planner("auto");
    auto_.options = plain_;
    auto_.options.knobs = resolve_knobs(*auto_.row, plain_);
    xla_.row = &planner("xla");
    xla_.options.tf32 = plain_.tf32;
    asked_us_ = us(asked_.result().graph);
  }

  rewriting::RewrittenGraph run() {
    Derivation tidied = now_;
    tidied.tidy();
    if (keeps_named(tidied)) now_ = std::move(tidied);
    now_us_ = now_.result().steps == asked_.result().steps ? asked_us_ : us(now_.result().graph);
    for (int round = 0; round < effort_.rounds && take_round(); ++round) {
    }
    return now_us_ < asked_us_ ? now_.result() : asked_.result();
  }

 private:
  double us(const Graph& graph) const { return make_plan(graph, device_, "auto", plain_).predicted_us; }

  /// A planner of regions, and what it said. Regions overlap, and layers are alike but for a few ops.
  struct Pricer {
    const Planner* row = nullptr;
    PlanOptions options;
    std::mutex mutex;
    std::map<std::string, double> known_us;  ///< by text
  };

  /// Of a region, as that row plans it, unverified.
  double region_us(Pricer& by, const Graph& graph, const std::string& text) const {
    {
      const std::lock_guard lock(by.mutex);
      if (const auto found = by.known_us.find(text); found != by.known_us.end()) return found->second;
    }
    FusionPlan plan = by.row->plan(graph, device_, by.options);
    predict(graph, device_, plan, evaluations(graph.entry_computation(), plan));
    const std::lock_guard lock(by.mutex);
    return by.known_us.emplace(text, plan.predicted_us).first->second;
  }

  /// Overrides name ops of the model: what would remove one is not done.
  bool keeps_named(const Derivation& trial) const {
    return std::ranges::all_of(named_,
                               [&](const std::string& op) { return runs_op(trial.result().graph, op); });
  }

  /// Whether anything was rewritten.
  bool take_round() {
    const std::vector<Region> all = fission::regions(now_.result().graph);
    std::map<std::string_view, Alike> by_text;
    for (const Region& region : all) by_text[region.text].regions.push_back(&region);
    std::vector<Alike*> groups;
    for (auto& [text, alike] : by_text) groups.push_back(&alike);
    parallel_for(groups.size(), [&](std::size_t g) {
      const Region& region = *groups[g]->regions.front();
      groups[g]->found = fission::search(
          region, rules_for(region, reassociate_, plain_.tf32),
          [&](const Graph& graph, const std::string& text) {
            return region_us(effort_.sketches ? xla_ : auto_, graph, text);
          },
          [&](const Graph& graph, const std::string& text) { return region_us(auto_, graph, text); },
          effort_.search);
    });
    for (const Alike* alike : groups) record_tried(*alike);
    std::erase_if(groups, [](const Alike* alike) {
      return alike->found.moves.empty() || alike->found.after_us > (1 - kMargin) * alike->found.before_us;
    });
    std::ranges::stable_sort(groups, std::greater<>(), [](const Alike* alike) { return alike->gain_us(); });
    if (groups.size() > effort_.groups) groups.resize(effort_.groups);
    bool changed = false;
    for (const Alike* alike : groups) changed = take(*alike) || changed;
    return changed;
  }

  /// The moves wherever the regions are, if the whole model gains by them.
  bool take(const Alike& alike) {
    Derivation trial = now_;
    int places = 0;
    for (const Move& move : alike.found.moves) {
      std::map<std::string, std::vector<std::string>> ops;  // by computation
      for (const Region* region : alike.regions)
        ops[region->computation].push_back(region->in_model(move.op));
      for (auto& [computation, names] : ops) places += trial.apply(*move.rule, computation, std::move(names));
      trial.tidy();
    }
    if (places == 0) return false;
    if (!keeps_named(trial)) {
      recorder_.add("search", alike.regions.front()->in_model(alike.found.moves.front().op), "", [&] {
        return Verdict::no("fission.named-by-override", "an override names an op that would be gone");
      });
      return false;
    }
    const double after_us = us(trial.result().graph);
    const bool better = after_us < now_us_;
    record_taken(alike, after_us, better);
    if (!better) return false;
    now_ = std::move(trial);
    now_us_ = after_us;
    return true;
  }

  static std::string text_of(const Region& region, const std::vector<Move>& moves) {
    std::string text;
    for (const Move& move : moves)
      text += fmt::format("{}{} at {}", text.empty() ? "" : ", ", move.rule->name, region.in_model(move.op));
    return text;
  }

  void record_tried(const Alike& alike) {
    const Region& region = *alike.regions.front();
    const auto record = [&](const fission::Tried& tried, std::string_view rule, const char* how) {
      recorder_.add("search", region.in_model(tried.moves.front().op), "", [&] {
        const std::string why = fmt::format(
            "{}; what lies between the calls beside it takes {:.2f} us so and {:.2f} "
            "us as it is, {}",
            text_of(region, tried.moves), tried.us, tried.before_us, how);
        return tried.us < tried.before_us ? Verdict::yes(std::string(rule), why)
                                          : Verdict::no(std::string(rule), why);
      });
    };
    for (const fission::Tried& tried : alike.found.sketched)
      record(tried, "fission.sketched", effort_.sketches ? "by XLA's kernels" : "by auto's kernels");
    for (const fission::Tried& tried : alike.found.priced)
      record(tried, "fission.moves", "by auto's kernels");
  }

  void record_taken(const Alike& alike, double after_us, bool better) {
    const Region& region = *alike.regions.front();
    recorder_.add("search", region.in_model(alike.found.moves.front().op), "", [&] {
      const std::string why =
          fmt::format("{}; at {} places alike; the model takes {:.2f} us with them, {:.2f} us without",
                      text_of(region, alike.found.moves), alike.regions.size(), after_us, now_us_);
      return better ? Verdict::yes("fission.taken", why) : Verdict::no("fission.model-gains-nothing", why);
    });
  }

  const Device& device_;
  Recorder& recorder_;
  bool reassociate_;
  fission::Effort effort_;
  PlanOptions plain_;               ///< of `auto`
  std::vector<std::string> named_;  ///< by overrides
  Derivation asked_, now_;
  double asked_us_ = 0, now_us_ = 0;
  Pricer auto_, xla_;  ///< prices, and the sketches before them
};

/// The model after the rewritings that overrides ask for, and without those that they forbid from then on.
Derivation asked_for(const Graph& model, const std::vector<Edit>& edits) {
  Derivation derivation(model);
  const auto refuse = [](const Edit& edit, const std::string& why, const std::string& hint) {
    return Error(fmt::format("override '{}': {}", to_text(edit), why), hint);
  };
  for (const Edit& edit : edits) {
    if (edit.kind != EditKind::kForbidRewrite) continue;
    const Rule& rule = rewriting::rule_named(edit.to);
    if (rule.tidy)
      throw refuse(edit, fmt::format("{} is one of the tidy rules, which hold everywhere", rule.name),
                   "--set fission=off takes no rule at all");
    derivation.forbid(rule, edit.ops.at(0));
  }
  for (const Edit& edit : edits) {
    if (edit.kind != EditKind::kRewrite) continue;
    const Rule& rule = rewriting::rule_named(edit.to);
    const std::string& op = edit.ops.at(0);
    if (!derivation.apply(rule, rewriting::computation_of(derivation.result().graph, op), op))
      throw refuse(edit, fmt::format("{} does not hold there, or another override forbids it", rule.name),
                   fmt::format("{}, if {}", rule.summary, rule.holds));
  }
  return derivation;
}

/// A forbidden place that neither the model nor what became of it has would forbid nothing.
void require_places(const rewriting::RewrittenGraph& result, const std::vector<Edit>& edits) {
  for (const Edit& edit : edits)
    if (edit.kind == EditKind::kForbidRewrite && !runs_op(result.graph, edit.ops.at(0)) &&
        !runs_op(*result.model, edit.ops.at(0)))
      rewriting::computation_of(*result.model, edit.ops.at(0));  // which throws
}

}  // namespace

/// fission=softmax is the authors' way: the tidy rules follow where they have TASO optimise the fissioned
/// graph (section 2.4): what of it is right whatever a kernel costs.
rewriting::RewrittenGraph rewrite_model(const Graph& model, const Device& device, const PlanOptions& options,
                                        Recorder& recorder) {
  const std::string& fission = options.knobs.at("fission");
  Derivation derivation = asked_for(model, options.edits);
  if (fission == "on") {
    rewriting::RewrittenGraph result = Search(std::move(derivation), device, options, recorder).run();
    require_places(result, options.edits);
    return result;
  }
  if (fission == "softmax" && options.knobs.at("reassociate") == "on") rewriting::fission_softmax(derivation);
  if (fission != "off") derivation.tidy();
  require_places(derivation.result(), options.edits);
  return derivation.result();
}

FusionPlan plan_fission(const Graph& graph, const Device& device, const PlanOptions& options) {
  PlanOptions own = options;
  for (const char* knob : {"fission", "reassociate", "effort"}) own.knobs.erase(knob);
  return plan_auto(graph, device, own);
}

}  // namespace stitchwork
