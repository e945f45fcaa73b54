// The one cell that a query of a store gives.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "experiments/sqlite.h"
#include "experiments/store.h"

namespace stitchwork::testing {

inline std::int64_t count(const Store& store, const std::string& query) {
  Statement statement(store.handle(), query);
  EXPECT_TRUE(statement.step());
  return statement.integer(0);
}

inline std::string text(const Store& store, const std::string& query) {
  Statement statement(store.handle(), query);
  EXPECT_TRUE(statement.step());
  return statement.text(0);
}

}  // namespace stitchwork::testing
