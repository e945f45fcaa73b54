// Which arrays lie beside which: cells of grids, so that blocks of arrays are matrices (Astra, section 3.2).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork::astra {

/// An array that may be pinned: the op's, or a copy of the immediate that the op is, of which there may be
/// several and which equal ones share.
struct Pinnable {
  NodeId op = kNoNode;
  std::int64_t rows = 0, cols = 0;
  bool immediate = false;
};

/// A cell of a grid: rows of cells are of one height, columns of one width.
struct GridCell {
  int row = 0, col = 0;
  auto operator<=>(const GridCell&) const = default;
};

/// Sets of arrays whose cells are known against each other, which grow pin by pin and can go back. Arrays are
/// numbered as `arrays` lists them.
class Pins {
 public:
  explicit Pins(const std::vector<Pinnable>& arrays);

  /// Puts b into the cell behind a's: below it (dimension 0) or right of it (1). False, and nothing is
  /// changed, where b lies elsewhere already, another array is there, or heights of a row or widths of a
  /// column differ.
  bool pin(int a, int b, int dimension);

  std::size_t mark() const { return log_.size(); }
  /// Takes back all pins behind the mark.
  void undo(std::size_t mark);

  /// Arrays of the set that holds `array`, itself included.
  const std::vector<int>& together(int array) const { return grids_[of(array).grid].arrays; }
  std::size_t grid_of(int array) const { return of(array).grid; }
  GridCell cell_of(int array) const { return of(array).cell; }

 private:
  struct Place {
    std::size_t grid = 0;
    GridCell cell;
  };
  struct Grid {
    std::vector<int> arrays;
    std::map<GridCell, int> cells;
    std::map<int, std::int64_t> heights, widths;  ///< by row, by column
  };
  struct Move {
    std::size_t from = 0, into = 0;
    GridCell by;
    std::vector<GridCell> cells;  ///< new ones of `into`
    std::vector<int> rows, cols;  ///< likewise
  };
  const Place& of(int array) const { return places_[static_cast<std::size_t>(array)]; }
  bool fits(const Grid& from, const Grid& into, GridCell by) const;

  const std::vector<Pinnable>* arrays_;
  std::vector<Place> places_;
  std::vector<Grid> grids_;
  std::vector<Move> log_;
};

}  // namespace stitchwork::astra
