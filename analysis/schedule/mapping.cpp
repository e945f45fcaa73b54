#include "analysis/schedule/mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "core/arithmetic.h"
#include "core/error.h"

namespace stitchwork {
namespace {

using namespace mapping;

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
void set_copy(const std::optional<Copies>& copies, ThreadMapping& m) {
  m.staged = copies.has_value();
  if (!copies) return;
  const auto set = [&m]<typename Copy>(const Copy& copy) {
    if constexpr (requires { copy.depth; }) m.stages = copy.depth;
    m.bulk = std::is_same_v<Copy, Bulk>;
  };
  std::visit(set, *copies);
}

Combine combine(int segments, bool atomic) {
  if (segments == 1) return Combine::kNone;
  return atomic ? Combine::kAtomic : Combine::kPartials;
}

ThreadMapping fields_of(const Elements& e) {
  return {.rows = e.count,
          .vector = e.vectors.width,
          .unroll = e.vectors.unroll,
          .rows_per_block = e.parts ? e.parts->part : e.per_task,
          .cluster = e.parts ? e.parts->blocks : 1};
}

ThreadMapping fields_of(const Rows& of) {
  ThreadMapping m{.kind = MappingKind::kRowPack, .rows = of.rows, .cols = of.cols};
  const auto share = [&m](int threads, const Vectors& vectors) {
    m.threads_per_row = threads;
    m.vector = vectors.width;
    m.unroll = vectors.unroll;
  };
  if (const auto* one = std::get_if<OneThread>(&of.sharing)) {
    m.kind = MappingKind::kRowSerial;
    m.rows_per_block = one->rows;
  } else if (const auto* lanes = std::get_if<Lanes>(&of.sharing)) {
    share(lanes->threads, lanes->vectors);
    m.rows_per_block = lanes->rows;
    set_copy(lanes->tile, m);
  } else if (const auto* segments = std::get_if<Segments>(&of.sharing)) {
    share(segments->threads, segments->vectors);
    m.kind = MappingKind::kRowSplit;
    m.split = segments->count;
    m.combine = combine(segments->count, segments->atomic);
  } else if (const auto* cluster = std::get_if<Cluster>(&of.sharing)) {
    share(cluster->threads, cluster->vectors);
    m.cluster = cluster->blocks;
    set_copy(cluster->tile, m);
  }
  return m;
}

ThreadMapping fields_of(const Columns& c) {
  return {.kind = MappingKind::kColumn,
          .rows = c.results,
          .cols = c.length,
          .vector = c.vectors.width,
          .unroll = c.vectors.unroll,
          .threads_per_row = c.threads,
          .rows_per_block = c.tile,
          .split = c.segments,
          .combine = combine(c.segments, c.atomic)};
}

ThreadMapping fields_of(const Patch& p) {
  return {.kind = MappingKind::kTile,
          .rows = p.rows,
          .cols = p.cols,
          .unroll = p.unroll,
          .threads_per_row = p.width,
          .rows_per_block = p.height,
          .split = static_cast<int>(ceil_div(p.cols, std::int64_t{p.width}))};
}

ThreadMapping fields_of(const Mapping& mapping) {
  return std::visit([](const auto& of) { return fields_of(of); }, mapping);
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
  const ThreadMapping m = fields_of(mapping);
  const auto* elements = std::get_if<Elements>(&mapping);  // of which blocks may have parts
  const std::int64_t tasks = ceil_div(m.rows, elements != nullptr ? elements->per_task : m.rows_per_block);
  return std::max<std::int64_t>(1, tasks) * m.split;
}

Mapping to_mapping(const ThreadMapping& m) {
  const Vectors vectors{m.vector, m.unroll};
  const bool atomic = m.combine == Combine::kAtomic;
  switch (m.kind) {
    case MappingKind::kElementwise:
      return Elements{m.rows, m.rows_per_block, vectors, std::nullopt};
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
  ThreadMapping m = fields_of(mapping);
  m.tasks = deal.tasks;
  m.tasks_per_block = deal.most_tasks();
  m.blocks = deal.blocks();
  return m;
}

std::string to_text(const Mapping& mapping, const Deal& deal) { return to_text(to_fields(mapping, deal)); }

Verdict legal(const ThreadMapping& m) {
  if (m.rows < 0 || m.cols < 0 || m.rows_per_block < 1 || m.tasks < 1 || m.tasks_per_block < 1 ||
      m.split < 1 || m.blocks < 1 || m.cluster < 1 || m.threads_per_row < 1 || m.vector < 1 || m.unroll < 1 ||
      m.stages < 0)
    return no("range", "a number of the mapping is out of range ({})", to_text(m));
  // Copies of a loop's tiles for no task at a time, a split that nothing combines: what no Mapping says.
  const std::vector<std::string> lost = differences(m, to_fields(to_mapping(m), to_deal(m)));
  if (!lost.empty())
    return no("form", "no {} mapping has such {} ({})", name(m.kind), fmt::join(lost, ", "), to_text(m));
  for (const auto check : {legal_sharing, legal_deal, legal_vectors})
    if (Verdict verdict = check(m); !verdict) return verdict;
  return Verdict::yes();
}

}  // namespace stitchwork
