// What a model's time goes into before any fusion (Figure 1 of the AStitch paper), and its shapes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "occupancy_model/device.h"

namespace stitchwork {

/// Kernels and modelled time of a plan without fusion, every op a kernel, as Figure 1 counts TensorFlow's;
/// loops as often as they run (once where that is unknown), of branches the costliest.
struct Shares {
  std::int64_t memory_kernels = 0, library_calls = 0;
  double memory_us = 0, library_us = 0;  ///< copies and memsets are memory-intensive
  double kernel_share() const;           ///< of memory-intensive kernels; 0 of an empty model
  double time_share() const;
};
Shares shares(const Graph& graph, const Device& device);

/// A row reduction that a block a row serves badly on this device (section 2.3.2).
struct IrregularReduction {
  std::string op;
  std::int64_t rows = 0, cols = 0;
  int block = 0;     ///< threads of such a block
  std::string what;  ///< "small blocks" (Figure 6-a) or "few blocks" (Figure 6-b)
  std::string why;   ///< with the numbers
};
/// Of the entry computation and what its loops and branches run.
std::vector<IrregularReduction> irregular_reductions(const Graph& graph, const Device& device);

/// Generated ops by the power of two that their number of elements reaches: 2^k <= elements < 2^(k+1); -1:
/// none.
std::map<int, int> size_histogram(const Graph& graph);

}  // namespace stitchwork
