#include "experiments/sqlite.h"

#include <filesystem>
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

bool check_database(const std::string& path, const DatabaseKind& kind) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw Error(path, 0, 0, fmt::format("is a folder, not a {}", kind.name), "give the name of a file");
  if (!std::filesystem::exists(path, error) ||
      (std::filesystem::is_regular_file(path, error) && std::filesystem::file_size(path, error) == 0))
    return false;
  const std::string left_alone = fmt::format("`{}` makes them; this one was left alone", kind.maker);
  const auto header = sqlite_header(path);
  if (!header)
    throw Error(path, 0, 0, fmt::format("is no {}, or only the beginning of one", kind.name), left_alone);
  if (header->application_id != kind.application_id)
    throw Error(path, 0, 0, fmt::format("is a database of another kind, no {}", kind.name), left_alone);
  if (header->user_version > kind.version)
    throw Error(path, 0, 0,
                fmt::format("has {} version {}, newer than this program's {}",
                            kind.name.substr(kind.name.rfind(' ') + 1), header->user_version, kind.version),
                "update stitchwork");
  return true;
}

sqlite3* open_database(const std::string& path, int flags, int wait_ms) {
  sqlite3* db = nullptr;
  const int status = sqlite3_open_v2(path.c_str(), &db, flags, nullptr);
  if (status != SQLITE_OK) {
    const std::string why = db != nullptr ? sqlite3_errmsg(db) : "no memory";
    sqlite3_close(db);
    throw Error(path, 0, 0, fmt::format("cannot be opened: {}", why), "check its folder and permissions");
  }
  sqlite3_busy_timeout(db, wait_ms);
  return db;
}

void require_sound(sqlite3* db, const std::string& path, std::string_view remedy) {
  sqlite3_stmt* statement = nullptr;
  bool sound = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, nullptr) == SQLITE_OK &&
               sqlite3_step(statement) == SQLITE_ROW;
  if (sound) {
    const unsigned char* text = sqlite3_column_text(statement, 0);
    sound = text != nullptr && std::string_view(reinterpret_cast<const char*>(text)) == "ok";
  }
  const int status = sqlite3_errcode(db);
  sqlite3_finalize(statement);
  if (!sound && status == SQLITE_BUSY) throw_sqlite(db, "store");
  if (!sound) throw Error(path, 0, 0, "is cut off or damaged", std::string(remedy));
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

Statement& Statement::bind(std::span<const std::byte> value) {
  // Null would be no blob, and not one without bytes.
  const void* data = value.empty() ? static_cast<const void*>("") : value.data();
  SW_CHECK(sqlite3_bind_blob64(statement_, next_++, data, value.size(), SQLITE_TRANSIENT) == SQLITE_OK);
  return *this;
}

std::vector<std::byte> Statement::bytes(int column) const {
  const auto* value = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  return value == nullptr ? std::vector<std::byte>()
                          : std::vector(value, value + sqlite3_column_bytes(statement_, column));
}

std::string Statement::text(int column) const {
  const unsigned char* value = sqlite3_column_text(statement_, column);
  return value ? std::string(reinterpret_cast<const char*>(value),
                             static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)))
               : std::string();
}

}  // namespace stitchwork
