// The store's schema and its migrations (docs/store.md).
#pragma once

#include <span>
#include <string_view>

struct sqlite3;

namespace stitchwork {

/// "STCH": marks a SQLite file as ours.
inline constexpr int kStoreApplicationId = 0x53544348;

/// migrations()[i] takes user_version i to i + 1.
std::span<const std::string_view> migrations();

/// Brings an open database to the newest version, all migrations in one transaction. Throws Error if it is
/// newer than this program.
void migrate(sqlite3* db);

}  // namespace stitchwork
