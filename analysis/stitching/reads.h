// What a group evaluates and which stored values it reads where: the index maps from its domain, composed
// along the inlined ops. Locality checks and the recomputation rules work on these.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "analysis/stitching/merging.h"

namespace stitchwork::astitch {

/// A stored value of the stitch op, read under one map; `reader` is the first materialised op that needs it.
struct Read {
  NodeId value = kNoNode, reader = kNoNode;
  /// (row, col) of the reader's group -> index of value; nullopt: anywhere, or there are too many maps.
  std::optional<IndexMap> map;
};

struct GroupReads {
  std::vector<Read> reads;     ///< distinct, in order of discovery
  std::map<NodeId, int> maps;  ///< distinct maps each inlined op is evaluated under
};

GroupReads group_reads(const Body& body, const Candidates& candidates, const OpGroup& group);
/// Only what these of its materialised ops evaluate.
GroupReads group_reads(const Body& body, const Candidates& candidates, const OpGroup& group,
                       const std::vector<NodeId>& readers);

/// Whether every element of `read.value` that a task of `reader` needs is produced by the same task of
/// `producer` (in the same block and iteration): the passive block-locality check of section 4.3. The
/// verdict carries the sizes.
Verdict block_local(const Nodes& nodes, const OpGroup& producer, const OpGroup& reader, const Read& read);

/// Elements of `value` a task of its group produces.
std::int64_t elements_per_task(const OpGroup& group, NodeId value);

/// Index into `groups` of the one that materialises `id`; -1 if none.
int group_of(const std::vector<OpGroup>& groups, NodeId id);

}  // namespace stitchwork::astitch
