// Products of two arrays (dot), drawn by seed: dimensions of each kind in any order, types, what stands
// before and behind.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace stitchwork::testing {

/// One dot, "product", of "left" and "right", which are parameters or computed from some.
struct ProductText {
  std::string hlo, description;
  std::int64_t results = 1, contracted = 1, batch = 1;
};

class ProductDraw {
 public:
  explicit ProductDraw(std::uint32_t seed) : random_(seed) {}

  std::int64_t draw(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  bool one_in(int n) { return draw(1, n) == 1; }

  /// `largest`: of the results, about, and of what is contracted.
  ProductText product(std::int64_t largest, std::int64_t most_contracted) {
    const std::vector<std::int64_t> batch = extents(static_cast<int>(draw(0, 2)), 6);
    const std::vector<std::int64_t> contracted =
        extents(one_in(8) ? 0 : static_cast<int>(draw(1, 2)), most_contracted);
    const std::vector<std::int64_t> rows = extents(static_cast<int>(draw(0, 2)), largest);
    const std::vector<std::int64_t> cols = extents(static_cast<int>(draw(0, 2)), largest);
    static constexpr std::array<std::pair<const char*, const char*>, 7> kTypes{{{"f32", "f32"},
                                                                                {"f32", "f32"},
                                                                                {"f16", "f16"},
                                                                                {"bf16", "bf16"},
                                                                                {"bf16", "f32"},
                                                                                {"f64", "f64"},
                                                                                {"s32", "s32"}}};
    const auto [from, to] = kTypes[static_cast<std::size_t>(draw(0, kTypes.size() - 1))];
    const Operand left = operand(batch, contracted, rows), right = operand(batch, contracted, cols);
    std::vector<std::int64_t> out = batch;
    out.insert(out.end(), rows.begin(), rows.end());
    out.insert(out.end(), cols.begin(), cols.end());

    ProductText text;
    for (const std::int64_t extent : out) text.results *= extent;
    for (const std::int64_t extent : contracted) text.contracted *= extent;
    for (const std::int64_t extent : batch) text.batch *= extent;
    std::string body;
    int parameters = 0;
    const auto source = [&](const char* name, const std::string& shape) {
      const bool is_float = from[0] != 's';
      const std::string_view made = one_in(2) ? "" : one_in(2) || !is_float ? "negate" : "tanh";
      if (made.empty()) {
        body += fmt::format("  {} = {} parameter({})\n", name, shape, parameters++);
        return;
      }
      body += fmt::format("  {0}.in = {1} parameter({2})\n  {0} = {1} {3}({0}.in)\n", name, shape,
                          parameters++, made);
    };
    const std::string result = fmt::format("{}[{}]", to, fmt::join(out, ","));
    source("left", fmt::format("{}[{}]", from, fmt::join(left.dims, ",")));
    source("right", fmt::format("{}[{}]", from, fmt::join(right.dims, ",")));
    body += fmt::format(
        "  product = {} dot(left, right), lhs_batch_dims={{{}}}, rhs_batch_dims={{{}}}, "
        "lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}\n",
        result, fmt::join(left.batch, ","), fmt::join(right.batch, ","), fmt::join(left.contracted, ","),
        fmt::join(right.contracted, ","));
    body += fmt::format("  addend = {0} parameter({1})\n  ROOT sum = {0} add(product, addend)\n", result,
                        parameters);
    text.hlo = "HloModule product\nENTRY main {\n" + body + "}\n";
    text.description = fmt::format("{} of {} [{}] and [{}], batch {} and {}, contracting {} and {}", to, from,
                                   fmt::join(left.dims, ","), fmt::join(right.dims, ","),
                                   fmt::join(left.batch, ","), fmt::join(right.batch, ","),
                                   fmt::join(left.contracted, ","), fmt::join(right.contracted, ","));
    return text;
  }

 private:
  struct Operand {
    std::vector<std::int64_t> dims, batch, contracted;
  };

  /// So many, whose product is at most about `most`.
  std::vector<std::int64_t> extents(int number, std::int64_t most) {
    std::vector<std::int64_t> result;
    for (int i = 0; i < number; ++i) {
      result.push_back(draw(1, std::max<std::int64_t>(1, most)));
      most /= result.back();
    }
    return result;
  }

  /// The dimensions in any order.
  Operand operand(const std::vector<std::int64_t>& batch, const std::vector<std::int64_t>& contracted,
                  const std::vector<std::int64_t>& own) {
    const std::size_t rank = batch.size() + contracted.size() + own.size();
    std::vector<std::int64_t> place(rank);
    for (std::size_t d = 0; d < rank; ++d) place[d] = static_cast<std::int64_t>(d);
    if (one_in(2)) std::shuffle(place.begin(), place.end(), random_);
    Operand result{std::vector<std::int64_t>(rank), {}, {}};
    std::size_t next = 0;
    const auto put = [&](const std::vector<std::int64_t>& dims, std::vector<std::int64_t>* numbers) {
      for (const std::int64_t extent : dims) {
        result.dims[static_cast<std::size_t>(place[next])] = extent;
        if (numbers != nullptr) numbers->push_back(place[next]);
        ++next;
      }
    };
    put(batch, &result.batch);
    put(own, nullptr);
    put(contracted, &result.contracted);
    return result;
  }

  std::mt19937 random_;
};

}  // namespace stitchwork::testing
