#include "analysis/plan/mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/base/arithmetic.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

using namespace mapping;

/// More vectors in flight would not fit a thread's registers.
/// Derived from 16 vectors of 16 bytes, which take 64 registers.
constexpr int kMostUnrolled = 16;

/// Of how rows are shared in place of the rows.
template <typename Visit>
auto visit_forms(const Mapping& mapping, const Visit& of) {
  return std::visit(
      [&](const auto& form) {
        if constexpr (requires { form.sharing; })
          return std::visit(of, form.sharing);
        else
          return of(form);
      },
      mapping);
}

}  // namespace

Extents extents(const Mapping& mapping) {
  if (const auto* elements = as<Elements>(mapping)) return {elements->count, 1};
  if (const auto* rows = as<Rows>(mapping)) return {rows->rows, rows->cols};
  if (const auto* columns = as<Columns>(mapping)) return {columns->results, columns->length};
  const auto& patch = std::get<Patch>(mapping);
  return {patch.rows, patch.cols};
}

std::int64_t task_rows(const Mapping& mapping) {
  if (const auto* e = as<Elements>(mapping)) return e->parts ? e->parts->part : e->per_task;
  if (const auto* one = as<OneThread>(mapping)) return one->rows;
  if (const auto* lanes = as<Lanes>(mapping)) return lanes->rows;
  if (const auto* columns = as<Columns>(mapping)) return columns->tile;
  const auto* patch = as<Patch>(mapping);
  return patch == nullptr ? 1 : patch->height;
}

void set_rows(Mapping& mapping, std::int64_t rows, std::int64_t task_rows) {
  if (auto* elements = as<Elements>(mapping)) {
    elements->count = rows;
    (elements->parts ? elements->parts->part : elements->per_task) = task_rows;
  }
  if (auto* columns = as<Columns>(mapping)) {
    columns->results = rows;
    columns->tile = task_rows;
  }
  if (auto* of = as<Rows>(mapping)) of->rows = rows;
  if (auto* one = as<OneThread>(mapping)) one->rows = task_rows;
  if (auto* lanes = as<Lanes>(mapping)) lanes->rows = task_rows;
}

int segments(const Mapping& mapping) {
  if (const auto* segments = as<Segments>(mapping)) return segments->count;
  if (const auto* columns = as<Columns>(mapping)) return columns->segments;
  const auto* patch = as<Patch>(mapping);
  return patch == nullptr ? 1 : static_cast<int>(ceil_div(patch->cols, std::int64_t{patch->width}));
}

int threads_a_row(const Mapping& mapping) {
  return visit_forms(mapping, [](const auto& form) {
    if constexpr (requires { form.threads; }) return form.threads;
    if constexpr (requires { form.height; }) return form.width;
    return 1;
  });
}

int cluster_blocks(const Mapping& mapping) {
  if (const auto* elements = as<Elements>(mapping); elements != nullptr && elements->parts)
    return elements->parts->blocks;
  const auto* cluster = as<mapping::Cluster>(mapping);
  return cluster == nullptr ? 1 : cluster->blocks;
}

Vectors vectors(const Mapping& mapping) {
  return visit_forms(mapping, [](const auto& form) {
    if constexpr (requires { form.vectors; }) return form.vectors;
    if constexpr (requires { form.unroll; }) return Vectors{1, form.unroll};
    return Vectors{};
  });
}

void set_vectors(Mapping& mapping, const Vectors& vectors) {
  // The mapping is not const.
  visit_forms(mapping, [&]<typename Form>(const Form&) {
    if constexpr (requires(Form & form) { form.vectors; }) as<Form>(mapping)->vectors = vectors;
    if constexpr (requires(Form & form) { form.unroll; }) as<Form>(mapping)->unroll = vectors.unroll;
  });
}

Copy copy_of(int depth, bool bulk) {
  if (depth == 0) return ByLoads{};
  return bulk ? Copy(Bulk{depth}) : Copy(Async{depth});
}

std::optional<Copy> tile_copy(const Mapping& mapping) {
  if (const auto* lanes = as<Lanes>(mapping)) return lanes->tile;
  const auto* cluster = as<mapping::Cluster>(mapping);
  if (cluster == nullptr || !cluster->tile) return std::nullopt;
  return std::visit([](const auto& copy) { return Copy(copy); }, *cluster->tile);
}

int copy_depth(const Mapping& mapping) {
  const Copy copy = tile_copy(mapping).value_or(ByLoads{});
  if (const auto* bulk = std::get_if<Bulk>(&copy)) return bulk->depth;
  const auto* async = std::get_if<Async>(&copy);
  return async == nullptr ? 0 : async->depth;
}

bool combines_atomically(const Mapping& mapping) {
  const auto* segments = as<Segments>(mapping);
  const auto* columns = as<Columns>(mapping);
  return segments != nullptr ? segments->atomic : columns != nullptr && columns->atomic;
}

bool combines_partials(const Mapping& mapping) {
  return segments(mapping) > 1 && !is<Patch>(mapping) && !combines_atomically(mapping);
}

std::int64_t part_cols(std::int64_t cols, int blocks) {
  return round_up(ceil_div(cols, std::int64_t{blocks}), std::int64_t{kRowAlignment});
}

std::int64_t task_count(const Mapping& mapping) {
  const auto* elements = as<Elements>(mapping);  // of which blocks may have parts
  const std::int64_t rows = elements != nullptr ? elements->per_task : task_rows(mapping);
  return std::max<std::int64_t>(1, ceil_div(extents(mapping).rows, rows)) * segments(mapping);
}

Deal deal_to(const Mapping& mapping, std::int64_t takers) {
  const std::int64_t tasks = task_count(mapping);
  return {tasks, std::clamp<std::int64_t>(takers, 1, tasks), 0, cluster_blocks(mapping)};
}

int form_number(const Mapping& mapping) {
  if (is<Elements>(mapping)) return 0;
  if (packs_rows(mapping)) return 1;
  if (is<Segments>(mapping)) return 2;
  if (is<Columns>(mapping)) return 3;
  return is<OneThread>(mapping) ? 4 : 5;
}

std::string_view name(const Mapping& mapping) {
  constexpr std::array<std::string_view, 6> kNames = {"elementwise", "row_pack",   "row_split",
                                                      "column",      "row_serial", "tile"};
  return kNames[static_cast<std::size_t>(form_number(mapping))];
}

std::string_view combine_name(const Mapping& mapping) {
  return combines_atomically(mapping) ? "atomic" : combines_partials(mapping) ? "partials" : "none";
}

std::string to_text(const Deal& deal) {
  return fmt::format("{} tasks, {} a block, blocks {}..{}{}", deal.tasks, deal.most_tasks(), deal.first_block,
                     deal.end_block() - 1,
                     deal.cluster > 1 ? fmt::format(" in clusters of {}", deal.cluster) : "");
}

std::string to_text(const Mapping& mapping, const Deal& deal) {
  const auto [rows, cols] = extents(mapping);
  std::string text = fmt::format("{} {}x{}: {} of {}, {} a block, {}", name(mapping), rows, cols,
                                 counted(deal.tasks, "task"), counted(task_rows(mapping), "row"),
                                 deal.most_tasks(), counted(deal.blocks(), "block"));
  const Vectors moved = vectors(mapping);
  const int threads = threads_a_row(mapping), depth = copy_depth(mapping), blocks = cluster_blocks(mapping);
  if (threads > 1) text += fmt::format(", {} threads a row", threads);
  if (moved.width > 1) text += fmt::format(", vectors of {}", moved.width);
  if (moved.unroll > 1) text += fmt::format(", unrolled {}", moved.unroll);
  if (is_staged(mapping)) text += ", staged";
  if (depth > 0) text += copies_in_bulk(mapping) ? " by bulk copies" : " by copies";
  if (depth > 1) text += fmt::format(" for {} tasks", depth);
  if (blocks > 1) text += fmt::format(", clusters of {} blocks", blocks);
  if (segments(mapping) > 1) text += fmt::format(", split {} ({})", segments(mapping), combine_name(mapping));
  return text;
}

namespace {

template <typename... Args>
Verdict illegal(const char* rule, fmt::format_string<Args...> format, Args&&... args) {
  return Verdict::no(fmt::format("mapping.{}", rule), fmt::format(format, std::forward<Args>(args)...));
}

bool is_power_of_two(std::int64_t n) { return (n & (n - 1)) == 0; }

/// Vectors lie whole within a row, a segment and a task, or rows are peeled (analysis/schedule/layout.h).
Verdict legal_vectors(const Mapping& m) {
  const auto [width, unroll] = vectors(m);
  if (unroll > kMostUnrolled)
    return illegal("vector", "{} vectors in flight, at most {}", unroll, kMostUnrolled);
  if (!is_power_of_two(width)) return illegal("vector", "vectors of {} elements are no power of two", width);
  if (!is<Elements>(m) && !is<Segments>(m)) return Verdict::yes();
  const auto [rows, cols] = extents(m);
  const std::int64_t length = is<Elements>(m) ? rows : cols;
  const std::int64_t part = is<Elements>(m) ? task_rows(m) : ceil_div(cols, std::int64_t{segments(m)});
  if (length % width != 0 || part % width != 0)
    return illegal("vector", "{} elements in parts of {} are no whole vectors of {}", length, part, width);
  return Verdict::yes();
}

Verdict legal_deal(const Mapping& m, const Deal& deal) {
  if (deal.tasks != task_count(m))
    return illegal("tasks", "{} rows, {} a task, split {} make {} tasks, not {}", extents(m).rows,
                   task_rows(m), segments(m), task_count(m), deal.tasks);
  if (deal.cluster != cluster_blocks(m))
    return illegal("blocks", "tasks are dealt to clusters of {} blocks, those of the mapping have {}",
                   deal.cluster, cluster_blocks(m));
  if (deal.takers > deal.tasks)
    return illegal("blocks", "{} tasks do not keep {} blocks busy", deal.tasks, deal.blocks());
  return Verdict::yes();
}

/// What of the numbers each says of the others.
Verdict legal_sharing(const Mapping& m, const Deal& deal) {
  const int threads = threads_a_row(m), blocks = cluster_blocks(m);
  const std::int64_t cols = extents(m).cols;
  if (packs_rows(m) && threads % 32 != 0 && !is_power_of_two(threads))
    return illegal("threads", "{} threads a row are neither a power of two nor a multiple of 32", threads);
  if (!is<Patch>(m) && segments(m) > std::max<std::int64_t>(1, cols))
    return illegal("split", "{} columns cut into {} segments", cols, segments(m));
  if (!is_staged(m)) return Verdict::yes();
  // Of a range of rows threads take their elements one by one; of a single row also by vectors.
  if (const int width = vectors(m).width; task_rows(m) > 1 && width > 1)
    return illegal("staged", "several staged rows move element by element, not in vectors of {}", width);
  if (copy_depth(m) > std::max<std::int64_t>(1, deal.most_tasks()))
    return illegal("staged", "copies for {} tasks at a time, of {} a block", copy_depth(m),
                   deal.most_tasks());
  if (blocks > 1 && (blocks - 1) * part_cols(cols, blocks) >= cols)
    return illegal("staged", "rows of {} columns leave some of {} blocks no part", cols, blocks);
  return Verdict::yes();
}

}  // namespace

Verdict legal(const Mapping& m, const Deal& deal) {
  const auto [rows, cols] = extents(m);
  const auto [width, unroll] = vectors(m);
  // A patch's segments are counted by its width.
  if (rows < 0 || cols < 0 || task_rows(m) < 1 || threads_a_row(m) < 1 || width < 1 || unroll < 1 ||
      cluster_blocks(m) < 1 || copy_depth(m) < 0 || segments(m) < 1 || deal.tasks < 1 || deal.takers < 1 ||
      deal.cluster < 1)
    return illegal("range", "a number of the mapping is out of range");
  if (Verdict verdict = legal_sharing(m, deal); !verdict) return verdict;
  if (Verdict verdict = legal_deal(m, deal); !verdict) return verdict;
  return legal_vectors(m);
}

}  // namespace stitchwork
