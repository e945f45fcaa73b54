// A thin, checked layer over the SQLite C interface.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace stitchwork {

/// What the first bytes of a database file say.
struct SqliteHeader {
  std::uint32_t user_version = 0, application_id = 0;
};
/// Read without SQLite, which would add journal files beside the file; none of a file that is no database.
/// Throws Error naming a file that cannot be read.
std::optional<SqliteHeader> sqlite_header(const std::string& path);

/// A kind of database file of this program.
struct DatabaseKind {
  std::string_view name;   ///< "performance library"
  std::string_view maker;  ///< what makes one, for messages
  std::uint32_t application_id = 0, version = 0;
};
/// Whether there is a file with something in it; refuses what is no database of the kind, before SQLite may
/// touch it. Throws Error naming the file.
bool check_database(const std::string& path, const DatabaseKind& kind);
/// `flags` of sqlite3_open_v2; a writer is waited for so long. Throws Error naming the file.
sqlite3* open_database(const std::string& path, int flags, int wait_ms);
/// Every page is there and makes sense, else throws Error: the file, and `remedy`.
void require_sound(sqlite3* db, const std::string& path, std::string_view remedy);

/// Throws Error naming the database file with SQLite's own message.
[[noreturn]] void throw_sqlite(sqlite3* db, const std::string& what);

/// Runs one or more statements without results.
void execute(sqlite3* db, const std::string& sql);

/// One prepared statement: bind in order, then step.
class Statement {
 public:
  Statement(sqlite3* db, std::string_view sql);
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::int64_t value);
  Statement& bind(int value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(double value);
  Statement& bind(std::string_view value);
  Statement& bind(const char* value) { return bind(std::string_view(value)); }
  Statement& bind(std::nullptr_t);
  Statement& bind(std::span<const std::byte> value);
  template <typename T>
  Statement& bind(const std::optional<T>& value) {
    return value ? bind(*value) : bind(nullptr);
  }

  /// True if a row is there.
  bool step();
  /// Runs to the end; for statements without rows. Resets, so that it can be bound and run again.
  void run();

  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  std::string text(int column) const;
  std::vector<std::byte> bytes(int column) const;
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  int next_ = 1;
};

/// BEGIN IMMEDIATE ... COMMIT; rolls back unless committed. With "BEGIN" it only reads: one snapshot.
class Transaction {
 public:
  explicit Transaction(sqlite3* db, const char* begin = "BEGIN IMMEDIATE") : db_(db) { execute(db, begin); }
  ~Transaction() {
    if (!done_) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  void commit() {
    execute(db_, "COMMIT");
    done_ = true;
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

 private:
  sqlite3* db_;
  bool done_ = false;
};

}  // namespace stitchwork
