#include <algorithm>

#include "analysis/plan/assemble.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/tiles.h"
#include "analysis/verify/verify_internal.h"
#include "core/base/sorted.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::verification {
namespace {

class TileCheck {
 public:
  TileCheck(const Computation& c, const KernelPlan& k, const KernelEvaluations& evaluated, Report& r)
      : computation_(c), kernel_(k), groups_(evaluated), report_(r) {}

  void check() {
    for (const Tile& tile : kernel_.tiles) check(tile);
  }

 private:
  const std::string& name_of(NodeId op) const { return computation_.node(op).name; }

  void check(const Tile& tile) {
    const auto group = std::find_if(kernel_.groups.begin(), kernel_.groups.end(),
                                    [&](const Group& g) { return g.dominant == tile.group; });
    if (group == kernel_.groups.end() || (!has_tiles(group->mapping) && !is_staged(group->mapping))) {
      report_.add("tile", "kernel {}: {} goes through a tile of the group of {}, whose tasks are none",
                  kernel_.id, name_of(tile.op), name_of(tile.group));
      return;
    }
    if (!reads(*group, tile) && !stores(*group, tile))
      report_.add("tile",
                  "kernel {}: the group of {} neither reads nor stores its elements of {} in level {}",
                  kernel_.id, name_of(tile.group), name_of(tile.op), tile.level);
    const Shape& shape = computation_.node(tile.op).shape;
    const int bytes = byte_size(shape.dtype);
    const std::int64_t needed = is_staged(group->mapping) ? staged_bytes(staged_part(shape, group->mapping),
                                                                         group->mapping, bytes, tile.stages)
                                                          : tile_bytes(group->mapping, bytes);
    check_stages(*group, tile, bytes);
    if (tile.offset < 0 || tile.bytes < needed || tile.offset + tile.bytes > kernel_.launch.shared_bytes)
      report_.add("slot",
                  "kernel {}: the tile of {} needs {} bytes of shared memory, {} are given from {} on",
                  kernel_.id, name_of(tile.op), needed, tile.bytes, tile.offset);
    places(tile);
  }

  /// What is copied for tasks ahead must not meet what is computed from; results are of the task at hand, in
  /// whose part they lie where they take over its bytes.
  void check_stages(const Group& group, const Tile& tile, int bytes) {
    const StagedPart part = staged_part(computation_.node(tile.op).shape, group.mapping);
    const int wanted = is_staged(group.mapping) ? staged_tasks(part, group.mapping, bytes) : 1;
    const bool result = !reads(group, tile);
    const bool replaces = result && is_staged(group.mapping) && tile.stages == copy_depth(group.mapping);
    if (tile.stages != (result ? 1 : wanted) && !replaces)
      report_.add("tile", "kernel {}: the tile of {} is of {} tasks, its group's of {}", kernel_.id,
                  name_of(tile.op), tile.stages, wanted);
    if (tile.stages > 1 && tile.bytes % (tile.stages * kVectorBytes) != 0)
      report_.add("slot", "kernel {}: {} bytes of the tile of {} in {} parts are no whole vectors",
                  kernel_.id, tile.bytes, name_of(tile.op), tile.stages);
    for (const Group& other : kernel_.groups) {
      if (!is_staged(other.mapping) || !is_staged(group.mapping)) continue;
      if (copy_depth(other.mapping) != copy_depth(group.mapping))
        report_.add("mapping.staged", "kernel {}: the groups of {} and {} are staged for {} and {} tasks",
                    kernel_.id, name_of(group.dominant), name_of(other.dominant), copy_depth(group.mapping),
                    copy_depth(other.mapping));
      if (copies_in_bulk(other.mapping) != copies_in_bulk(group.mapping))
        report_.add("mapping.staged", "kernel {}: of the groups of {} and {} one is copied in bulk",
                    kernel_.id, name_of(group.dominant), name_of(other.dominant));
    }
  }

  /// From global memory, at its placement in the group.
  bool reads(const Group& group, const Tile& tile) const {
    const auto index = static_cast<std::size_t>(&group - kernel_.groups.data());
    const std::vector<Evaluation>& values = groups_[index].values;
    return std::any_of(values.begin(), values.end(), [&](const Evaluation& e) {
      const bool inside = contains_sorted(kernel_.ops, e.op);
      return e.op == tile.op && e.tile && level_of(e.root) == tile.level &&
             !(inside && reads_shared(kernel_, e.op, e.root));
    });
  }

  /// To global memory, every element.
  bool stores(const Group& group, const Tile& tile) const {
    const auto index = static_cast<std::size_t>(&group - kernel_.groups.data());
    const std::vector<NodeId> made = materialised(group);
    if (!std::binary_search(made.begin(), made.end(), tile.op) || level_of(tile.op) != tile.level)
      return false;
    const auto placed = groups_[index].placements->find(tile.op);
    const bool whole =
        placed != groups_[index].placements->end() && placed->second.coverage == Coverage::kFull;
    const bool output = std::binary_search(kernel_.outputs.begin(), kernel_.outputs.end(), tile.op);
    return whole && (output || kernel_.schemes.at(tile.op) == Scheme::kGlobal) &&
           scheme_in_phase(kernel_, tile.op) != Scheme::kRegional;
  }

  int level_of(NodeId op) const {
    const auto level = kernel_.levels.find(op);
    return level == kernel_.levels.end() ? 0 : level->second;
  }

  /// Tiles of a phase lie beside all else, but for staged results in the place of what they are made from.
  void places(const Tile& tile) {
    const auto clash = [&](std::int64_t offset, std::int64_t bytes, std::string_view other) {
      if (tile.offset < offset + bytes && offset < tile.offset + tile.bytes)
        report_.add("slot", "kernel {}: the tile of {} and {} share shared memory", kernel_.id,
                    name_of(tile.op), other);
    };
    for (const MemorySlot& slot : kernel_.shared)
      clash(slot.offset, slot.bytes, slot.op == kNoNode ? "the workspace" : name_of(slot.op));
    for (const Residence& r : kernel_.resident)
      if (r.shared) clash(r.offset, r.bytes, name_of(r.op));
    const auto may_replace = [&](const Tile& other) {
      return tile.offset == other.offset && tile.bytes == other.bytes && tile.stages == other.stages &&
             (takes_over(computation_, kernel_, other, tile) ||
              takes_over(computation_, kernel_, tile, other));
    };
    for (const Tile& other : kernel_.tiles)
      if (&tile < &other && tile.level == other.level && !may_replace(other))
        clash(other.offset, other.bytes, "that of " + name_of(other.op));
  }

  const Computation& computation_;
  const KernelPlan& kernel_;
  const KernelEvaluations& groups_;
  Report& report_;
};

}  // namespace

void check_tiles(const Computation& computation, const Device& device, const KernelPlan& kernel,
                 const KernelEvaluations& evaluated, Report& report) {
  for (const Group& group : kernel.groups) {
    const bool bulk = copies_in_bulk(group.mapping);
    if (copy_depth(group.mapping) > 0 && !(bulk ? has_bulk_copies(device) : has_async_copies(device)))
      report.add("mapping.staged", "kernel {}, group {}: {} (sm_{}{}) has no {} copies", kernel.id,
                 computation.node(group.dominant).name, device.id, device.cc_major, device.cc_minor,
                 bulk ? "bulk" : "asynchronous");
  }
  TileCheck(computation, kernel, evaluated, report).check();
}

}  // namespace stitchwork::verification
