#include "gui/page/page.h"

#include <zlib.h>

#include <filesystem>

#include "core/base/data.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/html.h"
#include "gui/page/page_data.h"

namespace stitchwork::gui {
namespace {

namespace fs = std::filesystem;

/// Our own files, in the order in which they run.
constexpr const char* kScripts[] = {"model.js", "layout.js", "colours.js", "graph.js",
                                    "table.js", "why.js",    "source.js",  "charts.js",
                                    "diff.js",  "search.js", "address.js", "app.js"};

std::string asset(const char* file) {
  const fs::path path = data_folder("page") / file;
  if (std::error_code ignored; !fs::exists(path, ignored))
    throw Error(path.string(), 0, 0, "a page is made with it, and it is not there",
                std::string_view(file).starts_with("d3") ? "install d3 (Debian: node-d3) and build again"
                                                         : "install the package stitchwork again");
  return read_file(path.string());
}

/// A gzip file.
std::string compressed(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 16;  // added to the window's bits: a header of gzip (zlib.h)
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, MAX_MEM_LEVEL,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error("not enough memory to compress the page", "");
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw Error("the page is too large to compress", "view fewer planners at once");
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t j) {
      return j < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[j])) : 0U;
    };
    const std::uint32_t three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (std::size_t d = 0; d < 4; ++d)
      text += i + d > bytes.size() ? '=' : kDigits[three >> (18 - 6 * d) & 63];
  }
  return text;
}

void replace(std::string& text, std::string_view mark, const std::string& by) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos)
    throw Error("page.html", 0, 0, fmt::format("has no {}", mark), "install the package stitchwork again");
  text.replace(at, mark.size(), by);
}

}  // namespace

std::string plans_page(const Model& model, const std::vector<PagePlan>& plans,
                       const std::optional<OpRange>& range) {
  std::string script;
  for (const char* file : kScripts) script += asset(file);
  std::string page = asset("page.html");
  const std::string document = page_document(model, plans, range)
                                   .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  // What is large comes last, so that no mark is looked for in it.
  replace(page, "%title%",
          html::escaped(fmt::format("{} on {}", model.graph.source, device(plans.at(0).plan->device).name)));
  replace(page, "%style%", asset("page.css"));
  replace(page, "%licence%", asset("d3.licence"));
  replace(page, "%script%", script);
  replace(page, "%d3%", asset("d3.min.js"));
  replace(page, "%data%", base64(compressed(document)));
  return page;
}

}  // namespace stitchwork::gui
