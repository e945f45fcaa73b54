#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {

Graph read_graph(const std::string& path) {
  const std::string text = read_decompressed(path, ".hlo, .txt or .gz");
  Graph graph = parse_hlo(text, path);
  graph.source_sha256 = sha256_hex(text);
  return graph;
}

}  // namespace stitchwork
