#include "core/base/file.h"

#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/memory.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;

/// Of a file once decompressed. Derived from what protobuf, which ONNX is written in, takes at most: 2 GiB. A
/// page of gzip could ask for any amount.
constexpr std::size_t kMaxDecompressed = std::size_t{1} << 31;

/// The file that `path` leads to, which need not be there: a link stays one.
fs::path written_through(const fs::path& path) {
  // Linux: behind 40 links opening says ELOOP.
  constexpr int kMostLinks = 40;
  std::error_code error;
  if (const fs::path found = fs::canonical(path, error); !error) return found;
  fs::path at = path;
  for (int links = 0; links < kMostLinks && fs::is_symlink(at, error); ++links)
    at = at.parent_path() / fs::read_symlink(at, error);  // the link's words alone where they are absolute
  return at;
}

void require_file_name(const std::string& path, const fs::file_status& status) {
  if (path == "-")  // stdin, where a model is asked for
    throw Error(path, 0, 0, "names no file", "standard output is /dev/stdout; a file of that name is ./-");
  if (fs::is_directory(status)) throw Error(path, 0, 0, "is a folder", "name a file in it");
}

Error not_written(const std::string& path, int reason) {
  return Error(path, 0, 0, fmt::format("cannot be written: {}", std::strerror(reason)),
               reason == ENOSPC ? "free space, or write to another disk"
                                : "check that the folder exists and may be written to");
}

/// `name`: what an error calls it.
void write_parts(const fs::path& path, std::initializer_list<std::string_view> parts,
                 const std::string& name) {
  std::ofstream out(path, std::ios::binary);
  for (const std::string_view text : parts) out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.flush();
  if (!out) throw not_written(name, errno);
}

}  // namespace

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw Error(path, 0, 0, "is a folder, not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(path, 0, 0, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// zlib reads compressed and plain files alike.
std::string read_decompressed(const std::string& path, std::string_view kinds) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status)) {
    throw Error(path, 0, 0, "no such file", fmt::format("give the path of a {} file", kinds));
  }
  if (fs::is_directory(status)) {
    throw Error(path, 0, 0, "this is a directory", fmt::format("give the path of a {} file", kinds));
  }
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw Error(path, 0, 0, "cannot be opened", "check its permissions");
  std::string text;
  constexpr unsigned kChunk = 1 << 20;
  for (;;) {
    const std::size_t size = text.size();
    if (size > kMaxDecompressed)
      throw Error(path, 0, 0, fmt::format("holds more than {}", human_bytes(kMaxDecompressed)),
                  fmt::format("a {} file is smaller: is it damaged, or something else?", kinds));
    if (size + kChunk > text.capacity())  // it grows by a copy of twice the size
      require_memory(2.0 * static_cast<double>(text.capacity()), path,
                     "free some memory, or read a smaller file");
    text.resize(size + kChunk);
    const int count = gzread(file.get(), text.data() + size, kChunk);
    text.resize(size + static_cast<std::size_t>(count > 0 ? count : 0));
    if (count < static_cast<int>(kChunk)) break;
  }
  int code = Z_OK;
  const char* reason = gzerror(file.get(), &code);
  if (code != Z_OK) {
    throw Error(
        path, 0, 0,
        code == Z_ERRNO ? std::string("cannot be read") : fmt::format("damaged gzip file ({})", reason),
        "copy or export it again");
  }
  return text;
}

void require_writable(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  require_file_name(path, status);
  const bool itself = fs::exists(status) && !fs::is_regular_file(status);
  const fs::path asked =
      itself ? fs::path(path) : written_through(path).parent_path() / ".";  // of folders alone
  if (::access(asked.c_str(), W_OK) != 0) throw not_written(path, errno);
}

void write_file(const std::string& path, std::string_view text) { write_file(path, {text}); }

void write_file(const std::string& path, std::initializer_list<std::string_view> parts) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  require_file_name(path, status);
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_parts(path, parts, path);
  const fs::path target = written_through(path);
  if (fs::is_symlink(target, error)) return write_parts(target, parts, path);  // a circle: says so
  const fs::path temporary = fmt::format("{}.{}.tmp", target.string(), ::getpid());
  try {
    write_parts(temporary, parts, path);
  } catch (const Error&) {
    fs::remove(temporary, error);
    throw;
  }
  fs::rename(temporary, target, error);
  if (error) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw Error(path, 0, 0, fmt::format("cannot be written: {}", error.message()));
  }
}

}  // namespace stitchwork
