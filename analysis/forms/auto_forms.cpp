#include "analysis/forms/auto_forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "analysis/judge/cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/inlined_kernel.h"
#include "analysis/schedule/plain_mapping.h"
#include "core/base/format.h"
#include "core/base/sorted.h"
#include "core/hlo/hlo_text.h"
#include "occupancy_model/errors.h"

namespace stitchwork::automatic {
namespace {

bool contains(const std::vector<NodeId>& ascending, NodeId id) {
  return std::binary_search(ascending.begin(), ascending.end(), id);
}

/// What of a part is read outside it: what the whole kernel stores, and what its other parts read. (By the
/// graph alone, others might read what they compute again, and nobody what they compute that from.)
std::vector<NodeId> outputs_of(const Stitched& s, const std::vector<NodeId>& part) {
  std::vector<NodeId> outputs;
  for (const NodeId op : part)
    if (contains(s.op.outputs, op)) outputs.push_back(op);
  for (const auto& [producer, reader] : astitch::edges_across(*s.nodes, s.op.members, part))
    insert_sorted(outputs, producer);
  return outputs;
}

void add_kernels(const Stitched& s, const std::vector<NodeId>& members, const Recipe& recipe, Form& form) {
  for (Candidate& part : astitch::connected_parts(*s.nodes, members)) {
    part.outputs = outputs_of(s, part.members);
    astitch::Options options = *s.options;
    options.record_decisions = false;
    options.scalars_stored = !recipe.again;
    if (recipe.block > 0) options.constraints.block.emplace(part.members.front(), recipe.block);
    if (recipe.whole_rows) {
      for (const NodeId id : part.members)
        if ((*s.nodes)[id].reduction) options.constraints.split_factor.emplace(id, 1);
    }
    const auto like = s.known == nullptr ? std::nullopt : likeness(*s.nodes, part, s.options->constraints);
    std::optional<std::vector<KernelPlan>> kernels;
    if (like) kernels = s.known->find(recipe, *like);
    if (!kernels) {
      kernels = best_kernel(*s.nodes, part, *s.device, options).kernels;
      if (like) s.known->add(recipe, *like, *kernels);
    }
    std::move(kernels->begin(), kernels->end(), std::back_inserter(form.kernels));
  }
}

/// Members that phases up to `last` need: what they materialise, and all it is computed from.
std::set<NodeId> needed_until(const Stitched& s, int last) {
  std::set<NodeId> needed;
  std::vector<NodeId> open;
  for (const NodeId id : materialised(*s.kernel))
    if (s.kernel->levels.at(id) <= last) open.push_back(id);
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!s.kernel->levels.contains(id) || !needed.insert(id).second) continue;
    const auto& operands = s.nodes->node(id).operands;
    open.insert(open.end(), operands.begin(), operands.end());
  }
  return needed;
}

void add_cut(const Stitched& s, const Recipe& recipe, Form& form) {
  std::vector<NodeId> left = s.op.members;
  for (const int phase : recipe.after) {
    const std::set<NodeId> needed = needed_until(s, phase);
    std::vector<NodeId> part, rest;
    for (const NodeId id : left) (needed.contains(id) ? part : rest).push_back(id);
    if (part.empty() || rest.empty()) return form.kernels.clear();
    add_kernels(s, part, recipe, form);
    left = std::move(rest);
  }
  add_kernels(s, left, recipe, form);
}

/// Every output must come from one of XLA's kernels, or be a copy, which is a step of its own.
void add_xla(const Stitched& s, Form& form) {
  std::set<NodeId> made;
  for (const KernelPlan& kernel : *s.xla) {
    const std::vector<NodeId> of = materialised(kernel);
    made.insert(of.begin(), of.end());
  }
  for (const NodeId id : s.op.outputs) {
    if (made.contains(id)) continue;
    if (s.nodes->node(id).op != Op::kCopy) return;
    form.us +=
        transfer_us(*s.device, 2.0 * static_cast<double>(s.nodes->bytes(id))) + s.device->launch_gap_us;
  }
  form.kernels = *s.xla;
}

/// Whether one loop gives all these values: they are of one shape, and nothing in the kernel reads them.
bool share_a_loop(const Computation& computation, const KernelPlan& kernel,
                  const std::vector<NodeId>& outputs) {
  const auto alike = [&](NodeId id) {
    return computation.node(id).shape.dims == computation.node(outputs.front()).shape.dims;
  };
  const auto reads_one = [&](NodeId op) {
    return std::ranges::any_of(computation.node(op).operands, [&](NodeId operand) {
      return contains(outputs, buffer_of(computation, operand));
    });
  };
  return outputs.size() == 1 ||
         (std::ranges::all_of(outputs, alike) && std::ranges::none_of(kernel.ops, reads_one));
}

/// One loop over what is stored, which computes all it needs where it needs it: no barrier, no scratch, some
/// ops several times. Reductions would be made again by every element.
void add_inlined(const Stitched& s, Form& form) {
  const Computation& computation = s.nodes->graph->entry_computation();
  if (s.op.outputs.empty() || !share_a_loop(computation, *s.kernel, s.op.outputs)) return;
  const NodeId root = s.op.outputs.back();
  const bool maps = std::ranges::all_of(s.kernel->ops, [&](NodeId id) {
    switch (def(computation.node(id).op).cls) {
      case OpClass::kReduce:
      case OpClass::kWindow:
      case OpClass::kScatter:
      case OpClass::kLinear:
        return false;
      default:
        return computation.node(id).op != Op::kCopy;
    }
  });
  if (!maps) return;
  auto inlined = inlined_within_maps(computation, s.kernel->ops, s.op.outputs, root,
                                     natural_mapping(computation, computation.node(root)));
  if (const auto* too_often = std::get_if<NodeId>(&inlined)) {
    form.refusal = fmt::format("{} would be computed at more than {} indices of the loop's",
                               s.nodes->name(*too_often), kMostMaps);
    return;
  }
  KernelPlan& kernel = std::get<KernelPlan>(inlined);
  kernel.outputs = materialised(kernel);
  form.kernels.push_back(std::move(kernel));
}

bool splits_rows(const KernelPlan& kernel) {
  return std::any_of(kernel.groups.begin(), kernel.groups.end(),
                     [](const Group& group) { return segments(group.mapping) > 1; });
}

/// Whether readers wait at a grid barrier for scalars that no reduction makes: for a power of the step, where
/// all else would need no barrier.
bool waits_for_scalars(const Stitched& s) {
  return std::ranges::any_of(s.kernel->schemes, [&](const auto& scheme) {
    const astitch::NodeFacts& facts = (*s.nodes)[scheme.first];
    return scheme.second == Scheme::kGlobal && facts.elements == 1 && !facts.reduction;
  });
}

/// Whether overrides name ops of the kernel so that other forms would undo them.
bool is_fixed(const Stitched& s) {
  const Constraints& wanted = s.options->constraints;
  const auto mine = [&](const auto& entry) { return contains(s.op.members, entry.first); };
  return std::any_of(wanted.schemes.begin(), wanted.schemes.end(), mine) ||
         std::any_of(wanted.split_factor.begin(), wanted.split_factor.end(), mine) ||
         std::any_of(wanted.together.begin(), wanted.together.end(), mine);
}

/// Whether overrides set the launch of the kernel of one of its ops: AStitch's forms follow them, in their
/// block.
bool has_wanted_launch(const Stitched& s) {
  const Constraints& wanted = s.options->constraints;
  const auto mine = [&](const auto& entry) { return contains(s.op.members, entry.first); };
  return std::any_of(wanted.block.begin(), wanted.block.end(), mine) ||
         std::any_of(wanted.residency.begin(), wanted.residency.end(), mine);
}

}  // namespace

std::optional<std::vector<KernelPlan>> KnownParts::find(const Recipe& recipe, const astitch::Likeness& like) {
  const std::lock_guard lock(mutex_);
  return known_[{recipe.block, recipe.whole_rows, recipe.again}].find(like);
}

void KnownParts::add(const Recipe& recipe, astitch::Likeness like, std::vector<KernelPlan> kernels) {
  const std::lock_guard lock(mutex_);
  known_[{recipe.block, recipe.whole_rows, recipe.again}].add(std::move(like), std::move(kernels));
}

std::string name(const Recipe& recipe) {
  std::string text;
  switch (recipe.cut) {
    case Recipe::Cut::kNone:
      text = "stitched";
      break;
    case Recipe::Cut::kApart:
      text = "apart";
      break;
    case Recipe::Cut::kPhases:
      text = fmt::format("cut behind phase {}", fmt::join(recipe.after, " and "));
      break;
    case Recipe::Cut::kInlined:
      text = "one loop";
      break;
    case Recipe::Cut::kXla:
      text = "XLA's fusions";
      break;
  }
  if (recipe.whole_rows) text += ", whole rows";
  if (recipe.again) text += ", scalars again";
  if (recipe.block > 0) text += fmt::format(", blocks of {}", recipe.block);
  return text;
}

Form make_form(const Stitched& s, const Recipe& recipe) {
  Form form;
  form.name = name(recipe);
  switch (recipe.cut) {
    case Recipe::Cut::kNone:
      form.rule = "auto.stitched";
      if (recipe == Recipe{}) {
        form.kernels = {*s.kernel};
      } else {
        add_kernels(s, s.op.members, recipe, form);
      }
      break;
    case Recipe::Cut::kApart:
      form.rule = "auto.apart";
      add_kernels(s, s.op.members, recipe, form);
      break;
    case Recipe::Cut::kPhases:
      form.rule = "auto.cut";
      add_cut(s, recipe, form);
      break;
    case Recipe::Cut::kInlined:
      form.rule = "auto.inlined";
      add_inlined(s, form);
      break;
    case Recipe::Cut::kXla:
      form.rule = "auto.xla";
      add_xla(s, form);
      break;
  }
  return form;
}

double us_of(const Stitched& s, const Form& form) {
  return form.us + s.options->judge->worth(*s.nodes->graph, *s.device, form.kernels).us;
}

Recipe choose_recipe(const Stitched& s, Recorder& recorder) {
  using Cut = Recipe::Cut;
  if (is_fixed(s)) return {};
  const std::string& subject = s.nodes->name(s.op.members.back());
  std::vector<std::pair<Recipe, Form>> tried;
  const auto try_recipe = [&](const Recipe& recipe) {
    Form form = make_form(s, recipe);
    if (form.kernels.empty()) {
      if (!form.refusal.empty())
        recorder.add(kFormStep, subject, form.name, [&] { return Verdict::no(form.rule, form.refusal); });
      return;
    }
    form.us = us_of(s, form);
    tried.emplace_back(recipe, std::move(form));
  };
  const auto best = [&] {
    return std::min_element(tried.begin(), tried.end(),
                            [](const auto& a, const auto& b) { return a.second.us < b.second.us; });
  };

  try_recipe({});
  if (astitch::connected_parts(*s.nodes, s.op.members).size() > 1) try_recipe({.cut = Cut::kApart});
  std::vector<int> all;
  for (int phase = 0; phase < s.kernel->launch.grid_barriers; ++phase) {
    try_recipe({.cut = Cut::kPhases, .after = {phase}});
    all.push_back(phase);
  }
  if (all.size() > 1) try_recipe({.cut = Cut::kPhases, .after = all});
  if (waits_for_scalars(s)) try_recipe({.again = true});
  for (std::size_t i = 0, cuts = tried.size(); i < cuts; ++i) {
    const auto& kernels = tried[i].second.kernels;
    Recipe whole = tried[i].first;
    whole.whole_rows = true;
    if (std::any_of(kernels.begin(), kernels.end(), splits_rows)) try_recipe(whole);
  }
  if (!has_wanted_launch(s)) {
    Recipe shape = best()->first;
    for (const int block : {512, 256, 128}) {
      if (block >= best()->second.kernels.front().launch.block) continue;
      shape.block = block;
      try_recipe(shape);
    }
    try_recipe({.cut = Cut::kInlined});
    try_recipe({.cut = Cut::kXla});
  }

  auto chosen = best();
  if (chosen->second.us > (1 - kOtherForm) * tried.front().second.us) chosen = tried.begin();
  for (auto& [recipe, form] : tried) {
    recorder.add(kFormStep, subject, form.name, [&] {
      const std::string why = fmt::format("{:.2f} us in {}, {} as stitched: {:.2f} us", form.us,
                                          counted(std::ssize(form.kernels), "launch"),
                                          form.us < tried.front().second.us ? "less than"
                                          : recipe == Recipe{}              ? "the same"
                                                                            : "no less than",
                                          tried.front().second.us);
      return recipe == chosen->first ? Verdict::yes(form.rule, why) : Verdict::no(form.rule, why);
    });
  }
  return chosen->first;
}

namespace {

/// What an op does beyond its name and dimensions, as far as planning asks.
std::string attributes_text(const Graph& graph, const Node& node) {
  const Attributes& attrs = node.attrs;
  std::string text = fmt::format("{}", fmt::join(attrs.dimensions, ","));
  for (const SliceSpec& slice : attrs.slice)
    text += fmt::format(";{}:{}:{}", slice.start, slice.limit, slice.stride);
  for (const PadSpec& pad : attrs.padding) text += fmt::format(";{}_{}_{}", pad.low, pad.high, pad.interior);
  text += fmt::format(";{}", fmt::join(attrs.slice_sizes, ","));
  if (attrs.gather)
    text += fmt::format(";{}|{}|{}|{}|{}", fmt::join(attrs.gather->offset_dims, ","),
                        fmt::join(attrs.gather->collapsed_slice_dims, ","),
                        fmt::join(attrs.gather->start_index_map, ","),
                        fmt::join(attrs.gather->slice_sizes, ","), attrs.gather->index_vector_dim);
  if (attrs.dot)
    text += fmt::format(";{}|{}|{}|{}", fmt::join(attrs.dot->lhs_batch, ","),
                        fmt::join(attrs.dot->rhs_batch, ","), fmt::join(attrs.dot->lhs_contracting, ","),
                        fmt::join(attrs.dot->rhs_contracting, ","));
  if (def(node.op).cls != OpClass::kReduce || attrs.computations.empty()) return text;
  // Only sums from zero can be added up by atomics.
  const auto reducer = simple_reducer(graph, applied(node));
  text += fmt::format(";{}", reducer ? def(*reducer).name : "several operations");
  for (const NodeId operand : node.operands)
    if (const auto& literal = graph.entry_computation().node(operand).attrs.literal;
        literal && literal->shape.elements_count() == 1)
      text += literal->get_double(0) == 0 ? " from 0" : " from another value";
  return text;
}

/// How a kernel comes by a value that it does not compute: constants are immediates, what only maps an index
/// may be read through, the rest is loaded, whoever stored it.
std::string read_as(const Graph& graph, NodeId value) {
  const Node& node = graph.entry_computation().node(value);
  if (node.op == Op::kConstant || node.op == Op::kIota) return std::string(def(node.op).name);
  const OpClass cls = def(node.op).cls;
  if ((cls != OpClass::kBroadcast && cls != OpClass::kLayout) || node.operands.size() != 1) return {};
  return fmt::format("{}{}{}", def(node.op).name, attributes_text(graph, node),
                     read_as(graph, node.operands[0]));
}

}  // namespace

std::string signature(const Graph& graph, const std::vector<NodeId>& ops,
                      const std::vector<NodeId>& outputs) {
  const Computation& computation = graph.entry_computation();
  std::map<NodeId, std::size_t> numbers;
  const auto number = [&](NodeId id) { return numbers.emplace(id, numbers.size()).first->second; };
  std::string text;
  for (const NodeId id : ops) {
    const Node& node = computation.node(id);
    text += fmt::format("{}={}{}{}({}", number(id), def(node.op).name, to_text(node.shape),
                        contains(outputs, id) ? "!" : "", attributes_text(graph, node));
    for (const NodeId operand : node.operands)
      text += fmt::format(" {}{}{}", number(operand), to_text(computation.node(operand).shape),
                          contains(ops, operand) ? "" : read_as(graph, operand));
    text += ")";
  }
  return text;
}

std::string signature(const Stitched& s) { return signature(*s.nodes->graph, s.kernel->ops, s.op.outputs); }

}  // namespace stitchwork::automatic
