// The steps of a task that move values between memory and tiles.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "analysis/schedule/context.h"
#include "analysis/schedule/tiles.h"

namespace stitchwork {

/// Those of the loops of one phase.
class TileSteps {
 public:
  TileSteps(BuildContext& context, const KernelLaunch& launch, int phase)
      : context_(context), launch_(launch), phase_(phase) {}

  /// What fills the tiles that the loop's groups read, before its steps, and what empties those they store
  /// to, behind them.
  void add(const std::set<int>& groups, TaskLoop& loop) const;

 private:
  std::vector<Step> of_group(int group_index, bool stores) const;
  Step filling(int group_index, const Tile& tile) const;
  Step moving(int group_index, bool stores, const Mapping& mapping, std::optional<StagedPart> part,
              const std::vector<const Tile*>& tiles) const;
  std::vector<const Tile*> tiles_of(const Group& group, bool stores, std::optional<StagedPart> part) const;
  mapping::Elements range_mapping(const Group& group, bool stores) const;
  IndexMap in_a_range(NodeId op, std::int64_t elements) const;
  bool is_stored_through(const Tile& tile) const;

  BuildContext& context_;
  const KernelLaunch& launch_;
  int phase_;
};

}  // namespace stitchwork
