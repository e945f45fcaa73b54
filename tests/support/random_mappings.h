// Thread mappings drawn from a seed, each legal for some block: what planners make of domains of any size,
// and what they would not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "analysis/plan/mapping.h"
#include "core/base/arithmetic.h"

namespace stitchwork::testing {

struct DrawnMapping {
  Mapping mapping;
  Deal deal;
  int block = 32;  ///< whole warps
};

class MappingDraw {
 public:
  explicit MappingDraw(std::uint64_t seed) : random_(seed) {}

  /// Domains of up to some thousand elements: tests enumerate them.
  DrawnMapping draw() {
    DrawnMapping drawn;
    drawn.block = 32 * static_cast<int>(between(1, 4));
    switch (between(0, 6)) {
      case 0:
        drawn.mapping = elements();
        break;
      case 1:
        drawn.mapping =
            mapping::Rows{between(1, 200), between(1, 20), mapping::OneThread{between(1, 2 * drawn.block)}};
        break;
      case 2:
        drawn.mapping = lanes(drawn.block);
        break;
      case 3:
        drawn.mapping = segments(drawn.block);
        break;
      case 4:
        drawn.mapping = cluster(drawn.block, drawn.deal);
        break;
      case 5:
        drawn.mapping = columns(drawn.block);
        break;
      default:
        drawn.mapping =
            mapping::Patch{between(1, 70), between(1, 70), between(1, drawn.block),
                           static_cast<int>(between(1, drawn.block)), static_cast<int>(between(1, 8))};
    }
    drawn.deal.tasks = task_count(drawn.mapping);
    drawn.deal.takers = between(1, drawn.deal.tasks);
    set_depth(drawn);
    return drawn;
  }

 private:
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  int power(int most) { return 1 << between(0, most); }

  mapping::Vectors vectors() { return {power(3), static_cast<int>(between(1, 8))}; }

  mapping::Elements elements() {
    const mapping::Vectors v = vectors();
    return {between(1, 700) * v.width, between(1, 300) * v.width, v, std::nullopt};
  }

  int row_threads(int block) {
    return between(0, 1) == 0 ? power(5) : 32 * static_cast<int>(between(1, block / 32));
  }

  mapping::Rows lanes(int block) {
    mapping::Lanes lanes;
    lanes.threads = row_threads(block);
    lanes.rows = between(0, 2) == 0 ? 1 : between(1, block / lanes.threads);
    lanes.vectors = vectors();
    if (between(0, 3) == 0) {  // in turn
      lanes.rows = between(1, 4 * block / lanes.threads);
      return {between(1, 60), between(1, 300), lanes};
    }
    if (between(0, 2) == 0) lanes.tile = between(0, 1) == 0 ? mapping::Copy(mapping::ByLoads{}) : some_copy();
    if (lanes.tile && lanes.rows > 1) lanes.vectors.width = 1;
    return {between(1, 60), between(1, 300), lanes};
  }
  mapping::Copy some_copy() {
    return between(0, 1) == 0 ? mapping::Copy(mapping::Async{}) : mapping::Copy(mapping::Bulk{});
  }

  mapping::Rows segments(int block) {
    mapping::Segments segments;
    segments.threads = block;
    segments.vectors = vectors();
    segments.count = static_cast<int>(between(2, 7));
    segments.atomic = between(0, 1) == 0;
    // Vectors divide every segment, or there are none.
    const std::int64_t width = segments.vectors.width;
    const std::int64_t cols =
        width == 1 ? between(segments.count, 900) : between(1, 40) * width * segments.count;
    return {between(1, 12), cols, segments};
  }

  mapping::Rows cluster(int block, Deal& deal) {
    mapping::Cluster cluster;
    cluster.blocks = deal.cluster = 1 << between(1, 2);
    cluster.threads = cluster.blocks * block;
    cluster.vectors = vectors();
    std::int64_t cols = between(1, 3000);
    if (between(0, 1) == 0) {
      cluster.tile = between(0, 1) == 0 ? mapping::PartCopy(mapping::ByLoads{}) : mapping::Async{};
      // Each block has a part, of whole sectors of 32 elements.
      cols = std::max<std::int64_t>(cols, 32 * cluster.blocks * (cluster.blocks - 1));
    }
    return {between(1, 4), cols, cluster};
  }

  /// Flat columns, whose tile has all results, have no vector alignment; the others lie in the block's
  /// threads.
  mapping::Columns columns(int block) {
    mapping::Columns columns;
    columns.vectors = vectors();
    const std::int64_t width = columns.vectors.width, places = block * width;
    columns.length = between(1, 60);
    const std::int64_t kind = width == 1 ? 0 : between(0, 2);
    if (kind == 0) {  // a vector divides the results
      columns.tile = between(1, std::max<std::int64_t>(1, block / width)) * width;
      columns.results = between(1, 30) * width;
    } else if (kind == 1) {  // flat
      columns.results = columns.tile = between(1, block / width);
    } else {  // shifted
      columns.results = between(1, 40);
      columns.tile = std::min(between(1, 4) * 2 * width, places / (2 * width) - 2 * width);
      if (columns.tile < 1) columns.vectors.width = 1, columns.tile = between(1, block);
    }
    columns.threads = static_cast<int>(std::max<std::int64_t>(1, block / columns.tile));
    while (columns.threads > 1 && columns.threads * columns.tile > block) --columns.threads;
    columns.segments = static_cast<int>(std::min(between(1, 4), columns.length));
    columns.atomic = columns.segments > 1 && between(0, 1) == 0;
    return columns;
  }

  /// Copies for as many tasks at a time as a block has, at most.
  void set_depth(DrawnMapping& drawn) {
    auto* rows = std::get_if<mapping::Rows>(&drawn.mapping);
    if (rows == nullptr) return;
    const int depth = static_cast<int>(between(1, std::min<std::int64_t>(4, drawn.deal.most_tasks())));
    const auto deepen = [depth](auto& copy) {
      if (auto* async = std::get_if<mapping::Async>(&copy)) async->depth = depth;
    };
    if (auto* lanes = std::get_if<mapping::Lanes>(&rows->sharing); lanes && lanes->tile) {
      deepen(*lanes->tile);
      if (auto* bulk = std::get_if<mapping::Bulk>(&*lanes->tile)) bulk->depth = depth;
    }
    if (auto* cluster = std::get_if<mapping::Cluster>(&rows->sharing); cluster && cluster->tile)
      deepen(*cluster->tile);
  }

  std::mt19937_64 random_;
};

}  // namespace stitchwork::testing
