// Indices as generated code writes them: what a task's rows divide is taken apart.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "codegen/print/print_text.h"
#include "core/base/arithmetic.h"

namespace stitchwork {
namespace TEST_FILE {

/// The value of sums of products of numbers, names, sw_quotient(a, b) and sw_remainder(a, b).
class Value {
 public:
  Value(std::string text, std::int64_t task, std::int64_t local_row, std::int64_t rows)
      : text_(std::move(text)), task_(task), local_row_(local_row), rows_(rows) {}
  std::int64_t run() {
    const std::int64_t value = sum();
    EXPECT_EQ(at_, text_.size()) << text_;
    return value;
  }

 private:
  bool take(std::string_view what) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (text_.compare(at_, what.size(), what) != 0) return false;
    at_ += what.size();
    return true;
  }
  std::int64_t sum() {
    std::int64_t value = product();
    for (;;) {
      if (take("+"))
        value += product();
      else if (take("-"))
        value -= product();
      else
        return value;
    }
  }
  std::int64_t product() {
    std::int64_t value = factor();
    while (take("*")) value *= factor();
    return value;
  }
  std::int64_t call(bool quotient) {
    const std::int64_t a = sum();
    EXPECT_TRUE(take(",")) << text_;
    const std::int64_t b = sum();
    EXPECT_TRUE(take(")")) << text_;
    return quotient ? a / b : a % b;
  }
  std::int64_t factor() {
    if (take("(long long)")) return factor();
    if (take("(")) {
      const std::int64_t value = sum();
      EXPECT_TRUE(take(")")) << text_;
      return value;
    }
    if (take("sw_quotient(")) return call(true);
    if (take("sw_remainder(")) return call(false);
    if (take("task")) return task_;
    if (take("local_row")) return local_row_;
    if (take("row")) return task_ * rows_ + local_row_;
    std::size_t used = 0;
    const std::int64_t number = std::stoll(text_.substr(at_), &used);
    at_ += used;
    take("LL");
    return number;
  }

  std::string text_;
  std::int64_t task_, local_row_, rows_;
  std::size_t at_ = 0;
};

TEST(IndexText, WhatATasksRowsDivideIsTakenApart) {
  IndexMap context;
  context.dims = {8 * 60, 1};
  const auto text = [&](const IndexExpr& expr, std::int64_t rows) {
    return index_text(expr, context, {.dims = {"row", "col"}, .runtime = {}, .task_rows = rows});
  };
  const IndexExpr row = IndexExpr::dim(0);
  EXPECT_EQ(text(floordiv(row, 60), 60), "task");
  EXPECT_EQ(text(mod(row, 60), 60), "local_row");
  EXPECT_EQ(text(floordiv(row, 12), 60), "(task * 5 + sw_quotient(local_row, 12))");
  EXPECT_EQ(text(mod(floordiv(row, 12), 5), 60), "sw_quotient(local_row, 12)");
  EXPECT_EQ(text(mod(row, 12), 60), "sw_remainder(local_row, 12)");
  EXPECT_EQ(text(floordiv(row, 7), 60), "sw_quotient(row, 7)");
  EXPECT_EQ(text(floordiv(row, 120), 60), "sw_quotient(row, 120)");
  EXPECT_EQ(text(floordiv(row, 12), 1), "sw_quotient(row, 12)");
}

TEST(IndexText, RandomIndicesKeepTheirValue) {
  std::mt19937 random(7);
  int apart = 0;
  for (int i = 0; i < 2000; ++i) {
    static constexpr std::int64_t kRows[] = {1, 2, 12, 60, 64, 94 * 94, 35};
    const std::int64_t rows = kRows[random() % std::size(kRows)], tasks = 1 + random() % 5;
    IndexMap context;
    context.dims = {tasks * rows, 1};
    IndexExpr expr = IndexExpr::dim(0);
    for (std::uint32_t n = 1 + random() % 4; n > 0; --n) {
      static constexpr std::int64_t kDivisors[] = {2, 3, 4, 5, 6, 12, 20, 47, 94, 35};
      const std::int64_t divisor = kDivisors[random() % std::size(kDivisors)];
      expr = random() % 2 == 0 ? floordiv(expr, divisor) : mod(expr, divisor);
      if (random() % 4 == 0) expr = expr * 3 + IndexExpr::value(static_cast<std::int64_t>(random() % 5));
    }
    const bool wide = random() % 2 == 0;
    const std::string text =
        index_text(expr, context, {.dims = {"row", "col"}, .runtime = {}, .wide = wide, .task_rows = rows});
    apart += text.find("local_row") != std::string::npos ? 1 : 0;
    for (int sample = 0; sample < 40; ++sample) {
      const auto task = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(tasks));
      const auto local_row = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(rows));
      const std::vector<std::int64_t> dims{task * rows + local_row, 0};
      ASSERT_EQ(Value(text, task, local_row, rows).run(), evaluate(expr, dims, {})) << text;
    }
  }
  EXPECT_GT(apart, 300);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
