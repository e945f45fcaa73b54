// The golden tensors of datasets/golden/NAME: in<parameter number>.npy and what JAX makes of them,
// out<index>.npy.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/hlo/npy.h"

namespace stitchwork::testing {

inline const std::filesystem::path kDatasets = STITCHWORK_SOURCE_DIR "/datasets";

/// The datasets that have golden tensors, sorted.
inline std::vector<std::string> golden_datasets() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kDatasets / "golden"))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// <prefix>0.npy, <prefix>1.npy, ... of the dataset; `prefix` is "in" or "out".
inline std::vector<Literal> golden_tensors(const std::string& dataset, const std::string& prefix) {
  std::vector<Literal> result;
  for (int i = 0;; ++i) {
    const auto file = kDatasets / "golden" / dataset / (prefix + std::to_string(i) + ".npy");
    if (!std::filesystem::exists(file)) return result;
    result.push_back(read_npy(file.string()));
  }
}

}  // namespace stitchwork::testing
