// Machine code as text, where the CUDA toolkit's programs are installed.
#pragma once

#include <string>

namespace stitchwork {

/// ptxas and nvdisasm; found where find_ptxas looks.
struct Disassembler {
  std::string ptxas, nvdisasm;
  bool there() const { return !ptxas.empty() && !nvdisasm.empty(); }
};
Disassembler find_disassembler();

/// The SASS of a kernel's PTX for an architecture ("75"). Throws Error with what the programs say where they
/// fail (an older ptxas than the PTX).
std::string disassembled(const Disassembler& tools, const std::string& ptx, int architecture);

}  // namespace stitchwork
