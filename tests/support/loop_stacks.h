// Arrays of which a loop's trips write a slice each.
#pragma once

#include <algorithm>
#include <string_view>

namespace stitchwork::testing {

inline constexpr const char* kVector = "f32[9]";
inline constexpr const char* kMatrix = "f32[4,3]";

/// An array of a loop's state and the slice of it that a trip writes.
struct Stack {
  const char *array, *slice;
  const char* from;     ///< of which the slice is another shape
  int along;            ///< the dimension in which the trips' slices lie
  const char* stretch;  ///< dimensions of `from` in the slice, where that has more elements
};
inline constexpr Stack kStacks[] = {{"f32[4,9]", "f32[1,9]", kVector, 0, ""},
                                    {"f32[3,4,3]", "f32[1,4,3]", kMatrix, 0, ""},
                                    {"f32[9,5]", "f32[9,1]", kVector, 1, ""},
                                    {"f32[6,9]", "f32[2,9]", kVector, 0, "1"},
                                    {"f32[4,8,3]", "f32[4,3,3]", kMatrix, 1, "0,2"}};

/// Null of another array.
inline const Stack* stack_of(std::string_view array) {
  const auto found = std::ranges::find_if(kStacks, [&](const Stack& stack) { return array == stack.array; });
  return found == std::end(kStacks) ? nullptr : found;
}

}  // namespace stitchwork::testing
