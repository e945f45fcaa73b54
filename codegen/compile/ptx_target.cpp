#include "codegen/compile/ptx_target.h"

#include <algorithm>
#include <array>
#include <regex>

#include "core/base/error.h"

namespace stitchwork {
namespace {

constexpr std::string_view kClusterDirective = ".reqnctapercluster";

/// What the prelude's inline assembly may ask for beyond what every compiler writes, by the first PTX version
/// and architecture that have it (PTX ISA).
struct Feature {
  std::string_view text;  ///< in PTX that uses it
  int major, minor, architecture;
};
// PTX ISA, notes of each instruction.
constexpr std::array kFeatures{
    Feature{"cp.async.", 7, 0, 80},
    Feature{"cp.async.bulk.", 8, 0, 90},
    Feature{kClusterDirective, 7, 8, 90},
};

/// What all features of the PTX are in.
Feature needed(std::string_view ptx) {
  Feature most{"", 0, 0, 0};
  for (const Feature& feature : kFeatures) {
    if (ptx.find(feature.text) == std::string_view::npos) continue;
    if (std::pair(feature.major, feature.minor) > std::pair(most.major, most.minor)) {
      most.major = feature.major;
      most.minor = feature.minor;
    }
    most.architecture = std::max(most.architecture, feature.architecture);
  }
  return most;
}

}  // namespace

int cluster_of(std::string_view source) {
  static const std::regex asked(R"(SW_CLUSTER\((\d+)\))");
  std::match_results<std::string_view::const_iterator> match;
  return std::regex_search(source.begin(), source.end(), match, asked) ? std::stoi(match[1]) : 1;
}

std::string with_target(std::string ptx, std::string_view source) {
  static const std::regex version(R"(\.version\s+[\d.]+)"), target(R"(\.target\s+sm_\d+)");
  static const std::regex threads(R"(\.maxntid\b)");
  const auto replace = [&](const std::regex& what, const std::string& by) {
    SW_CHECK(std::regex_search(ptx, what), "PTX lacks what is to become {}", by);
    ptx = std::regex_replace(ptx, what, by, std::regex_constants::format_first_only);
  };
  if (const int blocks = cluster_of(source); blocks > 1)
    replace(threads, fmt::format(".explicitcluster\n{} {}, 1, 1\n.maxntid", kClusterDirective, blocks));
  const Feature needs = needed(ptx);
  if (needs.architecture == 0) return ptx;
  replace(version, fmt::format(".version {}.{}", needs.major, needs.minor));
  replace(target, fmt::format(".target sm_{}", needs.architecture));
  return ptx;
}

int least_architecture(std::string_view ptx) { return needed(ptx).architecture; }

}  // namespace stitchwork
