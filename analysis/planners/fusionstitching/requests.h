// Which ops of a fusion ask for shared memory, for how many bytes, and who of them may be refused:
// FusionStitching 2018, section 5.1.1.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork::fusionstitching {

/// Ops that one kernel computes, and those of them whose values leave it; both ascending. Index maps that
/// cost nothing (aliases, broadcasts, slices of other kernels' values) are listed like the others.
struct Fusion {
  std::vector<NodeId> ops;
  std::vector<NodeId> roots;
};

/// In the order in which they give up (section 5.1.2); what must have it does not.
enum class RequestClass : std::uint8_t {
  kInexpensiveShared,       ///< element-wise with several users in the fusion
  kExpensiveShared,         ///< the same of expensive ones
  kExpensiveBeforeProduct,  ///< expensive, and a batch dot reads it through shape modulation alone
  kMust,                    ///< a reduction, a dot
};
std::string_view name(RequestClass cls);

struct Request {
  NodeId op = kNoNode;
  RequestClass cls = RequestClass::kMust;
  std::int64_t bytes = 0;  ///< of a block's chunk
  bool operator==(const Request&) const = default;
};

/// Exp, divide, log, ...: heavy in the op table, and divide and remainder, which are light there.
bool is_expensive(Op op);

/// What `op` asks for, whatever its chunk: none of roots that nothing in the fusion reads, of what is read
/// once and cheap, of index maps. `users`: ops of the fusion that read it. A root's own loop is a user of it.
std::optional<RequestClass> request_class(const Computation& computation, NodeId op, bool is_root,
                                          const std::vector<NodeId>& users,
                                          const std::function<bool(NodeId)>& in_fusion,
                                          const std::vector<std::vector<NodeId>>& all_users);

/// Of every op of the fusion, ascending. `chunk_elements` is of an op that has a schedule whose chunks are
/// ranges; 0 of the others, which ask for nothing. `all_users` is Computation::users().
std::vector<Request> requests(const Computation& computation, const Fusion& fusion,
                              const std::function<std::int64_t(NodeId)>& chunk_elements,
                              const std::vector<std::vector<NodeId>>& all_users);

std::int64_t requested_bytes(const std::vector<Request>& requests);
std::string to_text(const Computation& computation, const std::vector<Request>& requests);

}  // namespace stitchwork::fusionstitching
