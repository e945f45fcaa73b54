#include "analysis/astitch/finalize.h"

#include <fmt/format.h>

#include <algorithm>

namespace stitchwork::astitch {
namespace {

/// level(op) = max over its operands of level + (1 if the operand is Global). A group may span levels.
std::map<NodeId, int> find_levels(const Nodes& nodes, const std::map<NodeId, Scheme>& schemes) {
  std::map<NodeId, int> levels;
  for (const auto& [id, scheme] : schemes) {  // ascending: operands first
    int level = 0;
    for (const NodeId operand : nodes.node(id).operands) {
      const auto it = schemes.find(operand);
      if (it == schemes.end()) continue;
      level = std::max(level, levels.at(operand) + (it->second == Scheme::kGlobal ? 1 : 0));
    }
    levels[id] = level;
  }
  return levels;
}

/// Regional values of earlier phases among what `reader` evaluates.
std::set<NodeId> outlived(const Body& body, const Candidates& candidates, const Finalization& result,
                          NodeId reader) {
  std::set<NodeId> found, seen;
  std::vector<NodeId> stack{reader};
  while (!stack.empty()) {
    const NodeId op = stack.back();
    stack.pop_back();
    for (const NodeId operand : body.nodes->node(op).operands) {
      const auto scheme = result.schemes.find(operand);
      if (scheme == result.schemes.end() || !seen.insert(operand).second) continue;
      if (!candidates.stored(operand)) {
        stack.push_back(operand);
      } else if (scheme->second == Scheme::kRegional &&
                 result.levels.at(operand) < result.levels.at(reader)) {
        found.insert(operand);
      }
    }
  }
  return found;
}

/// A Regional value dies at the next grid barrier: one read in a later phase becomes Global.
void settle_phases(const Body& body, const Candidates& candidates, Finalization& result, Recorder& recorder) {
  const Nodes& nodes = *body.nodes;
  for (bool changed = true; changed;) {
    changed = false;
    result.levels = find_levels(nodes, result.schemes);
    // The earliest phase of a Regional value that an op evaluates or is.
    std::map<NodeId, int> earliest;
    for (const auto& [id, scheme] : result.schemes) {
      int first = result.levels.at(id);
      for (const NodeId operand : nodes.node(id).operands) {
        const auto it = result.schemes.find(operand);
        if (it == result.schemes.end() || it->second == Scheme::kGlobal) continue;
        if (candidates.stored(operand)) {
          first = std::min(first, result.levels.at(operand));
        } else {
          first = std::min(first, earliest.at(operand));
        }
      }
      // An inlined op without Regional values behind it may lie in an earlier phase than its readers.
      earliest[id] = first;
    }
    for (const auto& [reader, kind] : candidates.kinds) {
      if (earliest.at(reader) == result.levels.at(reader)) continue;
      for (const NodeId value : outlived(body, candidates, result, reader)) {
        result.schemes.at(value) = Scheme::kGlobal;
        changed = true;
        recorder.add("locality", nodes.name(value), nodes.name(reader), [&] {
          return Verdict::no("astitch.same-phase",
                             fmt::format("produced in phase {}, read in phase {}", result.levels.at(value),
                                         result.levels.at(reader)));
        });
      }
    }
  }
}

/// Orders the groups so that Regional values are produced before they are read (smallest index first). Where
/// they run in a circle, makes the smallest value that ties it Global and returns false.
bool order_groups(const Nodes& nodes, const std::vector<OpGroup>& groups, Finalization& result,
                  Recorder& recorder) {
  std::vector<std::map<std::size_t, NodeId>> before(groups.size());  // group -> the value that ties it
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const Read& read : result.reads[g].reads) {
      if (result.schemes.at(read.value) != Scheme::kRegional) continue;
      const auto from = static_cast<std::size_t>(group_of(groups, read.value));
      if (from != g) before[g].emplace(from, read.value);
    }
  }
  result.order.clear();
  std::set<std::size_t> open;
  for (std::size_t g = 0; g < groups.size(); ++g) open.insert(g);
  while (!open.empty()) {
    const auto ready = std::find_if(open.begin(), open.end(), [&](std::size_t g) {
      return std::none_of(before[g].begin(), before[g].end(),
                          [&](const auto& tie) { return open.contains(tie.first); });
    });
    if (ready == open.end()) break;
    result.order.push_back(*ready);
    open.erase(ready);
  }
  if (open.empty()) return true;
  NodeId smallest = kNoNode;
  for (const std::size_t g : open) {
    for (const auto& [from, value] : before[g]) {
      if (!open.contains(from)) continue;
      if (smallest == kNoNode || nodes.bytes(value) < nodes.bytes(smallest)) smallest = value;
    }
  }
  result.schemes.at(smallest) = Scheme::kGlobal;
  recorder.add("locality", nodes.name(smallest), "", [&] {
    return Verdict::no("astitch.group-circle", "its groups exchange Regional values both ways");
  });
  return false;
}

}  // namespace

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
           (group.mapping.split > 1 && candidates.kinds.at(id) == CandidateKind::kReduce);
  };
  for (const OpGroup& group : groups) {
    for (const NodeId id : group.materialised) {
      if (leaves_partials(group, id)) result.schemes[id] = Scheme::kGlobal;
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const Read& read : result.reads[g].reads) {
      Scheme& scheme = result.schemes.at(read.value);
      const OpGroup& producer = groups[static_cast<std::size_t>(group_of(groups, read.value))];
      const Verdict verdict = global.contains(read.value)
                                  ? Verdict::no("astitch.demoted", "demoted to global memory")
                                  : block_local(nodes, producer, groups[g], read);
      recorder.add("locality", nodes.name(read.value), nodes.name(read.reader), [&] { return verdict; });
      if (!verdict) {
        scheme = Scheme::kGlobal;
      } else if (scheme == Scheme::kIndependent) {
        scheme = Scheme::kRegional;
      }
    }
  }
  // Demotions only add levels and remove ties, so this ends.
  do {
    settle_phases(body, candidates, result, recorder);
  } while (!order_groups(nodes, groups, result, recorder));
  for (const auto& [id, level] : result.levels) result.grid_barriers = std::max(result.grid_barriers, level);
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
