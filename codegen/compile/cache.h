// Compiled kernels on disk, keyed by everything that determines the PTX.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "codegen/compile/compiler.h"
#include "codegen/compile/ptxas.h"

namespace stitchwork {

struct CachedKernel {
  std::string ptx;
  std::string cubin;               ///< machine code; empty: nobody asked for it
  std::optional<RegisterUse> use;  ///< empty: ptxas was not there
};

class KernelCache {
 public:
  /// "" is ${XDG_CACHE_HOME:-~/.cache}/stitchwork/kernels, "none" caches nothing.
  explicit KernelCache(const std::string& folder);

  /// Key of a kernel: SHA-256 of this program's way to compile (compile_version), the compiler, architecture
  /// and source.
  static std::string key(const std::string& source, const PtxCompiler& compiler, int architecture);
  /// Nothing where the entry is absent, incomplete or damaged: it is then compiled again.
  std::optional<CachedKernel> read(const std::string& key) const;
  /// Written beside and renamed, so that no reader sees half of it. An unwritable cache is no error.
  /// Once a day it also trims the folder to ${STITCHWORK_CACHE_MIB:-2048} MiB (0: any size).
  void write(const std::string& key, const CachedKernel& kernel) const;
  /// Removes those used longest ago until the folder's kernels have four fifths of `most_bytes`, if they have
  /// more than that.
  void trim(std::uintmax_t most_bytes) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;  ///< empty: no cache
};

}  // namespace stitchwork
