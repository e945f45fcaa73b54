// Counters of other tools, into the store: Nsight Compute's CSV.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/store.h"

namespace stitchwork {

struct ProfiledKernel {
  std::string name, grid, block;           ///< grid and block as "[80,1,1]"
  std::map<std::string, double> counters;  ///< by our names
  std::optional<double> time_us;
};

struct ImportedProfile {
  std::vector<ProfiledKernel> kernels;  ///< as launched
  std::string device;                   ///< as the tool names it; "" where it does not
};

/// Reads `ncu --csv` output, a row a kernel (--page raw) or a row a metric (the default page), with or
/// without the lines of the program before it. Throws Error with file and line where there is no such table,
/// or a number is none.
ImportedProfile parse_ncu_csv(const std::string& text, const std::string& file);

struct ImportOptions {
  std::string experiment, workload, variant = "imported";
  std::string device;  ///< ours, that it was measured on
};

/// Records the profile as one ok attempt with method "imported". The same file for the same trial is not
/// recorded twice: returns whether it was new.
bool import_profile(Store& store, const ImportedProfile& profile, const ImportOptions& options,
                    const std::string& sha256);

}  // namespace stitchwork
