// Step 1a of AStitch section 4.3: which ops of a stitch op are candidates for dominant ops.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/plan/recorder.h"
#include "analysis/stitching/nodes.h"
#include "analysis/stitching/scope.h"

namespace stitchwork::astitch {

/// A stitch op's members and the transparent ops between them, with the users of each inside.
struct Body {
  const Nodes* nodes = nullptr;
  std::vector<NodeId> ops;  ///< ascending
  std::set<NodeId> members, outputs;
  std::map<NodeId, std::vector<NodeId>> users;  ///< of each op, within the body, ascending

  bool contains(NodeId id) const { return users.contains(id); }
};
Body make_body(const Nodes& nodes, const StitchOp& op);

enum class CandidateKind : std::uint8_t {
  kReduce,  ///< a reduction
  kHeavy,   ///< an expensive op whose elements are read one-to-many
  kLight,   ///< a cone of light ops whose cost times replication counts as heavy
  kShared,  ///< used by several groups or under many maps; recomputing costs more than writing and reading
  kOutput,  ///< read outside the stitch op, and none of the above
};
std::string_view name(CandidateKind kind);

struct Candidates {
  std::map<NodeId, CandidateKind> kinds;
  /// Reductions that may join the group of one over the other dimensions (across.h).
  std::set<NodeId> across;

  bool contains(NodeId id) const { return kinds.contains(id); }
  /// Readers take the stored value. Other candidates (light outputs) are also inlined into their readers:
  /// their elements are cheaper to keep in registers or compute again than to pass through memory.
  bool stored(NodeId id) const {
    const auto it = kinds.find(id);
    return it != kinds.end() && it->second != CandidateKind::kOutput;
  }
};

/// What earlier rounds of planning this stitch op found out.
struct Amendments {
  std::set<NodeId> promoted;  ///< values worth materialising (kShared)
  std::set<NodeId> dropped;   ///< kLight candidates that would have cost a grid barrier
  std::set<NodeId> inlined;   ///< values an override wants computed where they are read
};

Candidates find_candidates(const Body& body, const Amendments& amendments, Recorder& recorder);

std::string to_text(const Nodes& nodes, const Candidates& candidates);

}  // namespace stitchwork::astitch
