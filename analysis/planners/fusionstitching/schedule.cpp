#include "analysis/planners/fusionstitching/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace stitchwork::fusionstitching {
namespace {

std::int64_t product(Dims::const_iterator first, Dims::const_iterator last) {
  return std::accumulate(first, last, std::int64_t{1}, std::multiplies<>());
}

std::int64_t left_of(const Dims& dims, int dim) { return product(dims.begin(), dims.begin() + dim); }
std::int64_t right_of(const Dims& dims, int dim) { return product(dims.begin() + dim + 1, dims.end()); }

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

Chunking rows_of(std::int64_t elements, std::int64_t blocks) {
  return {blocks, 1, elements, blocks == 0 ? elements : elements / blocks};
}

}  // namespace

std::string to_text(const Schedule& schedule) {
  return fmt::format("({},{},{})", schedule.split_dim, schedule.sword,
                     schedule.type == ScheduleType::kRow ? "Row" : "Column");
}

std::int64_t elements_of(const Dims& dims) { return product(dims.begin(), dims.end()); }

std::int64_t blocks_of(const Schedule& schedule, const Dims& dims) {
  if (dims.empty()) return 1;
  const std::int64_t beside = schedule.type == ScheduleType::kRow ? left_of(dims, schedule.split_dim)
                                                                  : right_of(dims, schedule.split_dim);
  return beside * schedule.sword;
}

bool is_strided(const Schedule& schedule, const Dims& dims) {
  if (schedule.type == ScheduleType::kRow || dims.empty()) return false;
  const std::int64_t extent = dims[static_cast<std::size_t>(schedule.split_dim)];
  return right_of(dims, schedule.split_dim) > 1 && schedule.sword > 1 && schedule.sword < extent;
}

std::optional<Chunking> chunking(const Schedule& schedule, const Dims& dims) {
  const std::int64_t blocks = blocks_of(schedule, dims), all = elements_of(dims);
  if (schedule.type == ScheduleType::kRow || blocks <= 1 || blocks == all) return rows_of(all, blocks);
  if (is_strided(schedule, dims)) return std::nullopt;
  // All of the split dimension and one index of the right are a column, as one index of both is.
  const std::int64_t extent = dims[static_cast<std::size_t>(schedule.split_dim)];
  const std::int64_t right = right_of(dims, schedule.split_dim);
  const bool whole = schedule.sword == 1 && right > 1;
  const std::int64_t left = left_of(dims, schedule.split_dim) * (whole ? extent : 1);
  const std::int64_t columns = whole ? right : extent * right;
  if (left == 1) return rows_of(all, blocks);
  return Chunking{blocks, left, columns, columns / blocks};
}

std::vector<Schedule> candidates(const Dims& dims) {
  if (dims.empty() || elements_of(dims) == 0) return {Schedule{}};
  std::vector<Schedule> result;
  for (const ScheduleType type : {ScheduleType::kRow, ScheduleType::kColumn})
    for (int d = 0; d < static_cast<int>(dims.size()); ++d)
      for (const std::int64_t sword : divisors(dims[static_cast<std::size_t>(d)]))
        result.push_back({d, sword, type});
  return result;
}

std::optional<Schedule> row_schedule(const Dims& dims, std::int64_t blocks) {
  if (blocks == 1) return Schedule{};
  std::int64_t left = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0 || blocks % left != 0) return std::nullopt;
    const std::int64_t sword = blocks / left;
    if (dims[d] % sword == 0) return Schedule{static_cast<int>(d), sword, ScheduleType::kRow};
    left *= dims[d];
  }
  return std::nullopt;
}

std::optional<Schedule> column_schedule(const Dims& dims, std::int64_t blocks) {
  std::int64_t right = 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 0 || blocks % right != 0) return std::nullopt;
    const std::int64_t sword = blocks / right;
    const Schedule schedule{static_cast<int>(d), sword, ScheduleType::kColumn};
    if (dims[d] % sword == 0) {
      const auto chunks = chunking(schedule, dims);
      if (chunks && !chunks->one_range()) return schedule;
    }
    right *= dims[d];
  }
  return std::nullopt;
}

std::vector<Schedule> distinct_candidates(const Dims& dims) {
  std::vector<Schedule> result;
  std::vector<std::pair<ScheduleType, Chunking>> seen;
  for (const Schedule& schedule : candidates(dims)) {
    const auto chunks = chunking(schedule, dims);
    if (!chunks) continue;
    std::pair key(schedule.type, *chunks);
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
    seen.push_back(std::move(key));
    result.push_back(schedule);
  }
  std::stable_sort(result.begin(), result.end(), [&](const Schedule& a, const Schedule& b) {
    return blocks_of(a, dims) < blocks_of(b, dims);
  });
  return result;
}

}  // namespace stitchwork::fusionstitching
