#include <zlib.h>

#include <filesystem>
#include <memory>

#include "core/error.h"
#include "core/hlo_text.h"

namespace stitchwork {
namespace {

/// The file's text; zlib reads compressed and plain files alike.
std::string read_text(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) {
    throw Error(path, 0, 0, "no such file", "give the path of a .hlo, .txt or .gz file");
  }
  if (std::filesystem::is_directory(status)) {
    throw Error(path, 0, 0, "this is a directory", "give the path of a .hlo, .txt or .gz file");
  }
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw Error(path, 0, 0, "cannot be opened", "check its permissions");
  std::string text;
  constexpr unsigned kChunk = 1 << 20;
  for (;;) {
    const std::size_t size = text.size();
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

}  // namespace

Graph read_graph(const std::string& path) {
  const std::string text = read_text(path);
  Graph graph = parse_hlo(text, path);
  graph.source_sha256 = sha256_hex(text);
  return graph;
}

}  // namespace stitchwork
