#include "analysis/stitching/finalize.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace stitchwork::astitch {
namespace {

/// Which stored values each group can take from its own block: every read of them there is block-local.
class Nearness {
 public:
  Nearness(const Body& body, const std::vector<OpGroup>& groups, const std::vector<GroupReads>& reads,
           const std::set<NodeId>& global, Recorder& recorder)
      : near_(groups.size()) {
    const Nodes& nodes = *body.nodes;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const Read& read : reads[g].reads) {
        const OpGroup& producer = groups[static_cast<std::size_t>(group_of(groups, read.value))];
        const Verdict verdict = global.contains(read.value)
                                    ? Verdict::no("astitch.demoted", "demoted to global memory")
                                    : block_local(nodes, producer, groups[g], read);
        recorder.add("locality", nodes.name(read.value), nodes.name(read.reader), [&] { return verdict; });
        const auto [known, fresh] = near_[g].emplace(read.value, verdict.ok);
        if (!fresh) known->second = known->second && verdict.ok;
      }
    }
  }

  bool near(std::size_t group, NodeId value) const {
    const auto found = near_[group].find(value);
    return found != near_[group].end() && found->second;
  }
  void forget(std::size_t group, NodeId value) { near_[group][value] = false; }

 private:
  std::vector<std::map<NodeId, bool>> near_;  ///< by group
};

/// Who reads stored values: materialised ops, through what they inline.
struct Reader {
  NodeId root = kNoNode;
  std::size_t group = 0;
};
using Readers = std::map<NodeId, std::vector<Reader>>;

/// The level of every materialised op: the largest of the values it reads, and one more of those it cannot
/// take from its own block. So a value that is read in its own phase and in later ones holds up only those
/// who are not of its block.
Readers find_levels(const Body& body, const Candidates& candidates, const std::vector<OpGroup>& groups,
                    const Nearness& nearness, Finalization& result) {
  std::map<NodeId, std::size_t> owner;  // ascending: operands first
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const NodeId id : groups[g].materialised) owner[id] = g;
  }
  Readers readers;
  std::map<NodeId, NodeId> seen_by;  // the last root whose walk came past
  std::vector<NodeId> stack;
  for (const auto& [root, group] : owner) {
    int level = 0;
    stack.assign(1, root);
    while (!stack.empty()) {
      const NodeId op = stack.back();
      stack.pop_back();
      for (const NodeId operand : body.nodes->node(op).operands) {
        if (!result.schemes.contains(operand)) continue;
        if (const auto [at, fresh] = seen_by.emplace(operand, root); !fresh) {
          if (at->second == root) continue;
          at->second = root;
        }
        if (!candidates.stored(operand)) {
          stack.push_back(operand);
          continue;
        }
        readers[operand].push_back({root, group});
        level = std::max(level, result.levels.at(operand) + (nearness.near(group, operand) ? 0 : 1));
      }
    }
    result.levels[root] = level;
  }
  return readers;
}

int barriers_of(const Finalization& result) {
  int most = 0;
  for (const auto& [id, level] : result.levels) most = std::max(most, level);
  return most;
}

/// Reading a value in its own phase ties another group to the blocks that make it. For a small value that
/// later phases read anyway this gains nothing but perhaps a grid barrier: `nearness` without such ties.
/// Returns the values that tied.
std::set<NodeId> untie_small_values(const Nodes& nodes, const std::vector<OpGroup>& groups,
                                    const Readers& readers, const Finalization& result, Nearness& nearness) {
  std::set<NodeId> untied;
  for (const auto& [value, by] : readers) {
    if (nodes[value].elements > kTyingElements) continue;
    const int made = result.levels.at(value);
    const auto in_phase = [&](const Reader& reader) { return result.levels.at(reader.root) == made; };
    if (std::all_of(by.begin(), by.end(), in_phase)) continue;
    for (const Reader& reader : by) {
      if (!in_phase(reader) || group_of(groups, value) == static_cast<int>(reader.group)) continue;
      nearness.forget(reader.group, value);
      untied.insert(value);
    }
  }
  return untied;
}

/// Ops that are only inlined have the earliest phase in which what they read is there for somebody.
void place_inlined(const Nodes& nodes, const Candidates& candidates, Finalization& result) {
  std::map<NodeId, int> earliest;  // of materialised outputs: where others compute them for themselves
  for (const auto& [id, scheme] : result.schemes) {  // ascending: operands first
    int& level = earliest[id];
    for (const NodeId operand : nodes.node(id).operands) {
      const auto known = earliest.find(operand);
      if (known == earliest.end()) continue;
      const bool waits = result.scheme_in_phase(operand) == Scheme::kGlobal;
      level = std::max(
          level, candidates.stored(operand) ? result.levels.at(operand) + (waits ? 1 : 0) : known->second);
    }
    result.levels.emplace(id, level);
  }
}

/// The groups, where possible each behind those whose values it reads in their phase (smallest index first).
/// Groups that exchange such values both ways take turns: code is ordered by op, not by group.
std::vector<std::size_t> order_of(const std::vector<OpGroup>& groups, const Readers& readers,
                                  const Finalization& result) {
  std::vector<std::set<std::size_t>> before(groups.size());
  for (const auto& [value, by] : readers) {
    const auto from = static_cast<std::size_t>(group_of(groups, value));
    for (const Reader& reader : by) {
      if (reader.group == from || result.levels.at(reader.root) != result.levels.at(value)) continue;
      before[reader.group].insert(from);
    }
  }
  std::vector<std::size_t> order;
  std::set<std::size_t> open;
  for (std::size_t g = 0; g < groups.size(); ++g) open.insert(g);
  while (!open.empty()) {
    const auto ready = std::find_if(open.begin(), open.end(), [&](std::size_t g) {
      return std::none_of(before[g].begin(), before[g].end(),
                          [&](std::size_t from) { return open.contains(from); });
    });
    const std::size_t next = ready == open.end() ? *open.begin() : *ready;
    order.push_back(next);
    open.erase(next);
  }
  return order;
}

/// Whether those who read `value` in its own phase are threads that have it in registers: ops of its own
/// group that need the very element their thread computed.
bool stays_with_its_thread(const Nodes& nodes, const std::vector<OpGroup>& groups, const Finalization& result,
                           NodeId value, const std::vector<Reader>& near) {
  const auto from = static_cast<std::size_t>(group_of(groups, value));
  const Placement& placement = groups[from].placements->at(value);
  if (nodes[value].reduction || placement.coverage != Coverage::kFull) return false;
  if (std::any_of(near.begin(), near.end(), [&](const Reader& r) { return r.group != from; })) return false;
  return std::all_of(result.reads[from].reads.begin(), result.reads[from].reads.end(), [&](const Read& read) {
    return read.value != value || (read.map && *read.map == placement.map);
  });
}

/// A value read in its own phase only is Regional; one read in later phases is Global, and those of its own
/// phase take it from shared memory or from the registers of its thread all the same.
void set_schemes(const Body& body, const std::vector<OpGroup>& groups, const Readers& readers,
                 const Nearness& nearness, Finalization& result, Recorder& recorder) {
  const Nodes& nodes = *body.nodes;
  result.in_phase.clear();
  result.last_read.clear();
  result.near.assign(groups.size(), {});
  for (const auto& [value, by] : readers) {
    const int made = result.levels.at(value);
    std::vector<Reader> near;
    for (const Reader& reader : by) {
      const int read = result.levels.at(reader.root);
      int& last = result.last_read.emplace(value, made).first->second;
      last = std::max(last, read);
      if (read == made) {
        near.push_back(reader);
        if (group_of(groups, value) != static_cast<int>(reader.group))
          result.near[reader.group].insert(value);
      } else if (nearness.near(reader.group, value)) {
        recorder.add("locality", nodes.name(value), nodes.name(reader.root), [&] {
          return Verdict::no("astitch.same-phase",
                             fmt::format("produced in phase {}, read in phase {}", made, read));
        });
      }
    }
    const bool global = near.size() < by.size();
    result.schemes.at(value) = global ? Scheme::kGlobal : Scheme::kRegional;
    if (!global || near.empty()) continue;
    const bool local = stays_with_its_thread(nodes, groups, result, value, near);
    result.in_phase[value] = local ? Scheme::kLocal : Scheme::kRegional;
    recorder.add("locality", nodes.name(value), "", [&, near = near.size(), all = by.size()] {
      return Verdict::yes("astitch.in-phase",
                          fmt::format("{} of its {} readers are in its phase: {}", near, all,
                                      local ? "they have it in registers" : "they read shared memory"));
    });
  }
}

}  // namespace

Scheme Finalization::scheme_in_phase(NodeId value) const {
  const auto near = in_phase.find(value);
  return near != in_phase.end() ? near->second : schemes.at(value);
}

Finalization finalize(const Body& body, const Candidates& candidates, const std::vector<OpGroup>& groups,
                      const std::set<NodeId>& global, Recorder& recorder) {
  const Nodes& nodes = *body.nodes;
  Finalization result;
  std::map<NodeId, int> evaluated_by;
  for (const OpGroup& group : groups) {
    for (const NodeId op : group.ops) ++evaluated_by[op];
    result.reads.push_back(group_reads(body, candidates, group));
  }
  for (const auto& [op, count] : evaluated_by) {
    const bool recomputed = count > 1 && !nodes[op].transparent;
    result.schemes[op] = recomputed ? Scheme::kRecomputed : Scheme::kLocal;
  }
  for (const auto& [id, kind] : candidates.kinds) {
    const bool read_inside = !body.users.at(id).empty();
    if (candidates.stored(id) || !read_inside) result.schemes[id] = Scheme::kIndependent;
  }
  // Partials always cross a barrier, also when only the result is wanted.
  const auto leaves_partials = [&](const OpGroup& group, NodeId id) {
    return is_across(group, id) ||
           (segments(group.mapping) > 1 && candidates.kinds.at(id) == CandidateKind::kReduce);
  };
  for (const OpGroup& group : groups) {
    for (const NodeId id : group.materialised) {
      if (leaves_partials(group, id)) result.schemes[id] = Scheme::kGlobal;
    }
  }
  Nearness nearness(body, groups, result.reads, global, recorder);
  Readers readers = find_levels(body, candidates, groups, nearness, result);
  Nearness apart = nearness;
  if (const auto untied = untie_small_values(nodes, groups, readers, result, apart); !untied.empty()) {
    Finalization trial = result;
    Readers trial_readers = find_levels(body, candidates, groups, apart, trial);
    if (barriers_of(trial) <= barriers_of(result)) {
      result = std::move(trial);
      readers = std::move(trial_readers);
      nearness = std::move(apart);
      for (const NodeId value : untied) {
        recorder.add("locality", nodes.name(value), "", [&] {
          return Verdict::no("astitch.small-value",
                             fmt::format("{} elements, which later phases read anyway: groups that read them "
                                         "need not run on the same blocks",
                                         nodes[value].elements));
        });
      }
    }
  }
  result.order = order_of(groups, readers, result);
  set_schemes(body, groups, readers, nearness, result, recorder);
  // Who folds partials reads the reduction's initial value too, or what that is computed from.
  std::map<NodeId, const OpGroup*, std::greater<>> partials;  // last ones first: they fold what others leave
  for (const OpGroup& group : groups)
    for (const NodeId id : group.materialised)
      if (leaves_partials(group, id)) partials[id] = &group;
  for (const auto& [id, group] : partials) {
    const int made = result.levels.at(id);
    int& folded = result.last_read.emplace(id, made).first->second;
    if (body.outputs.contains(id)) folded = std::max(folded, made + 1);
    std::vector<NodeId> stack;
    if (const NodeId from = initial_value(nodes.node(id)); from != kNoNode) stack.push_back(from);
    while (!stack.empty()) {
      const NodeId op = stack.back();
      stack.pop_back();
      if (!result.schemes.contains(op)) continue;
      if (candidates.stored(op)) {
        int& last = result.last_read.emplace(op, result.levels.at(op)).first->second;
        last = std::max(last, folded);
      } else {
        stack.insert(stack.end(), nodes.node(op).operands.begin(), nodes.node(op).operands.end());
      }
    }
  }
  place_inlined(nodes, candidates, result);
  result.grid_barriers = barriers_of(result);
  // Partials of an output: the fold that stores it needs a phase after them.
  for (const OpGroup& group : groups) {
    for (const NodeId id : group.materialised) {
      if (leaves_partials(group, id) && body.outputs.contains(id)) {
        result.grid_barriers = std::max(result.grid_barriers, result.levels.at(id) + 1);
      }
    }
  }
  return result;
}

std::string to_text(const Nodes& nodes, const Finalization& finalization) {
  std::string text;
  for (const auto& [id, scheme] : finalization.schemes) {
    text += fmt::format("{}: {} level {}\n", nodes.name(id), name(scheme), finalization.levels.at(id));
  }
  return text + fmt::format("{} grid barriers\n", finalization.grid_barriers);
}

}  // namespace stitchwork::astitch
