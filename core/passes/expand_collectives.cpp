// Collectives among one device alone give what they are given; a program for one device is partition 0 and
// replica 0.
#include <algorithm>
#include <charconv>

#include "core/graph/window.h"
#include "core/passes/expand_ops.h"

namespace stitchwork {
namespace {

/// A count among the module's attributes; 1 if absent.
std::int64_t module_count(const Graph& graph, std::string_view key) {
  std::int64_t count = 1;
  for (const auto& [name, value] : graph.attributes)
    if (name == key) std::from_chars(value.data(), value.data() + value.size(), count);
  return count;
}

/// Every group of `{{0},{1}}` or `[2,1]<=[2]` is one device.
bool groups_of_one(std::string_view groups) {
  if (groups.starts_with('[')) {
    const std::size_t comma = groups.find(','), end = groups.find(']');
    return comma < end && groups.substr(comma + 1, end - comma - 1) == "1";
  }
  bool inside = false, filled = false, all = groups.size() > 2;
  for (const char c : groups.substr(std::min<std::size_t>(1, groups.size()))) {
    if (c == '{') {
      inside = true;
      filled = false;
    } else if (c == '}') {
      all = all && (!inside || filled);
      inside = false;
    } else if (inside) {
      all = all && c >= '0' && c <= '9';
      filled = true;
    }
  }
  return all;
}

bool is_among_one(const Graph& graph, const Node& node) {
  const std::int64_t partitions = module_count(graph, "num_partitions");
  if (partitions * module_count(graph, "replica_count") == 1) return true;
  // Groups of replicas take all their partitions along, unless they name devices.
  const bool of_devices = other_attribute(node, "channel_id").empty() ||
                          other_attribute(node, "use_global_device_ids") == "true" || partitions == 1;
  return of_devices && groups_of_one(other_attribute(node, "replica_groups"));
}

}  // namespace

std::optional<NodeId> expand_collective(Emitter& emit, const Graph& graph, const Node& node,
                                        const std::vector<NodeId>& operands) {
  switch (node.op) {
    case Op::kPartitionId:
    case Op::kReplicaId:
      if (module_count(graph, node.op == Op::kPartitionId ? "num_partitions" : "replica_count") > 1)
        return std::nullopt;
      return emit.scalar(node.shape.dtype, 0);
    case Op::kCollectivePermute:
      if (other_attribute(node, "source_target_pairs") != "{{0,0}}") return std::nullopt;
      [[fallthrough]];
    case Op::kAllReduce:
    case Op::kAllGather:
    case Op::kReduceScatter:
    case Op::kAllToAll:
    case Op::kCollectiveBroadcast:
      break;
    default:
      return std::nullopt;
  }
  if (!is_among_one(graph, node)) return std::nullopt;
  if (!node.shape.is_tuple)
    return operands.size() == 1 && emit.shape(operands[0]).compatible(node.shape) ? std::optional(operands[0])
                                                                                  : std::nullopt;
  std::vector<Shape> shapes;
  for (const NodeId operand : operands) shapes.push_back(emit.shape(operand));
  if (!Shape::tuple(shapes).compatible(node.shape)) return std::nullopt;
  return emit.add_as_source(Op::kTuple, node.shape, operands);
}

}  // namespace stitchwork
