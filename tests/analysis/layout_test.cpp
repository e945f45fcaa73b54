// Layout: where the elements of a task lie with a block's threads, by enumeration.
#include "analysis/schedule/layout.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <utility>

#include "analysis/schedule/tiles.h"
#include "tests/support/random_mappings.h"

namespace stitchwork {
namespace TEST_FILE {

using Element = std::pair<std::int64_t, std::int64_t>;  ///< row, col of the domain

/// Every element that some thread of some task handles, as code generation places them, and how often.
class Enumeration {
 public:
  Enumeration(const testing::DrawnMapping& drawn, TileOrder order)
      : drawn_(drawn), layout_(drawn.mapping, drawn.block, order), order_(order) {
    for (std::int64_t task = 0; task < drawn.deal.tasks; ++task)
      for (int rank = 0; rank < drawn.deal.cluster; ++rank)
        for (int thread = 0; thread < drawn.block; ++thread)
          std::visit([&](const auto& of) { add(of, task, rank, thread); }, drawn.mapping);
  }

  const Layout& layout() const { return layout_; }
  const std::map<Element, int>& found() const { return found_; }
  /// Vectors that no guard keeps from what the thread does not have.
  int beyond() const { return beyond_; }
  int unaligned() const { return unaligned_; }

 private:
  /// The vectors of a thread's runs, element by element: `at` gives element j of vector n, or none where it
  /// is another's or outside; `address` where its first element lies in an array of the domain's elements.
  template <typename At, typename Address>
  void add_vectors(const At& at, const Address& address) {
    std::int64_t next = 0;
    for (const Run& run : layout_.runs()) {
      EXPECT_EQ(run.first, next);
      EXPECT_EQ((run.end - run.first) % run.at_once, 0);
      next = run.end;
      for (std::int64_t n = run.first; n < run.end; ++n) {
        if (address(n) % layout_.width != 0) ++unaligned_;
        int there = 0;
        for (int j = 0; j < layout_.width; ++j)
          if (const std::optional<Element> element = at(n, j)) {
            ++found_[*element];
            ++there;
          }
        if (!run.guarded && there < layout_.width) ++beyond_;
        // A guarded vector is there or is not, unless the layout says that it may be in part.
        if (run.guarded && there > 0 && there < layout_.width && !layout_.partial_vectors &&
            layout_.columns != ColumnVectors::kFlat)
          ++beyond_;
      }
    }
    EXPECT_EQ(next, layout_.vectors);
  }

  void add(const mapping::Elements& of, std::int64_t task, int, int thread) {
    add_vectors(
        [&](std::int64_t n, int j) -> std::optional<Element> {
          const std::int64_t local = thread * layout_.width + n * layout_.stride + j;
          const std::int64_t row = task * of.per_task + local;
          if (local >= of.per_task || row >= of.count) return std::nullopt;
          return Element{row, 0};
        },
        [&](std::int64_t n) { return task * of.per_task + thread * layout_.width + n * layout_.stride; });
  }

  void add(const mapping::Rows& of, std::int64_t task, int rank, int thread) {
    if (const auto* one = std::get_if<mapping::OneThread>(&of.sharing)) {
      for (std::int64_t row = thread; row < one->rows; row += drawn_.block)
        add_row(task * one->rows + row, 0, 0, of.cols, 0);
      return;
    }
    if (const auto* lanes = std::get_if<mapping::Lanes>(&of.sharing)) {
      const std::int64_t at_once = layout_.rows_a_turn, place = thread / lanes->threads;
      for (std::int64_t turn = 0; turn < layout_.turns && place < at_once; ++turn)
        if (const std::int64_t row = turn * at_once + place; row < lanes->rows)
          add_row(task * lanes->rows + row, thread % lanes->threads, 0, of.cols, of.cols);
      return;
    }
    if (const auto* segments = std::get_if<mapping::Segments>(&of.sharing)) {
      const std::int64_t first = task % segments->count * layout_.length;
      return add_row(task / segments->count, thread, first, std::min(of.cols, first + layout_.length), 0);
    }
    const auto& cluster = std::get<mapping::Cluster>(of.sharing);
    if (!cluster.tile) return add_row(task, rank * drawn_.block + thread, 0, of.cols, of.cols);
    const std::int64_t first = rank * layout_.length;
    add_row(task, thread, first, std::min(of.cols, first + layout_.length), of.cols);
  }

  /// Cols [first, end) of a row; vectors of peeled rows begin at multiples of the alignment in memory.
  void add_row(std::int64_t row, std::int64_t lane, std::int64_t first, std::int64_t end, std::int64_t cols) {
    if (row >= layout_.rows) return;
    const std::int64_t shift = layout_.peeled ? row * cols % layout_.alignment : 0;
    add_vectors(
        [&](std::int64_t n, int j) -> std::optional<Element> {
          const std::int64_t col = first + lane * layout_.width + n * layout_.stride + j - shift;
          if (col < first || col >= end) return std::nullopt;
          return Element{row, col};
        },
        [&](std::int64_t n) {
          return row * layout_.cols + first + lane * layout_.width + n * layout_.stride - shift;
        });
  }

  void add(const mapping::Columns& of, std::int64_t task, int, int thread) {
    const std::int64_t tile = task / of.segments, first = task % of.segments * layout_.length;
    const std::int64_t end = std::min(of.length, first + layout_.length);
    const std::int64_t width = layout_.width, across = layout_.places / width;
    if (thread * width >= layout_.slices * layout_.places) return;
    const bool flat = layout_.columns == ColumnVectors::kFlat;
    std::int64_t shift = 0;
    if (layout_.columns == ColumnVectors::kShifted)
      shift = ((first + thread / across) * of.results + tile * of.tile) % layout_.alignment;
    if (!flat) {  // a thread beyond its tile's results has no vectors
      const std::int64_t first_row = thread % across * width - shift;
      if (first_row <= -width || first_row >= of.tile || tile * of.tile + first_row >= of.results) return;
    }
    add_vectors(
        [&](std::int64_t n, int j) -> std::optional<Element> {
          const std::int64_t place = thread * width + j;
          const std::int64_t local = flat ? place % of.tile : thread % across * width - shift + j;
          const std::int64_t lane = flat ? place / of.tile : thread / across;
          const std::int64_t row = tile * of.tile + local, col = first + lane + n * layout_.stride;
          const bool in_tile = local >= 0 && local < of.tile && row < of.results;
          // Of a shifted vector the layout says nothing of the results: those beside the tile's are others'.
          if (!in_tile && layout_.columns == ColumnVectors::kShifted && col < end) return Element{-1, -1};
          if (!in_tile || col >= end) return std::nullopt;
          return Element{row, col};
        },
        [&](std::int64_t n) {
          const std::int64_t lane = flat ? 0 : thread / across;
          const std::int64_t row = flat ? thread * width : tile * of.tile + thread % across * width - shift;
          return (first + lane + n * layout_.stride) * of.results + row;
        });
  }

  void add(const mapping::Patch& of, std::int64_t task, int, int thread) {
    const std::int64_t across = ceil_div(of.cols, std::int64_t{of.width});
    const std::int64_t first_row = task / across * of.height, first_col = task % across * of.width;
    const bool along_cols = order_ == TileOrder::kAlongCols;
    const std::int64_t line = along_cols ? of.width : of.height;
    if (thread >= layout_.stride * line) return;
    add_vectors(
        [&](std::int64_t n, int) -> std::optional<Element> {
          std::int64_t row = thread / line + n * layout_.stride, col = thread % line;
          if (!along_cols) std::swap(row, col);
          const Element element{first_row + row, first_col + col};
          const bool inside =
              row < of.height && col < of.width && element.first < of.rows && element.second < of.cols;
          // All of a patch are guarded, in runs of their own.
          return inside ? element : Element{-1, -1};
        },
        [](std::int64_t) { return 0; });
  }

  const testing::DrawnMapping& drawn_;
  Layout layout_;
  TileOrder order_;
  std::map<Element, int> found_;
  int beyond_ = 0, unaligned_ = 0;
};

TEST(Layouts, GiveEveryElementToOneThreadOnce) {
  testing::MappingDraw draw(11);
  for (int i = 0; i < 2000; ++i) {
    const testing::DrawnMapping drawn = draw.draw();
    for (const TileOrder order : {TileOrder::kAlongCols, TileOrder::kAlongRows}) {
      if (order == TileOrder::kAlongRows && !is<mapping::Patch>(drawn.mapping)) continue;
      const Enumeration all(drawn, order);
      SCOPED_TRACE(fmt::format("{}: {} in blocks of {}", i, to_text(drawn.mapping, drawn.deal), drawn.block));
      std::map<Element, int> found = all.found();
      found.erase({-1, -1});
      ASSERT_EQ(static_cast<std::int64_t>(found.size()), all.layout().rows * all.layout().cols);
      for (const auto& [element, times] : found) {
        ASSERT_EQ(times, 1) << element.first << ", " << element.second;
        ASSERT_GE(element.first, 0);
        ASSERT_LT(element.first, all.layout().rows);
        ASSERT_LT(element.second, all.layout().cols);
      }
      ASSERT_EQ(all.beyond(), 0);
      ASSERT_EQ(all.unaligned(), 0);
    }
  }
}

/// Rows that move between memory and tiles in which they begin as many elements behind a multiple of `kLead`
/// as in memory, whole or by parts of a cluster's blocks.
TEST(Layouts, GiveRowsBehindALeadToOneThreadOnce) {
  constexpr int kLead = 32, kRows = 5;
  for (const std::int64_t cols : {97, 1000, 2081, 4097})
    for (const int width : {1, 2, 4, 8})
      for (const int blocks : {1, 2, 4})
        for (const bool stores : {false, true}) {
          if (blocks > 1 && (blocks - 1) * part_cols(cols, blocks) >= cols) continue;
          constexpr int kBlock = 64;
          mapping::Elements elements{kRows * cols, cols, {width, 2}, std::nullopt};
          if (blocks > 1) elements.parts = {blocks, part_cols(cols, blocks)};
          const Layout layout = Layout(elements, kBlock).behind(kLead, stores);
          SCOPED_TRACE(
              fmt::format("{} cols, vectors of {}, {} blocks, stores {}", cols, width, blocks, stores));
          for (std::int64_t row = 0; row < kRows; ++row) {
            std::map<std::int64_t, int> found;
            for (int rank = 0; rank < blocks; ++rank) {
              const std::int64_t first = rank * layout.length, end = std::min(cols, first + layout.length);
              for (const stitchwork::Run& run : layout.runs())
                for (std::int64_t n = run.first; n < run.end; ++n)
                  for (int i = 0; i < kBlock * width; ++i) {
                    const std::int64_t col = first + i + n * layout.stride - row * cols % kLead;
                    if (col >= first && col < end) ++found[col];
                    // What is loaded from before a part is a neighbour's; nothing else goes unguarded.
                    if (!run.guarded && (col >= end || (stores && col < first))) ADD_FAILURE() << col;
                  }
            }
            EXPECT_EQ(static_cast<std::int64_t>(found.size()), cols);
            for (const auto& [col, times] : found) EXPECT_EQ(times, 1) << col;
          }
        }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
