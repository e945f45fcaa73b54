// Reductions across the rows of a row_pack group: accumulators that outlive the tasks of a block.
#pragma once

#include "codegen/print/print_values.h"

namespace stitchwork {

/// Declares the accumulators of the loop's reductions across rows, neutral, and names them in `places`.
void declare_across(const TaskLoop& loop, PlaceNames& places, Namer& names, const Computation& computation,
                    Writer& out);

/// Behind the tasks: what the rows of a task have is combined column by column, in the order of the rows,
/// through the workspace, which must not be in use; the partials of the loop's `taker` (its block's number,
/// or that of its cluster, whose blocks have a part of the columns each) are written.
void flush_across(const Schedule& kernel, const TaskLoop& loop, const PlaceNames& places,
                  const std::string& taker, const Computation& computation, Writer& out);

}  // namespace stitchwork
