#include "analysis/planners/fusionstitching/deep/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/planners/fusionstitching/locality.h"
#include "analysis/planners/fusionstitching/schedule_rules.h"
#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching::deep {
namespace {

/// A transpose is bypassed where a block has no more elements of it than the largest block has threads: one
/// each, in whatever order.
/// A choice, not measured: section 4.3 says "small" transposes.
constexpr std::int64_t kSmallTranspose = 1024;
/// Blocks of a launch: CUDA Programming Guide, "grid of thread blocks", 2^31 - 1.
constexpr std::int64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();

/// Different indices at which a kernel evaluates one op: what is inlined through concatenations and
/// transposes in turn would be printed for each, and they double by the op.
/// A choice, not measured: about three times what AStitch stores a value for (docs/planners/astitch.md).
constexpr std::size_t kMostPlaces = 64;
// No quantity: it spreads numbers over a word (2^64 over the golden ratio).
constexpr std::size_t kMixing = 0x9E3779B97F4A7C15;

void add(Sums& sums, const OpTimes::BySize& times) {
  for (std::size_t s = 0; s < sums.size(); ++s) sums[s] += times[s].us;
}

}  // namespace

Tuner::Tuner(const Graph& graph, const Device& device, const Contraction& units, const Options& options,
             OpTimes& times)
    : graph_(graph),
      computation_(graph.entry_computation()),
      device_(device),
      units_(units),
      options_(options),
      times_(times),
      users_(computation_.users()),
      place_(users_.size(), -1),
      joining_(users_.size(), -1),
      places_(users_.size()) {}

bool Tuner::is_trivial(const Node& node, const Schedule& schedule) const {
  if (def(node.op).cls == OpClass::kWindow) return false;
  if (!has_rule(node) || node.op == Op::kBroadcast || node.op == Op::kReshape || node.op == Op::kBitcast)
    return true;
  if (node.op != Op::kTranspose) return false;
  const std::int64_t blocks = blocks_of(schedule, node.shape.dims);
  return elements_of(node.shape.dims) <= blocks * kSmallTranspose;
}

bool Tuner::has_schedule(const Node& node, const Schedule& schedule) const {
  return node.op != Op::kDot || pass(computation_, node, 0, schedule).has_value();
}

double Tuner::alone_us(NodeId op) {
  const Node& node = computation_.node(op);
  const auto [found, fresh] = alone_.try_emplace(times_.kind(op), std::numeric_limits<double>::infinity());
  if (!fresh) return found->second;
  for (const Schedule& schedule : distinct_candidates(node.shape.dims)) {
    if (!has_schedule(node, schedule)) continue;
    Sums us{};
    add(us, times_.best(op, schedule));
    found->second = std::min(found->second, least(us, -1));
  }
  return found->second;
}

int Tuner::wanted_size(const std::vector<NodeId>& ops) const {
  if (options_.constraints.block.empty()) return -1;
  const auto* wanted = Constraints::find(options_.constraints.block, ops);
  if (wanted == nullptr) return -1;
  const auto size = std::lower_bound(kBlockSizes.begin(), kBlockSizes.end() - 1, wanted->second);
  return static_cast<int>(size - kBlockSizes.begin());
}

double Tuner::least(const Sums& us, int wanted) const {
  return wanted >= 0 ? us[static_cast<std::size_t>(wanted)] : *std::min_element(us.begin(), us.end());
}

Tuned Tuner::seed(const std::vector<NodeId>& ops) {
  Tuned tuned{ops, ops, {}, std::numeric_limits<double>::infinity()};
  const int wanted = wanted_size(ops);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    place_[at(ops[i])] = static_cast<int>(i);
    places_[at(ops[i])] = {std::hash<NodeId>{}(ops[i])};
  }
  const Node& first = computation_.node(ops.front());
  for (const Schedule& schedule : distinct_candidates(first.shape.dims)) {
    const auto chunks = chunking(schedule, first.shape.dims);
    if (!chunks || !chunks->one_range() || chunks->blocks > kMostBlocks) continue;
    if (!has_schedule(first, schedule)) continue;
    Cut cut{schedule, chunks->blocks, {}, {}, 0, 0, 0};
    cut.schedules.assign(ops.size(), schedule);
    for (const NodeId op : ops) add(cut.us, times_.best(op, schedule));  // a root has a loop of its own
    tuned.us = std::min(tuned.us, least(cut.us, wanted));
    tuned.cuts.push_back(std::move(cut));
  }
  return tuned;
}

std::vector<Tuner::Path> Tuner::paths_to(NodeId op, const InFusion& inside) const {
  std::vector<Path> result;
  struct Open {
    NodeId at;
    std::vector<Step> steps;  // the last one first
  };
  std::vector<Open> open{{op, {}}};
  while (!open.empty()) {
    const Open here = std::move(open.back());
    open.pop_back();
    for (const NodeId user : users_[at(here.at)]) {
      const Node& node = computation_.node(user);
      const bool reader = inside(user);
      if (!reader && !units_.nodes()[user].transparent) continue;
      for (int i = 0; i < static_cast<int>(node.operands.size()); ++i) {
        if (node.operands[static_cast<std::size_t>(i)] != here.at) continue;
        Open next{user, here.steps};
        next.steps.push_back({user, i});
        if (reader) {
          std::reverse(next.steps.begin(), next.steps.end());
          result.push_back({user, std::move(next.steps)});
        } else {
          open.push_back(std::move(next));
        }
      }
    }
  }
  return result;
}

std::optional<Schedule> Tuner::cover(const Step& step, const Schedule& schedule) {
  const Node& node = computation_.node(step.node);
  std::string text = fmt::format("{} {} {} {}", def(node.op).name, to_text(node.shape),
                                 fmt::join(node.attrs.dimensions, ","), node.attrs.slice_sizes.size());
  for (const NodeId operand : node.operands) text += " " + to_text(computation_.node(operand).shape);
  for (const SliceSpec& s : node.attrs.slice) text += fmt::format(" {}:{}:{}", s.start, s.limit, s.stride);
  for (const PadSpec& p : node.attrs.padding) text += fmt::format(" {}_{}_{}", p.low, p.high, p.interior);
  // What is looked up depends on more than the shapes say.
  if (def(node.op).cls == OpClass::kGather || def(node.op).cls == OpClass::kWindow) text = node.name;
  const int kind = kinds_.emplace(std::move(text), static_cast<int>(kinds_.size())).first->second;
  const auto [found, fresh] =
      covered_.try_emplace({kind, step.operand, schedule.split_dim, schedule.sword, schedule.type});
  if (fresh) found->second = covering_schedule(computation_, node, step.operand, schedule);
  return found->second;
}

std::optional<Schedule> Tuner::follow(const Path& path, Schedule schedule) {
  for (const Step& step : path.steps) {
    const Node& node = computation_.node(step.node);
    std::optional<Schedule> next = pass(computation_, node, step.operand, schedule);
    const bool bypassed = is_trivial(node, schedule) || def(node.op).cls == OpClass::kWindow;
    if (!next && bypassed) next = cover(step, schedule);
    if (!next) refuser_ = step.node;
    if (!next) return std::nullopt;
    schedule = *next;
  }
  return schedule;
}

std::optional<Schedule> Tuner::schedule_in(NodeId op, const Cut& cut, const Extension::Part& part) const {
  const int joining = joining_[at(op)];
  return joining >= 0 ? part.schedules[static_cast<std::size_t>(joining)]
                      : cut.schedules[static_cast<std::size_t>(place_[at(op)])];
}

Tuner::Joining Tuner::joining(NodeId op, const InFusion& inside) const {
  Joining result{op, paths_to(op, inside), false, {}};
  const auto& readers = units_.readers(op);
  result.is_root = units_.maps_to_result(op) >= 0 ||
                   std::any_of(readers.begin(), readers.end(),
                               [&](const Contraction::Reader& reader) { return !inside(reader.op); });
  std::vector<NodeId> users;
  for (const Path& path : result.paths) users.push_back(path.steps.back().node);
  sort_unique(users);
  const auto reads = [&](NodeId user) { return inside(user) || units_.nodes()[user].transparent; };
  result.cls = request_class(computation_, op, result.is_root, users, reads, users_);
  return result;
}

bool Tuner::add_places(const Joining& joining) {
  std::vector<std::size_t>& places = places_[at(joining.op)];
  places.clear();
  // What has a loop for certain is evaluated there alone.
  if (joining.paths.empty() || joining.cls == RequestClass::kMust) {
    places = {std::hash<NodeId>{}(joining.op)};
    return true;
  }
  if (joining.is_root) places.push_back(std::hash<NodeId>{}(joining.op));
  for (const Path& path : joining.paths)
    for (std::size_t place : places_[at(path.reader)]) {
      for (const Step& step : path.steps) {
        const Node& node = computation_.node(step.node);
        const NodeId operand = node.operands[static_cast<std::size_t>(step.operand)];
        if (is_elementwise(node.op) && computation_.node(operand).shape.dims == node.shape.dims) continue;
        const auto here = static_cast<std::size_t>(step.node) * 8 + static_cast<std::size_t>(step.operand);
        place = std::hash<std::size_t>{}(place * kMixing + here);
      }
      places.push_back(place);
    }
  sort_unique(places);
  return places.size() <= kMostPlaces;
}

bool Tuner::add_op(const Joining& joining, const Cut& cut, Extension::Part& part) {
  const Node& node = computation_.node(joining.op);
  const Dims& dims = node.shape.dims;
  std::optional<Schedule> schedule;
  bool agreed = true;
  for (const Path& path : joining.paths) {
    std::optional<Schedule> given = schedule_in(path.reader, cut, part);
    if (given) given = follow(path, *given);
    agreed = agreed && given && (!schedule || chunking(*schedule, dims) == chunking(*given, dims));
    if (!agreed) break;
    if (!schedule) schedule = given;
  }
  if (joining.paths.empty()) {  // an output of its own
    schedule = row_schedule(dims, cut.blocks);
    agreed = schedule.has_value();
  }
  if (!agreed) schedule.reset();
  if (schedule && !has_schedule(node, *schedule)) return false;
  const Schedule known = schedule.value_or(row_schedule(dims, cut.blocks).value_or(Schedule{}));
  if (!schedule && !is_trivial(node, known)) return false;

  // Who has a loop of its own wants a chunk that is one range, or cannot be cut so.
  const auto chunks = schedule ? chunking(*schedule, dims) : std::nullopt;
  const bool range = chunks && chunks->one_range();
  if ((joining.is_root || joining.cls == RequestClass::kMust) && !range) return false;
  if (joining.cls && range) {
    const std::int64_t bytes = chunks->elements() * byte_size(node.shape.dtype);
    part.requested += bytes;
    const bool stays = *joining.cls == RequestClass::kMust || !options_.size_shrinking;
    if (stays) part.required += bytes;
    if (stays) part.largest = std::max(part.largest, bytes);
  }
  // What is bypassed costs nothing where it is inlined.
  if (schedule && (joining.is_root || !is_trivial(node, *schedule)))
    add(part.us, times_.best(joining.op, *schedule));
  part.schedules.push_back(schedule);
  return true;
}

}  // namespace stitchwork::fusionstitching::deep
