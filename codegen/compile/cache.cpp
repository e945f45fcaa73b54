#include "codegen/compile/cache.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

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

/// A choice, not measured: kernels that were not asked for in a day are looked for once more at no cost.
constexpr auto kDay = std::chrono::hours(24);
/// A choice, not measured: a hundred thousand kernels of 20 KiB.
constexpr std::uintmax_t kDefaultMib = 2048;
// SI prefix.
constexpr std::uintmax_t kBytesPerMib = std::uintmax_t{1} << 20;
constexpr const char* kTrimmed = "trimmed";  ///< a file whose time is that of the last look at the folder

bool is_older(const fs::path& file, std::chrono::hours age) {
  std::error_code error;
  const auto at = fs::last_write_time(file, error);
  return error || fs::file_time_type::clock::now() - at > age;
}

/// So that a kernel's time says when it was last used.
void touch(const fs::path& file) {
  std::error_code error;
  if (is_older(file, kDay)) fs::last_write_time(file, fs::file_time_type::clock::now(), error);
}

std::uintmax_t wanted_bytes() {
  const char* mib = std::getenv("STITCHWORK_CACHE_MIB");
  std::uintmax_t given = kDefaultMib;
  if (mib != nullptr) std::from_chars(mib, mib + std::strlen(mib), given);
  return given * kBytesPerMib;
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
  touch(folder_ / (key + ".ptx"));
  if (auto cubin = read_entry(folder_ / (key + ".cubin"));
      cubin && cubin->first == fmt::format("{} {}", kCubinFormat, sha256_hex(cubin->second))) {
    kernel.cubin = std::move(cubin->second);
    touch(folder_ / (key + ".cubin"));
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
    if (!kernel.cubin.empty())
      write_file((folder_ / (key + ".cubin")).string(),
                 fmt::format("{} {}\n{}", kCubinFormat, sha256_hex(kernel.cubin), kernel.cubin));
    // One of several that write at once is enough.
    if (!is_older(folder_ / kTrimmed, kDay)) return;
    write_file((folder_ / kTrimmed).string(), "");
    if (const std::uintmax_t most = wanted_bytes(); most > 0) trim(most);
  } catch (const Error&) {
    return;
  }
}

void KernelCache::trim(std::uintmax_t most_bytes) const {
  struct Entry {
    fs::file_time_type used;
    fs::path file;
    std::uintmax_t bytes;
  };
  std::vector<Entry> entries;
  std::uintmax_t all = 0;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_, error)) {
    const fs::path kind = file.path().extension();
    if ((kind != ".ptx" && kind != ".cubin") || !file.is_regular_file(error)) continue;
    Entry entry{file.last_write_time(error), file.path(), file.file_size(error)};
    if (error) continue;  // another process removed it meanwhile
    all += entry.bytes;
    entries.push_back(std::move(entry));
  }
  if (all <= most_bytes) return;
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::tie(a.used, a.file) < std::tie(b.used, b.file);
  });
  for (const Entry& entry : entries) {
    if (all <= most_bytes / 5 * 4) break;
    if (fs::remove(entry.file, error)) all -= entry.bytes;
  }
}

}  // namespace stitchwork
