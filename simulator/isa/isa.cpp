#include "simulator/isa/isa.h"

#include <unordered_map>

#include "core/base/error.h"

namespace stitchwork::sim {

std::vector<std::string> expand_spelling(std::string_view pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) return {std::string(pattern)};
  const std::size_t close = pattern.find('}', open);
  std::vector<std::string> result;
  for (std::size_t at = open + 1; at <= close;) {
    const std::size_t end = std::min(pattern.find(',', at), close);
    for (const std::string& rest : expand_spelling(pattern.substr(close + 1))) {
      result.push_back(std::string(pattern.substr(0, open)) + std::string(pattern.substr(at, end - at)) +
                       rest);
    }
    at = end + 1;
  }
  return result;
}

std::span<const IsaRow> isa_rows() {
  static const std::span<const IsaRow> rows = [] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
      return isa_rows_avx512();
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
      return isa_rows_avx2();
    }
    return isa_rows_base();
  }();
  return rows;
}

int find_row(std::string_view spelling) {
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  static const auto index = [] {
    std::unordered_map<std::string, int, Hash, std::equal_to<>> map;
    const auto rows = isa_rows();
    for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
      for (std::string& form : expand_spelling(rows[r].spelling)) {
        const bool fresh = map.emplace(std::move(form), r).second;
        SW_CHECK(fresh, "two rows spell {}", rows[r].spelling);
      }
    }
    return map;
  }();
  const auto it = index.find(spelling);
  return it == index.end() ? -1 : it->second;
}

}  // namespace stitchwork::sim
