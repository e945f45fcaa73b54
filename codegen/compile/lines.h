// Which line of a kernel's source a line of its PTX is of.
//
// A source that names its own lines (#line, as with_lines writes it) is compiled with line information; the
// text decides, so that the cache's key says all. A kernel that is executed is compiled without: the names
// and comments of its readable text would keep equal kernels apart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/executable.h"

namespace stitchwork {

/// Without their ends.
std::vector<std::string_view> lines_of(std::string_view text);

/// The prelude (cuda_prelude) and `cuda`, whose lines count from its own beginning.
std::string with_lines(std::string_view cuda, bool fast_math = false);
/// Whether the compilers are to write line information.
bool tells_lines(std::string_view source);

/// PTX of one kernel that says which lines of to_cuda's readable text its instructions are of: to be read,
/// under the name the kernel has there. Compiled and cached as compile() does it.
std::string compile_with_lines(const Graph& graph, const Device& device, const KernelPlan& kernel,
                               const CompileOptions& options = {});

/// By line of the PTX, from 0: the line of the source its instruction is of, from 1; 0 where it is of none
/// (declarations, labels, PTX without line information). What the prelude's functions do where they are
/// inlined is of the line that calls them.
std::vector<int> source_lines(std::string_view ptx);

}  // namespace stitchwork
