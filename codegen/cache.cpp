#include "codegen/cache.h"

#include <cstdlib>
#include <sstream>

#include "core/error.h"
#include "core/file.h"
#include "core/hlo_text.h"

namespace stitchwork {
namespace fs = std::filesystem;
namespace {

/// First line of an entry: format, SHA-256 of the PTX, registers, spill and shared bytes ("- - -": unknown).
constexpr std::string_view kFormat = "stitchwork.ptx/1";

fs::path default_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return fs::path(cache) / "stitchwork" / "kernels";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".cache" / "stitchwork" / "kernels";
  return {};
}

}  // namespace

KernelCache::KernelCache(const std::string& folder) {
  if (folder == "none") return;
  folder_ = folder.empty() ? default_folder() : fs::path(folder);
}

std::string KernelCache::key(const std::string& source, const PtxCompiler& compiler, int architecture) {
  return sha256_hex(fmt::format("2\n{}\n{}\n{}", compiler.id, architecture, source));
}

std::optional<CachedKernel> KernelCache::read(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const fs::path file = folder_ / (key + ".ptx");
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  std::string text;
  try {
    text = read_file(file.string());
  } catch (const Error&) {
    return std::nullopt;
  }
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream header(text.substr(0, end));
  std::string format, hash, registers, spills, shared;
  header >> format >> hash >> registers >> spills >> shared;
  CachedKernel kernel;
  kernel.ptx = text.substr(end + 1);
  if (format != kFormat || hash != sha256_hex(kernel.ptx) || shared.empty()) return std::nullopt;
  if (registers != "-") {
    RegisterUse use;
    use.registers = std::atoi(registers.c_str());
    use.spill_bytes = std::atoll(spills.c_str());
    use.shared_bytes = std::atoll(shared.c_str());
    kernel.use = use;
  }
  return kernel;
}

void KernelCache::write(const std::string& key, const CachedKernel& kernel) const {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return;
  const std::string use = kernel.use ? fmt::format("{} {} {}", kernel.use->registers, kernel.use->spill_bytes,
                                                   kernel.use->shared_bytes)
                                     : std::string("- - -");
  try {
    write_file((folder_ / (key + ".ptx")).string(),
               fmt::format("{} {} {}\n{}", kFormat, sha256_hex(kernel.ptx), use, kernel.ptx));
  } catch (const Error&) {
    return;
  }
}

}  // namespace stitchwork
