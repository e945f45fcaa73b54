#include "codegen/lower_keep.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "codegen/lower_context.h"
#include "core/error.h"

namespace stitchwork {
namespace {

/// Without a bound a thread is taken to have this many registers: full occupancy of 1,024 threads an SM.
constexpr int kUnboundRegisters = 64;

class Keeper {
 public:
  Keeper(const Graph& graph, const KernelLaunch& launch, TaskLoop& loop)
      : computation_(graph.entry_computation()), loop_(loop), block_(launch.block) {
    budget_ = (launch.register_bound > 0 ? launch.register_bound : kUnboundRegisters) / 2;
  }

  void run() {
    for (std::size_t s = 0; s < loop_.steps.size(); ++s) {
      step_ = &loop_.steps[s];
      index_ = s;
      state_.assign(step_->values.size(), false);
      for (const Root& root : step_->roots) {
        if (root.value >= 0) visit(root.value);
        if (root.initial >= 0) visit(root.initial);
      }
      for (int v : step_->order) {
        const Value& value = at(v);
        if (keepable(value) && value.restored < 0) computed_.try_emplace(key(value), s, v);
      }
    }
  }

 private:
  using Key = std::tuple<NodeId, IndexMap, int>;

  Value& at(int v) { return step_->values[static_cast<std::size_t>(v)]; }
  static Key key(const Value& value) { return {value.op, value.at.map, static_cast<int>(value.kind)}; }

  bool keepable(const Value& value) const {
    if (step_->rows || value.scope >= 0 || value.depth < 2) return false;
    // Serial rows and element-wise tasks loop over rows outside the element loop.
    if (step_->mapping.kind == MappingKind::kRowSerial || step_->mapping.kind == MappingKind::kElementwise)
      return false;
    return value.kind != ValueKind::kConstant && value.kind != ValueKind::kIndex;
  }

  void visit(int v) {
    if (state_[static_cast<std::size_t>(v)]) return;
    state_[static_cast<std::size_t>(v)] = true;
    if (keepable(at(v)) && restore(v)) {
      step_->order.push_back(v);
      return;
    }
    const Value value = at(v);
    for (int runtime : value.at.runtime) visit(runtime);
    for (const Access& guard : value.guards)
      for (int runtime : guard.runtime) visit(runtime);
    for (int argument : value.arguments) visit(argument);
    step_->order.push_back(v);
  }

  bool restore(int v) {
    const auto found = computed_.find(key(at(v)));
    if (found == computed_.end()) return false;
    const auto [producer_step, producer] = found->second;
    Step& from = loop_.steps[producer_step];
    if (!(from.mapping == step_->mapping)) return false;
    Value& made = from.values[static_cast<std::size_t>(producer)];
    if (made.kept < 0) {
      const DType dtype = computation_.node(made.op).shape.dtype;
      const std::int64_t elements = elements_per_thread(step_->mapping, block_);
      const std::int64_t registers = elements * (byte_size(dtype) + 3) / 4;
      if (used_ + registers > budget_) return false;
      used_ += registers;
      made.kept = static_cast<int>(loop_.kept.size());
      loop_.kept.push_back({made.op, dtype, elements});
    }
    at(v).restored = made.kept;
    return true;
  }

  const Computation& computation_;
  TaskLoop& loop_;
  int block_;
  std::int64_t budget_ = 0, used_ = 0;
  Step* step_ = nullptr;
  std::size_t index_ = 0;
  std::vector<bool> state_;
  std::map<Key, std::pair<std::size_t, int>> computed_;  ///< step and value
};

}  // namespace

std::int64_t elements_per_thread(const ThreadMapping& mapping, int block) {
  switch (mapping.kind) {
    case MappingKind::kElementwise:
      return ceil_div(mapping.rows_per_block, block);
    case MappingKind::kRowPack:
      return ceil_div(mapping.cols, mapping.threads_per_row);
    case MappingKind::kRowSplit:
      return ceil_div(segment_length(mapping), block);
    case MappingKind::kColumn:
      return ceil_div(segment_length(mapping), std::max<std::int64_t>(1, block / mapping.rows_per_block));
    case MappingKind::kRowSerial:
      return mapping.cols;
  }
  return 1;
}

void keep_values(const Graph& graph, const KernelLaunch& launch, TaskLoop& loop) {
  Keeper(graph, launch, loop).run();
}

}  // namespace stitchwork
