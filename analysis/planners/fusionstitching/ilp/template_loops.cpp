// Between the attributes of a template and loops (template_text.h).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/fusionstitching/ilp/dimensions.h"
#include "analysis/planners/fusionstitching/ilp/template_text.h"
#include "analysis/planners/fusionstitching/schedule.h"
#include "core/base/arithmetic.h"
#include "core/base/error.h"
#include "core/base/sorted.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::fusionstitching {
namespace {

/// Attributes of dimensions of which `blocks` take equal parts, from the major ones on, and what is left is
/// `inner`'s; none if no dimensions are cut so.
std::optional<std::vector<Attribute>> cut(const Dims& dims, std::int64_t blocks, Level inner) {
  const auto row = row_schedule(dims, blocks);
  if (!row) return std::nullopt;
  std::vector<Attribute> result;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    const std::int64_t extent = dims[static_cast<std::size_t>(d)];
    if (d < row->split_dim || (d == row->split_dim && row->sword == extent && blocks > 1))
      result.push_back({{Level::kGrid, 0}});
    else if (d == row->split_dim && row->sword > 1)
      result.push_back({{Level::kGrid, row->sword}, {inner, extent / row->sword}});
    else
      result.push_back({{inner, 0}});
  }
  return result;
}

/// Attributes of the kept dimensions, in tasks of `part` elements, and one level for all reduced ones; folded
/// where the kept ones are cut across dimensions.
std::vector<Attribute> attributes(const Computation& computation, const Node& node, std::int64_t part,
                                  Level kept, Level reduced) {
  const ScheduledDims dims = scheduled_dims(computation, node, std::string::npos);
  Dims outer;
  for (std::size_t d = 0; d < dims.extents.size(); ++d)
    if (!dims.reduced[d]) outer.push_back(dims.extents[d]);
  const std::int64_t elements = dims.kept();
  part = std::clamp<std::int64_t>(part, 1, std::max<std::int64_t>(1, elements));
  const std::int64_t blocks = ceil_div(std::max<std::int64_t>(1, elements), part);
  const bool reduces = std::find(dims.reduced.begin(), dims.reduced.end(), true) != dims.reduced.end();
  const auto of_kept = elements % part == 0 ? cut(outer, blocks, kept) : std::nullopt;
  if (!of_kept) {
    std::vector<Attribute> folded{{{Level::kGrid, blocks}, {kept, part}}};
    if (reduces) folded.push_back({{reduced, 0}});
    return folded;
  }
  std::vector<Attribute> result;
  std::size_t k = 0;
  for (std::size_t d = 0; d < dims.extents.size(); ++d)
    result.push_back(dims.reduced[d] ? Attribute{{reduced, 0}} : (*of_kept)[k++]);
  return result;
}

/// Of an element-wise op in a loop over rows of `cols` elements: rows, then the lanes' part of each.
std::vector<Attribute> in_rows(const Node& node, std::int64_t part, std::int64_t cols, Level kept) {
  const Dims& dims = node.shape.dims;
  std::size_t first = dims.size();  // of the dimensions within a row
  for (std::int64_t within = 1; first > 0 && within < cols;) within *= dims[--first];
  const Dims outer(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(first)),
      inner(dims.begin() + static_cast<std::ptrdiff_t>(first), dims.end());
  const std::int64_t rows = elements_of(outer);
  if (elements_of(inner) == cols && rows % std::min(part, rows) == 0) {
    if (auto result = cut(outer, rows / std::min(part, rows), kept)) {
      result->insert(result->end(), inner.size(), Attribute{{Level::kCta, 0}});
      return *std::move(result);
    }
  }
  const std::int64_t elements = node.shape.elements_count(), chunk = std::min(elements, part * cols);
  return {{{Level::kGrid, ceil_div(elements, chunk)}, {Level::kCta, chunk}}};
}

/// What all attributes of one kind of dimensions come to.
struct Dealing {
  std::int64_t blocks = 1;     ///< of GRID
  std::int64_t elements = 1;   ///< of all
  std::optional<Level> inner;  ///< the level of what is left, one for all
  bool has_grid = false;
};

[[noreturn]] void fail(const OpSchedule& schedule, const std::string& what, const std::string& hint) {
  throw Error("template", schedule.line, schedule.column, what, hint);
}

Dealing dealing(const Computation& computation, const OpSchedule& schedule, bool reduced) {
  const Node& node = computation.node(schedule.op);
  const ScheduledDims dims = scheduled_dims(computation, node, schedule.dims.size());
  const bool reduces = std::find(dims.reduced.begin(), dims.reduced.end(), true) != dims.reduced.end();
  Dealing result;
  bool inside = false;  // a dimension before it is not the blocks' alone
  for (std::size_t d = 0; d < dims.extents.size(); ++d) {
    if (dims.reduced[d] != reduced) continue;
    result.elements *= dims.extents[d];
    for (const Tiles& tiles : schedule.dims[d]) {
      const std::int64_t count = tiles.count == 0 ? dims.extents[d] : tiles.count;
      if (tiles.level == Level::kGrid) {
        if (inside && count > 1)
          fail(schedule, fmt::format("{}: blocks take dimension {}, and not all before it", node.name, d),
               "GRID stands for the first dimensions");
        result.blocks *= count;
        result.has_grid = true;
        continue;
      }
      // An element-wise op's rows may be warps', and what is in a row their lanes'.
      const bool lanes = !reduces && result.inner && tiles.level == Level::kCta;
      if (result.inner && *result.inner != tiles.level && count > 1 && !lanes)
        fail(schedule,
             fmt::format("{}: both {} and {} of dimensions that are {}", node.name, name(*result.inner),
                         name(tiles.level), reduced ? "reduced" : "kept"),
             "one level for all of them");
      if (!lanes && (count > 1 || !result.inner)) result.inner = tiles.level;
      inside = inside || count > 1;
    }
  }
  return result;
}

}  // namespace

std::vector<OpSchedule> schedules_of(const Computation& computation, const KernelPlan& kernel) {
  std::vector<OpSchedule> result;
  for (const Group& group : kernel.groups) {
    const std::int64_t part = task_rows(group.mapping);
    const Extents domain = extents(group.mapping);
    for (const NodeId op : materialised(group)) {
      const Node& node = computation.node(op);
      OpSchedule schedule;
      schedule.op = op;
      schedule.shared = scheme_in_phase(kernel, op) == Scheme::kRegional;
      const bool reduces = def(node.op).cls == OpClass::kReduce || node.op == Op::kDot;
      Level kept = Level::kCta, reduced = Level::kCta;
      if (is<mapping::OneThread>(group.mapping)) {
        reduced = Level::kThread;
      } else if (is<mapping::Columns>(group.mapping)) {
        reduced = Level::kWarp;
      } else if (!is<mapping::Elements>(group.mapping)) {
        kept = threads_a_row(group.mapping) <= static_cast<int>(kWarp) ? Level::kWarp : Level::kThread;
      }
      const bool once_a_row = node.shape.elements_count() == domain.rows && domain.cols != 1;
      if (reduces || is<mapping::Elements>(group.mapping) || once_a_row)
        schedule.dims = attributes(computation, node, part, kept, reduced);
      else
        schedule.dims = in_rows(node, part, domain.cols, kept);
      result.push_back(std::move(schedule));
    }
  }
  return result;
}

Dealt dealt_of(const Computation& computation, const OpSchedule& schedule, int cta_size) {
  const Node& node = computation.node(schedule.op);
  const Dealing kept = dealing(computation, schedule, false), reduced = dealing(computation, schedule, true);
  const bool reduces = def(node.op).cls == OpClass::kReduce || node.op == Op::kDot;
  if (reduced.has_grid && reduced.blocks > 1)
    fail(schedule, fmt::format("{}: blocks share a reduced dimension", node.name),
         "no kernel of this planner has values that blocks combine");
  const std::int64_t part = std::max<std::int64_t>(1, ceil_div(kept.elements, kept.blocks));
  Mapping mapping = mapping::Elements{.count = node.shape.elements_count(), .per_task = part};
  if (reduces) {
    const std::int64_t rows = kept.elements, cols = reduced.elements;
    const Level along = reduced.inner.value_or(Level::kThread);
    if (along == Level::kThread) {
      mapping = mapping::Rows{rows, cols, mapping::OneThread{part}};
    } else if (along == Level::kWarp) {
      const auto threads = static_cast<int>(std::max<std::int64_t>(1, cta_size / part));
      mapping = mapping::Columns{.results = rows, .length = cols, .tile = part, .threads = threads};
    } else {
      const bool warps = kept.inner == Level::kWarp;
      mapping = mapping::Rows{
          rows, cols, mapping::Lanes{.threads = warps ? static_cast<int>(kWarp) : cta_size, .rows = part}};
    }
  }
  return {mapping, deal_to(mapping, task_count(mapping))};
}

}  // namespace stitchwork::fusionstitching
