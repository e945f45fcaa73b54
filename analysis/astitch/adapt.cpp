#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/astitch/finalize.h"

namespace stitchwork::astitch {
namespace {

/// Bytes that need not pass through global memory (written once, read by each reading group) if `reader`
/// takes part with these groups.
std::int64_t local_bytes(const Body& body, const Candidates& candidates, const std::vector<OpGroup>& groups,
                         const OpGroup& changed) {
  const Nodes& nodes = *body.nodes;
  std::set<NodeId> local, elsewhere;
  const auto weigh = [&](const OpGroup& reader, bool only_changed_values) {
    for (const Read& read : group_reads(body, candidates, reader).reads) {
      const bool own =
          std::binary_search(changed.materialised.begin(), changed.materialised.end(), read.value);
      if (only_changed_values && !own) continue;
      const int from = own ? -1 : group_of(groups, read.value);
      const OpGroup& producer = own ? changed : groups[static_cast<std::size_t>(from)];
      (block_local(nodes, producer, reader, read) ? local : elsewhere).insert(read.value);
    }
  };
  weigh(changed, false);
  for (const OpGroup& group : groups) {
    const bool replaced = std::binary_search(changed.materialised.begin(), changed.materialised.end(),
                                             group.materialised.front());
    if (!replaced) weigh(group, true);
  }
  std::int64_t bytes = 0;
  for (const NodeId id : local) {
    if (!elsewhere.contains(id)) bytes += nodes.bytes(id);
  }
  return bytes;
}

/// Groups that exchange stored values with groups[g], ascending.
std::set<int> neighbours(const Body& body, const Candidates& candidates, const std::vector<OpGroup>& groups,
                         std::size_t g) {
  std::set<int> result;
  const auto reads_from = [&](const OpGroup& reader) {
    std::set<int> from;
    for (const NodeId op : reader.ops) {
      for (const NodeId operand : body.nodes->node(op).operands) {
        if (candidates.stored(operand)) from.insert(group_of(groups, operand));
      }
    }
    return from;
  };
  result = reads_from(groups[g]);
  for (std::size_t other = 0; other < groups.size(); ++other) {
    if (reads_from(groups[other]).contains(static_cast<int>(g))) result.insert(static_cast<int>(other));
  }
  result.erase(static_cast<int>(g));
  result.erase(-1);
  return result;
}

struct Option {
  std::int64_t bytes = 0;
  int with = -1;
  bool dissolve = false;
  OpGroup group;
};

}  // namespace

std::vector<OpGroup> adapt_groups(const Body& body, const Candidates& candidates, std::vector<OpGroup> groups,
                                  bool merge, Recorder& recorder) {
  const Nodes& nodes = *body.nodes;
  for (std::size_t g = 0; g < groups.size();) {
    if (!groups[g].elementwise) {
      ++g;
      continue;
    }
    Option best{local_bytes(body, candidates, groups, groups[g]), -1, false, {}};
    for (const int with : neighbours(body, candidates, groups, g)) {
      const OpGroup& other = groups[static_cast<std::size_t>(with)];
      if (other.mapping.split > 1 || other.mapping.rows <= 0) continue;
      OpGroup changed;
      if (merge) {
        std::vector<NodeId> together;
        std::merge(groups[g].materialised.begin(), groups[g].materialised.end(), other.materialised.begin(),
                   other.materialised.end(), std::back_inserter(together));
        if (make_group(body, candidates, other.dominant, together, other.mapping, changed)) {
          const std::int64_t alone = local_bytes(body, candidates, groups, other);
          const std::int64_t bytes = local_bytes(body, candidates, groups, changed) - alone;
          // Equal bytes: one group is better than two, values of one mapping stay in registers.
          if (bytes > 0 && (bytes > best.bytes || (bytes == best.bytes && !best.dissolve))) {
            best = {bytes, with, true, changed};
          }
        }
      }
      const std::int64_t elements = nodes[groups[g].dominant].elements;
      if (elements % other.mapping.rows != 0) continue;
      const ThreadMapping mapping = map_alongside(elements, other.mapping);
      if (!make_group(body, candidates, groups[g].dominant, groups[g].materialised, mapping, changed))
        continue;
      const std::int64_t bytes = local_bytes(body, candidates, groups, changed);
      if (bytes > best.bytes) best = {bytes, with, false, changed};
    }
    if (best.with < 0) {
      ++g;
      continue;
    }
    recorder.add("locality", nodes.name(groups[g].dominant),
                 nodes.name(groups[static_cast<std::size_t>(best.with)].dominant), [&] {
                   return Verdict::yes(
                       "astitch.proactive-locality",
                       fmt::format("takes over its mapping: {} bytes stay in the block", best.bytes));
                 });
    groups[static_cast<std::size_t>(best.dissolve ? best.with : static_cast<int>(g))] = std::move(best.group);
    if (best.dissolve) {
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(g));
      g = 0;  // the others may now match the grown group
    } else {
      ++g;
    }
  }
  std::sort(groups.begin(), groups.end(), [](const OpGroup& a, const OpGroup& b) {
    return a.materialised.front() < b.materialised.front();
  });
  return groups;
}

}  // namespace stitchwork::astitch
