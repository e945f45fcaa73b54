// What became of the ops of a module while passes rewrote it: for people who ask about an op by the name it
// has in their file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

struct OpName {
  std::string computation, op;
  bool operator==(const OpName&) const = default;
};

/// Why an op is no longer where it was.
enum class OpChange : std::uint8_t {
  kJoined,     ///< the end of an asynchronous pair, told with its start
  kInlined,    ///< a call or fusion: its callee's ops stand in its place
  kCopied,     ///< an op of a callee: it stands in the caller too
  kRewritten,  ///< by ops that kernels compute
  kFolded,     ///< an element of a tuple, or a tuple that was taken apart
  kMerged,     ///< with an op that computes the same
  kLeftOut,    ///< no output depends on it
  kUncalled,   ///< nothing calls its computation, or not any more
};

class OpTrace {
 public:
  struct Step {
    OpChange change;
    OpName op;
    std::vector<OpName> into;  ///< the last gives the op's value; none: it is gone
  };

  void add(OpChange change, OpName op, std::vector<OpName> into);
  /// Of every node of `computation` that is not kept: what is read in its place.
  void add_rewritten(OpChange change, const Computation& computation, std::span<const NodeId> replacement,
                     const std::vector<bool>& keep);

  /// The first op of that name that is not where it was; those of `entry` before others. nullopt: none is.
  std::optional<OpName> find(std::string_view op, std::string_view entry) const;
  /// The ops of `graph`, which the passes gave, that stand for `op` now, and the steps that led there. The
  /// last gives the op's value. Empty where nothing is left of it.
  std::vector<OpName> now(const Graph& graph, const OpName& op, std::vector<Step>* steps = nullptr) const;

 private:
  std::vector<Step> steps_;
};

/// "merged with add.3, which computes the same"
std::string to_text(const OpTrace::Step& step);

}  // namespace stitchwork
