// "Did you mean": names near a misspelt one.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace stitchwork {

/// Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, or "" if none is near (more than a third of its letters differ).
std::string_view closest(std::string_view word, const std::vector<std::string_view>& candidates);

/// Up to `count` candidates, nearest first, ties by name.
std::vector<std::string_view> nearest(std::string_view word, const std::vector<std::string_view>& candidates,
                                      std::size_t count);

}  // namespace stitchwork
