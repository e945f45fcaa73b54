#include "codegen/compile/cache.h"

#include <cstdlib>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/version.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace fs = std::filesystem;
namespace {

/// First line of an entry: format, SHA-256 of the PTX, registers, spill and shared bytes ("- - -": unknown).
constexpr std::string_view kFormat = "stitchwork.ptx/1";
/// Of an entry's machine code, in a file beside it: format and SHA-256.
constexpr std::string_view kCubinFormat = "stitchwork.cubin/1";

/// First line and the rest of a file, nothing where it is absent.
std::optional<std::pair<std::string, std::string>> read_entry(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  try {
    std::string text = read_file(file.string());
    const std::size_t end = text.find('\n');
    if (end == std::string::npos) return std::nullopt;
    return std::pair{text.substr(0, end), text.substr(end + 1)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

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
  return sha256_hex(fmt::format("{}\n{}\n{}\n{}", compile_version(), compiler.id, architecture, source));
}

std::optional<CachedKernel> KernelCache::read(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  auto entry = read_entry(folder_ / (key + ".ptx"));
  if (!entry) return std::nullopt;
  std::istringstream header(entry->first);
  std::string format, hash, registers, spills, shared;
  header >> format >> hash >> registers >> spills >> shared;
  CachedKernel kernel;
  kernel.ptx = std::move(entry->second);
  if (format != kFormat || hash != sha256_hex(kernel.ptx) || shared.empty()) return std::nullopt;
  if (registers != "-") {
    RegisterUse use;
    use.registers = std::atoi(registers.c_str());
    use.spill_bytes = std::atoll(spills.c_str());
    use.shared_bytes = std::atoll(shared.c_str());
    kernel.use = use;
  }
  if (auto cubin = read_entry(folder_ / (key + ".cubin"));
      cubin && cubin->first == fmt::format("{} {}", kCubinFormat, sha256_hex(cubin->second)))
    kernel.cubin = std::move(cubin->second);
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
    if (!kernel.cubin.empty())
      write_file((folder_ / (key + ".cubin")).string(),
                 fmt::format("{} {}\n{}", kCubinFormat, sha256_hex(kernel.cubin), kernel.cubin));
  } catch (const Error&) {
    return;
  }
}

}  // namespace stitchwork
