// Several kernels as one program of a compiler: NVRTC's start takes longer than most kernels.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stitchwork {

/// One source of them all, each of which declares one kernel, `entry`: it gets a namespace and another name.
std::string joined(const std::vector<std::string_view>& sources, std::string_view entry);

/// From the PTX of the joined source that of each kernel, to the byte as it is when it is compiled alone;
/// nullopt where the text has what this function does not know to be one kernel's (a variable in global
/// memory, a function that is not inlined).
std::vector<std::optional<std::string>> separated(std::string_view ptx,
                                                  const std::vector<std::string_view>& sources,
                                                  std::string_view entry);

}  // namespace stitchwork
