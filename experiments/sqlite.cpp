#include "experiments/sqlite.h"

#include <fstream>

namespace stitchwork {
namespace {

/// Big-endian 32-bit word of a SQLite header.
std::uint32_t word_at(const std::string& header, std::size_t offset) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) word = word << 8 | static_cast<unsigned char>(header[offset + i]);
  return word;
}

}  // namespace

std::optional<SqliteHeader> sqlite_header(const std::string& path) {
  // Size, and offsets of user_version and application_id: https://www.sqlite.org/fileformat2.html
  // section 1.3.
  std::string header(100, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(header.data(), static_cast<std::streamsize>(header.size()));
  if (in.bad() || !in.is_open()) throw Error(path, 0, 0, "cannot be read", "check its permissions");
  if (in.gcount() != 100 || header.compare(0, 15, "SQLite format 3") != 0) return std::nullopt;
  return SqliteHeader{word_at(header, 60), word_at(header, 68)};
}

void throw_sqlite(sqlite3* db, const std::string& what) {
  const char* file = sqlite3_db_filename(db, "main");
  if (sqlite3_errcode(db) == SQLITE_BUSY)
    throw Error(file ? file : "", 0, 0, fmt::format("{}: another process keeps it locked", what),
                "wait until that has ended, then try again");
  if (const int code = sqlite3_errcode(db); code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
    throw Error(file ? file : "", 0, 0, fmt::format("is a damaged SQLite file: {}", sqlite3_errmsg(db)),
                "it may be cut off: copy or export it again");
  throw Error(file ? file : "", 0, 0, fmt::format("{}: {}", what, sqlite3_errmsg(db)),
              "check that the file and its folder may be written to and that the disk is not full");
}

void execute(sqlite3* db, const std::string& sql) {
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) throw_sqlite(db, "store");
}

Statement::Statement(sqlite3* db, std::string_view sql) : db_(db) {
  if (sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr) != SQLITE_OK)
    throw_sqlite(db, fmt::format("store, in \"{}\"", sql));
}

Statement& Statement::bind(std::int64_t value) {
  SW_CHECK(sqlite3_bind_int64(statement_, next_++, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(double value) {
  SW_CHECK(sqlite3_bind_double(statement_, next_++, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(std::string_view value) {
  SW_CHECK(sqlite3_bind_text(statement_, next_++, value.data(), static_cast<int>(value.size()),
                             SQLITE_TRANSIENT) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(std::nullptr_t) {
  SW_CHECK(sqlite3_bind_null(statement_, next_++) == SQLITE_OK);
  return *this;
}

bool Statement::step() {
  const int status = sqlite3_step(statement_);
  if (status == SQLITE_ROW) return true;
  if (status != SQLITE_DONE) throw_sqlite(db_, "store");
  return false;
}

void Statement::run() {
  while (step()) {
  }
  sqlite3_reset(statement_);
  next_ = 1;
}

std::string Statement::text(int column) const {
  const unsigned char* value = sqlite3_column_text(statement_, column);
  return value ? std::string(reinterpret_cast<const char*>(value),
                             static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)))
               : std::string();
}

}  // namespace stitchwork
