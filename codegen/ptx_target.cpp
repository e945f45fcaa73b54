#include "codegen/ptx_target.h"

#include <regex>

#include "core/error.h"

namespace stitchwork {
namespace {

constexpr std::string_view kDirective = ".reqnctapercluster";

}  // namespace

int cluster_of(std::string_view source) {
  static const std::regex asked(R"(SW_CLUSTER\((\d+)\))");
  std::match_results<std::string_view::const_iterator> match;
  return std::regex_search(source.begin(), source.end(), match, asked) ? std::stoi(match[1]) : 1;
}

std::string with_cluster(std::string ptx, int blocks) {
  static const std::regex version(R"(\.version\s+[\d.]+)"), target(R"(\.target\s+sm_\d+)");
  static const std::regex threads(R"(\.maxntid\b)");
  const auto replace = [&](const std::regex& what, const std::string& by) {
    SW_CHECK(std::regex_search(ptx, what), "PTX of a kernel in clusters lacks what is to become {}", by);
    ptx = std::regex_replace(ptx, what, by, std::regex_constants::format_first_only);
  };
  replace(version, ".version 7.8");
  replace(target, ".target sm_90");
  replace(threads, fmt::format(".explicitcluster\n{} {}, 1, 1\n.maxntid", kDirective, blocks));
  return ptx;
}

bool asks_for_clusters(std::string_view ptx) { return ptx.find(kDirective) != std::string_view::npos; }

}  // namespace stitchwork
