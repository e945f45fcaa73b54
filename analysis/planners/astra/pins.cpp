#include "analysis/planners/astra/pins.h"

#include <algorithm>

#include "core/base/at.h"

namespace stitchwork::astra {
namespace {

GridCell moved(GridCell cell, GridCell by) { return {cell.row + by.row, cell.col + by.col}; }

}  // namespace

Pins::Pins(const std::vector<Pinnable>& arrays) : arrays_(&arrays) {
  places_.resize(arrays.size());
  grids_.resize(arrays.size());
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    places_[a].grid = a;
    grids_[a] = {
        {static_cast<int>(a)}, {{{}, static_cast<int>(a)}}, {{0, arrays[a].rows}}, {{0, arrays[a].cols}}};
  }
}

bool Pins::fits(const Grid& from, const Grid& into, GridCell by) const {
  for (const auto& [cell, array] : from.cells) {
    const auto taken = into.cells.find(moved(cell, by));
    if (taken == into.cells.end()) continue;
    const Pinnable &here = (*arrays_)[at(taken->second)], &there = (*arrays_)[at(array)];
    if (!here.immediate || here.op != there.op) return false;
  }
  const auto agree = [](const std::map<int, std::int64_t>& a, const std::map<int, std::int64_t>& b,
                        int offset) {
    return std::all_of(a.begin(), a.end(), [&](const auto& line) {
      const auto other = b.find(line.first + offset);
      return other == b.end() || other->second == line.second;
    });
  };
  return agree(from.heights, into.heights, by.row) && agree(from.widths, into.widths, by.col);
}

bool Pins::pin(int a, int b, int dimension) {
  const Place first = of(a), second = of(b);
  const GridCell wanted = moved(first.cell, dimension == 0 ? GridCell{1, 0} : GridCell{0, 1});
  if (first.grid == second.grid) return second.cell == wanted;
  GridCell by{wanted.row - second.cell.row, wanted.col - second.cell.col};
  std::size_t from = second.grid, into = first.grid;
  if (grids_[from].arrays.size() > grids_[into].arrays.size()) {
    std::swap(from, into);
    by = {-by.row, -by.col};
  }
  Grid &source = grids_[from], &target = grids_[into];
  if (!fits(source, target, by)) return false;
  Move move{from, into, by, {}, {}, {}};
  for (const auto& [cell, array] : source.cells)
    if (target.cells.try_emplace(moved(cell, by), array).second) move.cells.push_back(moved(cell, by));
  for (const auto& [row, height] : source.heights)
    if (target.heights.try_emplace(row + by.row, height).second) move.rows.push_back(row + by.row);
  for (const auto& [col, width] : source.widths)
    if (target.widths.try_emplace(col + by.col, width).second) move.cols.push_back(col + by.col);
  for (const int array : source.arrays) {
    places_[at(array)] = {into, moved(of(array).cell, by)};
    target.arrays.push_back(array);
  }
  log_.push_back(std::move(move));
  return true;
}

void Pins::undo(std::size_t mark) {
  while (log_.size() > mark) {
    const Move& move = log_.back();
    Grid& target = grids_[move.into];
    for (const GridCell& cell : move.cells) target.cells.erase(cell);
    for (const int row : move.rows) target.heights.erase(row);
    for (const int col : move.cols) target.widths.erase(col);
    for (const int array : grids_[move.from].arrays) {
      places_[at(array)] = {move.from, moved(of(array).cell, {-move.by.row, -move.by.col})};
      target.arrays.pop_back();
    }
    log_.pop_back();
  }
}

}  // namespace stitchwork::astra
