#include "analysis/schedule/mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/arithmetic.h"
#include "core/error.h"

namespace stitchwork {
namespace {

using namespace mapping;

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

/// More vectors in flight would not fit a thread's registers.
constexpr int kMostUnrolled = 16;

std::optional<Copy> copy_of(const ThreadMapping& m) {
  if (!m.staged) return std::nullopt;
  if (m.stages == 0) return ByLoads{};
  return m.bulk ? Copy(Bulk{m.stages}) : Copy(Async{m.stages});
}

std::optional<PartCopy> part_copy_of(const ThreadMapping& m) {
  if (!m.staged) return std::nullopt;
  return m.stages == 0 ? PartCopy(ByLoads{}) : PartCopy(Async{m.stages});
}

template <typename Copies>
void set_copy(const std::optional<Copies>& copy, ThreadMapping& m) {
  if (!copy) return;
  m.staged = true;
  std::visit(Overloaded{[](const ByLoads&) {}, [&](const Async& async) { m.stages = async.depth; },
                        [&](const Bulk& bulk) {
                          m.stages = bulk.depth;
                          m.bulk = true;
                        }},
             Copy(std::visit([](const auto& c) { return Copy(c); }, *copy)));
}

void set_vectors(const Vectors& vectors, ThreadMapping& m) {
  m.vector = vectors.width;
  m.unroll = vectors.unroll;
}

void set_segments(int segments, bool atomic, ThreadMapping& m) {
  m.split = segments;
  if (segments > 1) m.combine = atomic ? Combine::kAtomic : Combine::kPartials;
}

void set_sharing(const OneThread& one, ThreadMapping& m) {
  m.kind = MappingKind::kRowSerial;
  m.rows_per_block = one.rows;
}
void set_sharing(const Lanes& lanes, ThreadMapping& m) {
  m.kind = MappingKind::kRowPack;
  m.threads_per_row = lanes.threads;
  m.rows_per_block = lanes.rows;
  set_vectors(lanes.vectors, m);
  set_copy(lanes.tile, m);
}
void set_sharing(const Segments& segments, ThreadMapping& m) {
  m.kind = MappingKind::kRowSplit;
  m.threads_per_row = segments.threads;
  set_vectors(segments.vectors, m);
  set_segments(segments.count, segments.atomic, m);
}
void set_sharing(const Cluster& cluster, ThreadMapping& m) {
  m.kind = MappingKind::kRowPack;
  m.cluster = cluster.blocks;
  m.threads_per_row = cluster.threads;
  set_vectors(cluster.vectors, m);
  set_copy(cluster.tile, m);
}

ThreadMapping fields_of(const Elements& elements) {
  ThreadMapping m;
  m.kind = MappingKind::kElementwise;
  m.rows = elements.count;
  m.rows_per_block = elements.parts ? elements.parts->part : elements.per_task;
  m.cluster = elements.parts ? elements.parts->blocks : 1;
  set_vectors(elements.vectors, m);
  return m;
}
ThreadMapping fields_of(const Rows& rows) {
  ThreadMapping m;
  m.rows = rows.rows;
  m.cols = rows.cols;
  std::visit([&](const auto& sharing) { set_sharing(sharing, m); }, rows.sharing);
  return m;
}
ThreadMapping fields_of(const Columns& columns) {
  ThreadMapping m;
  m.kind = MappingKind::kColumn;
  m.rows = columns.results;
  m.cols = columns.length;
  m.rows_per_block = columns.tile;
  m.threads_per_row = columns.threads;
  set_vectors(columns.vectors, m);
  set_segments(columns.segments, columns.atomic, m);
  return m;
}
ThreadMapping fields_of(const Patch& patch) {
  ThreadMapping m;
  m.kind = MappingKind::kTile;
  m.rows = patch.rows;
  m.cols = patch.cols;
  m.rows_per_block = patch.height;
  m.threads_per_row = patch.width;
  m.unroll = patch.unroll;
  m.split = static_cast<int>(ceil_div(patch.cols, std::int64_t{patch.width}));
  return m;
}

/// The plan's names for the fields of `a` that are not as in `b`.
std::vector<std::string> differences(const ThreadMapping& a, const ThreadMapping& b) {
  std::vector<std::string> found;
  const auto compare = [&](const char* name, auto ThreadMapping::*field) {
    if (a.*field != b.*field) found.emplace_back(name);
  };
  compare("cols", &ThreadMapping::cols);
  compare("vector", &ThreadMapping::vector);
  compare("unroll", &ThreadMapping::unroll);
  compare("threads_per_row", &ThreadMapping::threads_per_row);
  compare("rows_per_block", &ThreadMapping::rows_per_block);
  compare("split", &ThreadMapping::split);
  compare("combine", &ThreadMapping::combine);
  compare("staged", &ThreadMapping::staged);
  compare("stages", &ThreadMapping::stages);
  compare("bulk", &ThreadMapping::bulk);
  compare("cluster", &ThreadMapping::cluster);
  return found;
}

template <typename... Args>
Verdict no(const char* rule, fmt::format_string<Args...> format, Args&&... args) {
  return Verdict::no(fmt::format("mapping.{}", rule), fmt::format(format, std::forward<Args>(args)...));
}

/// Vectors lie whole within a row, a segment and a task, or rows are peeled (analysis/schedule/layout.h).
Verdict legal_vectors(const ThreadMapping& m) {
  if (m.unroll > kMostUnrolled)
    return no("vector", "{} vectors in flight, at most {}", m.unroll, kMostUnrolled);
  if ((m.vector & (m.vector - 1)) != 0)
    return no("vector", "vectors of {} elements are no power of two", m.vector);
  if (m.kind == MappingKind::kColumn || m.kind == MappingKind::kRowPack) return Verdict::yes();
  const bool elements = m.kind == MappingKind::kElementwise;
  const std::int64_t length = elements ? m.rows : m.cols;
  const std::int64_t part = elements ? m.rows_per_block : ceil_div(m.cols, std::int64_t{m.split});
  if (length % m.vector != 0 || part % m.vector != 0)
    return no("vector", "{} elements in parts of {} are no whole vectors of {}", length, part, m.vector);
  return Verdict::yes();
}

Verdict legal_deal(const ThreadMapping& m) {
  const std::int64_t tasks = task_count(to_mapping(m));
  if (m.tasks != tasks)
    return no("tasks", "{} rows, {} a task, split {} make {} tasks, not {}", m.rows, m.rows_per_block,
              m.split, tasks, m.tasks);
  const Deal deal = to_deal(m);
  if (m.blocks != deal.blocks())
    return no("blocks", "{} blocks are no whole clusters of {}", m.blocks, m.cluster);
  if (deal.takers > m.tasks) return no("blocks", "{} tasks do not keep {} blocks busy", m.tasks, m.blocks);
  if (m.tasks_per_block != deal.most_tasks())
    return no("blocks", "{} tasks on {} blocks are up to {} a block, not {}", m.tasks, m.blocks,
              deal.most_tasks(), m.tasks_per_block);
  return Verdict::yes();
}

/// What of the numbers each says of the others.
Verdict legal_sharing(const ThreadMapping& m) {
  if (m.kind == MappingKind::kRowPack && m.threads_per_row % 32 != 0 &&
      (m.threads_per_row & (m.threads_per_row - 1)) != 0)
    return no("threads", "{} threads a row are neither a power of two nor a multiple of 32",
              m.threads_per_row);
  if (m.kind != MappingKind::kTile && m.split > std::max<std::int64_t>(1, m.cols))
    return no("split", "{} columns cut into {} segments", m.cols, m.split);
  // Of a range of rows threads take their elements one by one; of a single row also by vectors.
  if (m.staged && m.rows_per_block > 1 && m.vector > 1)
    return no("staged", "several staged rows move element by element, not in vectors of {}", m.vector);
  if (m.stages > std::max<std::int64_t>(1, m.tasks_per_block))
    return no("staged", "copies for {} tasks at a time, of {} a block", m.stages, m.tasks_per_block);
  if (m.staged && m.cluster > 1 && (m.cluster - 1) * part_cols(m.cols, m.cluster) >= m.cols)
    return no("staged", "rows of {} columns leave some of {} blocks no part", m.cols, m.cluster);
  return Verdict::yes();
}

}  // namespace

std::string to_text(const Deal& deal) {
  return fmt::format("{} tasks, {} a block, blocks {}..{}{}", deal.tasks, deal.most_tasks(), deal.first_block,
                     deal.end_block() - 1,
                     deal.cluster > 1 ? fmt::format(" in clusters of {}", deal.cluster) : "");
}

std::int64_t part_cols(std::int64_t cols, int blocks) {
  return round_up(ceil_div(cols, std::int64_t{blocks}), std::int64_t{kRowAlignment});
}

std::int64_t task_count(const Mapping& mapping) {
  const auto parts = [](std::int64_t of, std::int64_t size) {
    return std::max<std::int64_t>(1, ceil_div(of, size));
  };
  return std::visit(
      Overloaded{
          [&](const Elements& e) { return parts(e.count, e.per_task); },
          [&](const Rows& rows) {
            return std::visit(Overloaded{[&](const OneThread& one) { return parts(rows.rows, one.rows); },
                                         [&](const Lanes& lanes) { return parts(rows.rows, lanes.rows); },
                                         [&](const Segments& s) { return parts(rows.rows, 1) * s.count; },
                                         [&](const Cluster&) { return parts(rows.rows, 1); }},
                              rows.sharing);
          },
          [&](const Columns& c) { return parts(c.results, c.tile) * c.segments; },
          [&](const Patch& p) { return parts(p.rows, p.height) * ceil_div(p.cols, std::int64_t{p.width}); }},
      mapping);
}

Mapping to_mapping(const ThreadMapping& m) {
  const Vectors vectors{m.vector, m.unroll};
  const bool atomic = m.combine == Combine::kAtomic;
  switch (m.kind) {
    case MappingKind::kElementwise: {
      Elements elements{m.rows, m.rows_per_block, vectors, std::nullopt};
      if (m.cluster > 1) elements = {m.rows, m.rows / m.tasks, vectors, {{m.cluster, m.rows_per_block}}};
      return elements;
    }
    case MappingKind::kRowSerial:
      return Rows{m.rows, m.cols, OneThread{m.rows_per_block}};
    case MappingKind::kRowPack:
      if (m.cluster > 1)
        return Rows{m.rows, m.cols, Cluster{m.cluster, m.threads_per_row, vectors, part_copy_of(m)}};
      return Rows{m.rows, m.cols, Lanes{m.threads_per_row, m.rows_per_block, vectors, copy_of(m)}};
    case MappingKind::kRowSplit:
      return Rows{m.rows, m.cols, Segments{m.threads_per_row, vectors, m.split, atomic}};
    case MappingKind::kColumn:
      return Columns{m.rows, m.cols, m.rows_per_block, m.threads_per_row, vectors, m.split, atomic};
    case MappingKind::kTile:
      return Patch{m.rows, m.cols, m.rows_per_block, m.threads_per_row, m.unroll};
  }
  SW_CHECK(false, "mapping kind {}", static_cast<int>(m.kind));
}

Deal to_deal(const ThreadMapping& m, std::int64_t first_block) {
  return {m.tasks, std::max<std::int64_t>(1, m.blocks / m.cluster), first_block, m.cluster};
}

Deal to_deal(const Group& group) { return to_deal(group.mapping, group.first_block); }

ThreadMapping to_fields(const Mapping& mapping, const Deal& deal) {
  ThreadMapping m = std::visit([](const auto& of) { return fields_of(of); }, mapping);
  m.tasks = deal.tasks;
  m.tasks_per_block = deal.most_tasks();
  m.blocks = deal.blocks();
  return m;
}

Verdict legal(const ThreadMapping& m) {
  if (m.rows < 0 || m.cols < 0 || m.rows_per_block < 1 || m.tasks < 1 || m.tasks_per_block < 1 ||
      m.split < 1 || m.blocks < 1 || m.cluster < 1 || m.threads_per_row < 1 || m.vector < 1 || m.unroll < 1 ||
      m.stages < 0)
    return no("range", "a number of the mapping is out of range ({})", to_text(m));
  // Copies of a loop's tiles for no task at a time, a split that nothing combines: what no Mapping says.
  const std::vector<std::string> lost = differences(m, to_fields(to_mapping(m), to_deal(m)));
  if (!lost.empty() || (m.kind == MappingKind::kElementwise && m.cluster > 1))
    return no("form", "no {} mapping has such {} ({})", name(m.kind),
              lost.empty() ? "cluster" : fmt::format("{}", fmt::join(lost, ", ")), to_text(m));
  for (const auto check : {legal_sharing, legal_deal, legal_vectors})
    if (Verdict verdict = check(m); !verdict) return verdict;
  return Verdict::yes();
}

}  // namespace stitchwork
