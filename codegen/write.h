// Files of a compiled plan, for reading and for running elsewhere.
#pragma once

#include <string>
#include <vector>

#include "codegen/executable.h"

namespace stitchwork {

/// Writes `<id>_<name>.cu` (readable source), `<id>_<name>.ptx`, its machine code, if compiled, as
/// `<id>_<name>.cubin`, the bytes of the kernel's table, if it has one, as `<id>_<name>.table`, and
/// `launch.json` (schema "stitchwork.launch/1": compiler, and per kernel entry, arguments, grid, block,
/// shared memory, registers) into `folder`, made if absent. Returns the names of the files. Throws Error
/// naming what cannot be written.
std::vector<std::string> write_kernels(const Graph& graph, const Executable& executable,
                                       const std::string& folder);

}  // namespace stitchwork
