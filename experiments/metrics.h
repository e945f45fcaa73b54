// What can be stored: names, units and which direction is better.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

struct sqlite3;

namespace stitchwork {

struct Metric {
  std::string_view name, unit;
  int direction;  ///< -1 less is better, +1 more is better, 0 neither
  std::string_view description;
};

/// Every metric and counter.
std::span<const Metric> metrics();

/// The row of a metric, made on first use. SW_CHECKs that it is known.
std::int64_t metric_id(sqlite3* db, std::string_view name);

}  // namespace stitchwork
