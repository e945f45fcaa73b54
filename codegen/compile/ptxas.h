// What ptxas says of kernels: registers, spills, shared memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stitchwork {

/// What ptxas says a kernel uses.
struct RegisterUse {
  int registers = 0;
  std::int64_t spill_bytes = 0;  ///< stores + loads, static
  std::int64_t shared_bytes = 0;
};
/// Path of ptxas ("" if there is none) and its verdict; empty where it fails (an older ptxas than the PTX).
/// Throws Error with the resource and its limit where a kernel uses too much of one.
std::string find_ptxas();
std::optional<RegisterUse> run_ptxas(const std::string& ptxas, const std::string& ptx, int architecture);
/// The same of several kernels, all of whose entries are called `entry`, by one process: its start takes as
/// long as most kernels. Empty for one that is only known alone (PtxTogether), and for all where it fails.
std::vector<std::optional<RegisterUse>> run_ptxas_together(const std::string& ptxas,
                                                           const std::vector<std::string>& ptx,
                                                           std::string_view entry, int architecture);
/// The PTX with the register bound that its .minnctapersm implies written out as .maxnreg. ptxas ignores a
/// .minnctapersm its architecture cannot hold, and a V100's kernel (2 blocks of 1024 threads) may be compiled
/// for sm_75, which holds one; its registers would then be counted without a bound.
std::string bounded_registers(const std::string& ptx);
/// Parses `ptxas -v`: of the entry, or of the only one.
std::optional<RegisterUse> parse_ptxas(const std::string& log);
std::optional<RegisterUse> parse_ptxas(const std::string& log, std::string_view entry);

}  // namespace stitchwork
