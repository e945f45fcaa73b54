// Several kernels as one program of a compiler: NVRTC's start takes longer than most kernels.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stitchwork {

/// One source of them all, each of which declares one kernel, `entry`: it gets a namespace and another name.
std::string joined(const std::vector<std::string_view>& sources, std::string_view entry);

/// The name that the entry of a kernel has among several.
std::string entry_name(std::size_t kernel);

/// From the PTX of the joined source that of each kernel, to the byte as it is when it is compiled alone;
/// nullopt where the text has what this function does not know to be one kernel's (a variable in global
/// memory, a function that is not inlined).
std::vector<std::optional<std::string>> separated(std::string_view ptx,
                                                  const std::vector<std::string_view>& sources,
                                                  std::string_view entry);

/// Kernels' PTX as one text, each of whose entries has a name of its own: the n-th that was added
/// entry_name(n).
class PtxTogether {
 public:
  /// All entries are called `entry`.
  explicit PtxTogether(std::string_view entry) : entry_(entry) {}
  /// False, and nothing is added, where the kernel has more than its entry and the shared memory of generated
  /// kernels, or is of another version or target, or its shared memory of another alignment, than those
  /// before.
  bool add(std::string_view ptx);
  std::string text() const { return head_ + shared_ + entries_; }

 private:
  std::string entry_, head_, shared_, entries_;
  std::size_t kernels_ = 0;
};

}  // namespace stitchwork
