#include "analysis/planners/fusionstitching/schedule_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace stitchwork::fusionstitching {
namespace {

using enum ScheduleType;

bool is_reshape(Op op) { return op == Op::kReshape || op == Op::kBitcast; }

/// "element-wise: pass Row, Column".
std::optional<Schedule> pass_elementwise(const Dims& out, const Dims& in, const Schedule& schedule) {
  if (out != in) return std::nullopt;  // a scalar beside arrays: a block's chunk is never its own
  return schedule;
}

/// The first and the last dimension that a transpose moves; first > last if it moves none.
struct Moved {
  int first = 0, last = -1;
};
Moved moved_dims(const Node& transpose) {
  Moved moved{static_cast<int>(transpose.attrs.dimensions.size()), -1};
  for (int d = 0; d < static_cast<int>(transpose.attrs.dimensions.size()); ++d) {
    if (transpose.attrs.dimensions[static_cast<std::size_t>(d)] == d) continue;
    moved.first = std::min(moved.first, d);
    moved.last = d;
  }
  return moved;
}

/// Row left of the moved dims, Column right of them; at them with sword 1, so that none of them is split.
std::optional<Schedule> pass_transpose(const Node& node, const Schedule& schedule) {
  const auto [first, last] = moved_dims(node);
  const int at = schedule.split_dim;
  if (last < 0) return schedule;
  if (schedule.type == kRow ? at < first : at > last) return schedule;
  if (at == (schedule.type == kRow ? first : last) && schedule.sword == 1) return schedule;
  return std::nullopt;
}

/// All reduced dims lie in one block. `schedule` is numbered as the result, Column passes renumbered.
std::optional<Schedule> pass_reduce(const Node& node, const Dims& in, const Schedule& schedule) {
  const std::vector<std::int64_t>& reduced = node.attrs.dimensions;
  if (reduced.empty()) return schedule;
  const auto [least, most] = std::minmax_element(reduced.begin(), reduced.end());
  if (schedule.type == kRow) {
    if (schedule.split_dim < *least) return schedule;
    if (schedule.split_dim == *least && schedule.sword == 1) return schedule;
    return std::nullopt;
  }
  int kept = -1;
  for (int d = 0; d < static_cast<int>(in.size()); ++d) {
    if (std::find(reduced.begin(), reduced.end(), d) != reduced.end()) continue;
    if (++kept < schedule.split_dim) continue;
    if (d <= *most) return std::nullopt;
    return Schedule{d, schedule.sword, kColumn};
  }
  return std::nullopt;
}

/// "split_dim < num_dims - 2: Row", the dims before the two of a batch dot's matrices.
std::optional<Schedule> pass_product(const Node& node, int operand, const Schedule& schedule) {
  if (!node.attrs.dot || schedule.type != kRow) return std::nullopt;
  const std::vector<std::int64_t>& batch =
      operand == 0 ? node.attrs.dot->lhs_batch : node.attrs.dot->rhs_batch;
  if (schedule.split_dim >= static_cast<int>(batch.size())) return std::nullopt;
  for (std::size_t d = 0; d < batch.size(); ++d)
    if (batch[d] != static_cast<std::int64_t>(d)) return std::nullopt;
  return schedule;
}

/// Row: the operand's of as many blocks; Column: where the dims from split_dim on are unchanged.
std::optional<Schedule> pass_reshape(const Dims& out, const Dims& in, const Schedule& schedule) {
  if (schedule.type == kRow) return row_schedule(in, blocks_of(schedule, out));
  const int suffix = static_cast<int>(out.size()) - schedule.split_dim;
  const int at = static_cast<int>(in.size()) - suffix;
  if (at < 0 || !std::equal(out.end() - suffix, out.end(), in.end() - suffix)) return std::nullopt;
  return Schedule{at, schedule.sword, kColumn};
}

/// Row: the operand's dims are a prefix of the result's that covers split_dim, or all that is left of it.
/// Column, which the table passes too but the text does not spell out: they are a suffix that covers it.
std::optional<Schedule> pass_broadcast(const Node& node, const Dims& out, const Dims& in,
                                       const Schedule& schedule) {
  const std::vector<std::int64_t>& dims = node.attrs.dimensions;
  const int rank = static_cast<int>(in.size()), at = schedule.split_dim;
  const int skipped = schedule.type == kRow ? 0 : static_cast<int>(out.size()) - rank;
  for (int d = 0; d < rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (dims[i] != d + skipped || in[i] != out[static_cast<std::size_t>(d + skipped)]) return std::nullopt;
  }
  if (schedule.type == kColumn) {
    if (at < skipped) return std::nullopt;
    return Schedule{at - skipped, schedule.sword, kColumn};
  }
  if (at < rank) return schedule;
  const std::int64_t blocks = blocks_of(schedule, out);
  if (schedule.sword != 1 || blocks != elements_of(in)) return std::nullopt;
  return row_schedule(in, blocks);
}

}  // namespace

bool has_rule(const Node& node) {
  return is_elementwise(node.op) || node.op == Op::kTranspose || node.op == Op::kReduce ||
         node.op == Op::kDot || node.op == Op::kBroadcast || is_reshape(node.op);
}

std::optional<Schedule> pass(const Computation& computation, const Node& node, int operand,
                             const Schedule& schedule) {
  const Dims& out = node.shape.dims;
  if (node.op == Op::kDot) return pass_product(node, operand, schedule);
  if (blocks_of(schedule, out) == 1) return Schedule{};
  const Dims& in = computation.node(node.operands[static_cast<std::size_t>(operand)]).shape.dims;
  if (is_elementwise(node.op)) return pass_elementwise(out, in, schedule);
  if (node.op == Op::kTranspose) return pass_transpose(node, schedule);
  if (node.op == Op::kReduce && operand == 0) return pass_reduce(node, in, schedule);
  if (is_reshape(node.op)) return pass_reshape(out, in, schedule);
  if (node.op == Op::kBroadcast) return pass_broadcast(node, out, in, schedule);
  return std::nullopt;
}

std::string rule_text(const Computation& computation, const Node& node) {
  if (is_elementwise(node.op)) return "an element-wise op passes all schedules to operands of its shape";
  if (node.op == Op::kTranspose) {
    const auto [first, last] = moved_dims(node);
    return fmt::format("a transpose of dims {}..{} passes Row left of dim {} and Column right of dim {}",
                       first, last, first, last);
  }
  if (node.op == Op::kReduce && !node.attrs.dimensions.empty()) {
    const std::vector<std::int64_t>& reduced = node.attrs.dimensions;
    const auto [least, most] = std::minmax_element(reduced.begin(), reduced.end());
    return fmt::format("a reduce of dims {}..{} passes Row left of dim {} and Column right of dim {}", *least,
                       *most, *least, *most);
  }
  if (node.op == Op::kDot) return "a batch dot passes Row of its batch dims";
  if (is_reshape(node.op)) return "a reshape passes Row where its operand has as many blocks";
  if (node.op == Op::kBroadcast)
    return fmt::format("a broadcast of {} passes Row of dims its operand begins with",
                       to_text(computation.node(node.operands[0]).shape));
  return fmt::format("Table 1 has no rule for {}", def(node.op).name);
}

}  // namespace stitchwork::fusionstitching
