// What a library call does to its product or convolution.
#pragma once

#include "runtime/cuda/driver.h"

namespace stitchwork::cuda {

/// Of analysis/plan/epilogue.h; 0: nothing is added.
struct Added {
  Pointer bias = 0, addend = 0;
  bool relu = false;
  explicit operator bool() const { return bias != 0 || addend != 0 || relu; }
};

}  // namespace stitchwork::cuda
