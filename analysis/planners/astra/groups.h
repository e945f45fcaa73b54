// Fusion groups: maximal blocks of ladders that one product makes, and the pieces they may be made in (Astra,
// section 4.4.1).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/planners/astra/ladders.h"
#include "occupancy_model/device.h"

namespace stitchwork::astra {

/// Along the axes of a group: M of lefts, N of rights, K of rungs.
enum Axis : std::uint8_t { kM, kN, kK };

/// M x N ladders of K rungs each: member(i, j) has the lefts of list i and the rights of list j.
struct FusionGroup {
  std::array<int, 3> extent = {1, 1, 1};
  std::vector<int> ladders;                 ///< [i * N + j]: place in the list of ladders
  std::vector<std::vector<Operand>> left;   ///< [i][q]
  std::vector<std::vector<Operand>> right;  ///< [j][q]
  std::vector<Matrix> result;               ///< [i * N + j]
  int m() const { return extent[kM]; }
  int n() const { return extent[kN]; }
  int k() const { return extent[kK]; }
  int ladder(int i, int j) const { return ladders[static_cast<std::size_t>(i * n() + j)]; }
  const Matrix& to(int i, int j) const { return result[static_cast<std::size_t>(i * n() + j)]; }
  int products() const { return m() * n() * k(); }
};

/// Whether ladder a and ladder b may be parts of one product: astra.provenance, astra.dtype, astra.layout.
Verdict may_share(const Computation& computation, const Products& products,
                  const std::vector<Ladder>& ladders, const std::vector<int>& provenance, int a, int b);

/// Among ladders of one provenance, type and sides: while there are some, the complete block of lefts and
/// rights with most ladders, among lefts that go with the same rights, or rights that go with the same lefts.
/// All blocks, ladders alone as well; by their first ladder.
std::vector<FusionGroup> groups(const Computation& computation, const Products& products,
                                const std::vector<Ladder>& ladders, const std::vector<int>& provenance,
                                Recorder& recorder);

/// A group without what lies at one place of an axis, which has two at least: its ladders (kM, kN), or a rung
/// of each of its ladders (kK). `ladders` stay: a ladder that gave up a rung adds that product by itself.
FusionGroup without(const FusionGroup& group, Axis axis, int place);

/// Pieces of a group, each cm lefts by cn rights by ck rungs (the last along an axis may have fewer).
struct Chunk {
  std::array<int, 3> size = {1, 1, 1};
  bool operator==(const Chunk&) const = default;
};
/// Calls that make the group so. Those behind the first along K add to what is there.
int calls(const FusionGroup& group, const Chunk& chunk);

struct Chunks {
  std::vector<Chunk> list;  ///< fewest calls first; (1, 1, 1) always
  int out_of_range = 0;     ///< left out because a smaller one fills the device (astra.range)
  int left_out = 0;         ///< beyond the most that are tried
};
/// Of each axis 1, 2, 4, ... and its extent.
Chunks chunks(const FusionGroup& group, const Device& device);

}  // namespace stitchwork::astra
