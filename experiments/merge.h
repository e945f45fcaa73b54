// Joins stores: the shards of an experiment, or what another machine has measured.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/store.h"

namespace stitchwork {

struct Merged {
  std::int64_t attempts = 0;  ///< added
  std::int64_t known = 0;     ///< left out: they are there already
};

/// Adds the attempts of the store at `other`, with all they hold, to `store`, in one transaction. `other` is
/// not changed. Throws Error naming it where it is no store of this version.
Merged merge_store(Store& store, const std::string& other);

}  // namespace stitchwork
