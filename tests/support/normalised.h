// Row statistics, a value of the whole tensor, and the rows again: the elements cross grid barriers.
#pragma once

#include <fmt/format.h>

#include <string>

namespace stitchwork::testing {

/// Centres rows, and divides by the spread of the whole tensor. `centred` is needed before two grid barriers
/// and behind them, by the same threads.
inline std::string normalised(std::int64_t rows, std::int64_t cols, const char* dtype = "f32") {
  return fmt::format(R"(HloModule normalised
sum {{ a = {2}[] parameter(0)  b = {2}[] parameter(1)  ROOT s = {2}[] add(a, b) }}
ENTRY main {{
  x = {2}[{0},{1}] parameter(0)
  zero = {2}[] constant(0)
  mean = {2}[{0}] reduce(x, zero), dimensions={{1}}, to_apply=sum
  wide = {2}[{0},{1}] broadcast(mean), dimensions={{0}}
  centred = {2}[{0},{1}] subtract(x, wide)
  squares = {2}[{0},{1}] multiply(centred, centred)
  spread = {2}[{0}] reduce(squares, zero), dimensions={{1}}, to_apply=sum
  total = {2}[] reduce(spread, zero), dimensions={{0}}, to_apply=sum
  scale = {2}[{0},{1}] broadcast(total), dimensions={{}}
  ROOT out = {2}[{0},{1}] divide(centred, scale)
}}
)",
                     rows, cols, dtype);
}

}  // namespace stitchwork::testing
