// `stitchwork ptx run`: launches a kernel of a PTX file with arguments written on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/literal.h"
#include "simulator/simulator.h"

namespace stitchwork::sim {

/// One --arg: a scalar, or a buffer to allocate and fill.
///   i8:5  i16:5  i32:5  i64:5  u8:5  u16:5  u32:5  u64:5  f16:1.5  bf16:1.5  f32:1.5  f64:1.5
///   buf:TYPE:COUNT:seed=N   about N(0,1) for floats, uniform in [0, 128) for integers
///   buf:TYPE:COUNT:zero
///   FILE.npy
/// TYPE: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64.
struct ArgumentSpec {
  Argument scalar;
  std::optional<Literal> buffer;  ///< contents, for buffers and files
};

/// Throws Error that quotes the argument and says what is accepted.
ArgumentSpec parse_argument(const std::string& text);

/// The element type of that name, as buffers spell them; nothing if there is none.
std::optional<DType> buffer_type(std::string_view name);

/// About N(0,1) for floats, uniform in [0, 128) for integers; the same everywhere.
void fill_random(Literal& buffer, std::uint64_t seed);
/// Uniform: floats in [low, high), integers in [low, high - 1].
void fill_uniform(Literal& buffer, std::uint64_t seed, double low, double high);

/// "256" or "64,4,1". Throws Error.
Dim3 parse_dim3(const std::string& text);

struct PtxRun {
  LaunchResult result;
  std::vector<std::optional<Literal>> buffers;  ///< by argument: contents after the launch; empty for scalars
};

/// Allocates the buffers, runs the launch and reads the buffers back. `kernel` may be empty if the module has
/// only one.
PtxRun run_ptx(const ptx::Module& module, Launch launch, const std::vector<std::string>& arguments,
               const Device& device, const Options& options);

}  // namespace stitchwork::sim
