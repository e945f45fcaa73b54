// Convolutions as HLO text: given ones, and any that it allows.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace stitchwork::testing {

/// y = x convolved with w.
inline std::string convolution(const std::string& input, const std::string& kernel, const std::string& output,
                               const std::string& attributes, const std::string& type = "f32") {
  return fmt::format(
      "HloModule c\nENTRY main {{\n  x = {0}[{1}] parameter(0)\n  w = {0}[{2}] parameter(1)\n"
      "  ROOT y = {0}[{3}] convolution(x, w), {4}\n}}\n",
      type, input, kernel, output, attributes);
}

struct Random {
  std::mt19937 generator;
  explicit Random(unsigned seed) : generator(seed) {}
  int operator()(int low, int high) { return std::uniform_int_distribution<int>(low, high)(generator); }
};

/// A convolution with everything that XLA's text allows; `plain`: pads both sides alike, has no holes in its
/// input and no groups of the batch, and reverses its window in all dimensions or in none.
inline std::string random_convolution(unsigned seed, bool plain = false, const std::string& type = "f32") {
  Random random(seed);
  const int spatial = random(0, 3), groups = random(0, 3) == 0 ? random(2, 3) : 1;
  const bool of_batch = !plain && groups > 1 && random(0, 1) == 1;
  const int all_reversed = random(0, 1);
  const int in = random(1, 4), out = groups * random(1, 4), batch = random(1, 3);
  std::vector<int> x(static_cast<std::size_t>(spatial)), w = x, y = x;
  std::string size, stride, pad, holes, dilation, reversal;
  for (std::size_t s = 0; s < x.size(); ++s) {
    int extent = 0, low = 0, high = 0, step = 1, spread = 1, gap = 1;
    do {
      x[s] = random(1, 8);
      w[s] = random(1, 4);
      step = random(1, 3);
      spread = random(0, 2) == 0 ? random(2, 3) : 1;
      gap = !plain && random(0, 2) == 0 ? random(2, 3) : 1;
      low = random(plain ? 0 : -1, 3);
      high = plain ? low : random(-1, 3);
      extent = (x[s] - 1) * gap + 1 + low + high - (w[s] - 1) * spread - 1;
    } while (extent < 0);
    y[s] = extent / step + 1;
    const char* by = s == 0 ? "" : "x";
    size += fmt::format("{}{}", by, w[s]);
    stride += fmt::format("{}{}", by, step);
    pad += fmt::format("{}{}_{}", by, low, high);
    holes += fmt::format("{}{}", by, gap);
    dilation += fmt::format("{}{}", by, spread);
    reversal += fmt::format("{}{}", by, plain ? all_reversed : random(0, 1));
  }
  const auto laid_out = [&](std::vector<int> extents, int first, char name, int second, char other,
                            std::string& labels) {
    std::vector<std::pair<char, int>> dims{{name, first}, {other, second}};
    for (std::size_t s = 0; s < extents.size(); ++s)
      dims.emplace_back(static_cast<char>('0' + s), extents[s]);
    std::shuffle(dims.begin(), dims.end(), random.generator);
    std::string text;
    for (const auto& [label, extent] : dims) {
      labels += label;
      text += fmt::format("{}{}", text.empty() ? "" : ",", extent);
    }
    return text;
  };
  std::string input_labels, kernel_labels, output_labels;
  const std::string input =
      laid_out(x, of_batch ? batch * groups : batch, 'b', of_batch ? in : in * groups, 'f', input_labels);
  const std::string kernel = laid_out(w, in, 'i', out, 'o', kernel_labels);
  const std::string output = laid_out(y, batch, 'b', out, 'f', output_labels);
  std::string attributes = fmt::format("dim_labels={}_{}->{}", input_labels, kernel_labels, output_labels);
  if (spatial > 0)
    attributes =
        fmt::format("window={{size={} stride={} pad={} lhs_dilate={} rhs_dilate={} rhs_reversal={}}}, {}",
                    size, stride, pad, holes, dilation, reversal, attributes);
  if (groups > 1) attributes += fmt::format(", {}_group_count={}", of_batch ? "batch" : "feature", groups);
  return convolution(input, kernel, output, attributes, type);
}

}  // namespace stitchwork::testing
