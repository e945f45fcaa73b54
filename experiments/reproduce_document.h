// A reproduction as a report.
#pragma once

#include "experiments/reproduce.h"
#include "figures/data/document.h"

namespace stitchwork {

/// Text, tables and figures, how numbers were obtained, why they differ, the environment, and how to make
/// each number again.
Document reproduction_document(const Reproduction& reproduction);

}  // namespace stitchwork
