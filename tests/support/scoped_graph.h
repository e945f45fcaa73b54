// Random graphs whose ops say that they are parts of library functions, so that planner `eager` has to find
// out which of them one kernel can compute.
#pragma once

#include <random>
#include <sstream>
#include <string>

namespace stitchwork::testing {

/// `hlo` with about three of four ops of the entry computation in one of three scopes of JAX's.
inline std::string with_scopes(const std::string& hlo, std::uint32_t seed) {
  constexpr const char* kScopes[] = {"jvp(jit(softmax))", "transpose(jvp(jit(softmax)))", "jit(gelu)"};
  std::mt19937 random(seed);
  std::istringstream lines(hlo);
  std::string result, scope = kScopes[0];
  bool entry = false;
  for (std::string line; std::getline(lines, line);) {
    entry = entry || line.starts_with("ENTRY");
    // Ops beside each other are mostly of one function.
    if (random() % 4 == 0) scope = kScopes[random() % std::size(kScopes)];
    const bool op = entry && line.find(" = ") != std::string::npos && !line.ends_with("{");
    if (op && random() % 4 != 0) line += ", metadata={op_name=\"jit(f)/jit(main)/" + scope + "/op\"}";
    result += line + "\n";
  }
  return result;
}

}  // namespace stitchwork::testing
