// Schedules of FusionStitching 2018, section 4.1: how the elements of an instruction's output are cut into
// the chunks of a grid's blocks. Shapes are those of the output, dims from major to minor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stitchwork::fusionstitching {

using Dims = std::vector<std::int64_t>;

enum class ScheduleType : std::uint8_t { kRow, kColumn };

/// `sword`, a divisor of dims[split_dim], is the number of parts of that dimension. Row: what lies left of it
/// and its parts are the blocks, a chunk is consecutive elements. Column: its parts and what lies right of it
/// are the blocks, a chunk is all of the left by one part by one index of the right. Of a scalar split_dim 0
/// and sword 1 alone.
struct Schedule {
  int split_dim = 0;
  std::int64_t sword = 1;
  ScheduleType type = ScheduleType::kRow;
  bool operator==(const Schedule&) const = default;
};

/// "(0,16,Row)"
std::string to_text(const Schedule& schedule);

std::int64_t elements_of(const Dims& dims);
std::int64_t blocks_of(const Schedule& schedule, const Dims& dims);

/// The chunks, whatever schedule they are of: the elements as a matrix of left x columns, of which a block
/// has `part` neighbouring columns. One range of elements where left is 1, as all of Row are.
struct Chunking {
  std::int64_t blocks = 1, left = 1, columns = 1, part = 1;
  bool one_range() const { return left == 1; }
  std::int64_t elements() const { return left * part; }
  bool operator==(const Chunking&) const = default;
};

/// None of a strided schedule.
std::optional<Chunking> chunking(const Schedule& schedule, const Dims& dims);

/// Column with elements right of split_dim, of which a block has some but not all and not one: nothing of
/// ours has such lanes.
bool is_strided(const Schedule& schedule, const Dims& dims);

/// The full product of legal values: every split_dim, every divisor, Row before Column. The space that F18
/// counts; several are the same chunks.
std::vector<Schedule> candidates(const Dims& dims);

/// Of `blocks` chunks, by the least split_dim that makes them; none if no dims do.
std::optional<Schedule> row_schedule(const Dims& dims, std::int64_t blocks);
/// The same of Column, of chunks that are no range of elements.
std::optional<Schedule> column_schedule(const Dims& dims, std::int64_t blocks);

/// Of each type one of each different chunks of `candidates`, strided ones left out: ascending by blocks, Row
/// before Column. The same chunks by both types are two: Table 1 passes them differently.
std::vector<Schedule> distinct_candidates(const Dims& dims);

}  // namespace stitchwork::fusionstitching
