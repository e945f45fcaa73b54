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

/// Of a file once decompressed. Derived from what protobuf, which ONNX is written in, takes at most: 2 GiB. A
/// page of gzip could ask for any amount.
constexpr std::size_t kMaxDecompressed = std::size_t{1} << 31;

}  // namespace

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw Error(path, 0, 0, "is a folder, not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(path, 0, 0, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// zlib reads compressed and plain files alike.
std::string read_decompressed(const std::string& path, std::string_view kinds) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) {
    throw Error(path, 0, 0, "no such file", fmt::format("give the path of a {} file", kinds));
  }
  if (std::filesystem::is_directory(status)) {
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

void write_file(const std::string& path, std::string_view text) { write_file(path, {text}); }

void write_file(const std::string& path, std::initializer_list<std::string_view> parts) {
  namespace fs = std::filesystem;
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  std::error_code error;
  {
    std::ofstream out(temporary, std::ios::binary);
    for (const std::string_view text : parts)
      out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.flush();
    if (!out) {
      const int reason = errno;
      fs::remove(temporary, error);
      throw Error(path, 0, 0, fmt::format("cannot be written: {}", std::strerror(reason)),
                  reason == ENOSPC ? "free space, or write to another disk"
                                   : "check that the folder exists and may be written to");
    }
  }
  fs::rename(temporary, path, error);
  if (error) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw Error(path, 0, 0, fmt::format("cannot be written: {}", error.message()));
  }
}

}  // namespace stitchwork
