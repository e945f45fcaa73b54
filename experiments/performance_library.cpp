#include "experiments/performance_library.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"
#include "experiments/sqlite.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;

/// "SWPL": marks a SQLite file as a performance library.
/// No quantity: letters.
constexpr std::uint32_t kLibraryApplicationId = 0x5357504C;
/// user_version of the table below.
/// Derived from the schemas that there have been.
constexpr std::uint32_t kLibraryVersion = 1;
/// How long another process that is writing is waited for.
/// A choice, not measured: as long as stores wait (experiments/store.h).
constexpr int kWaitMs = 30000;
constexpr DatabaseKind kLibraryKind = {"performance library", "stitchwork library collect",
                                       kLibraryApplicationId, kLibraryVersion};
constexpr char kTable[] =
    "CREATE TABLE performance(key TEXT NOT NULL, device TEXT NOT NULL, compiler TEXT NOT NULL, us REAL NOT "
    "NULL, method TEXT NOT NULL, tool_version TEXT NOT NULL, PRIMARY KEY(key, method)) WITHOUT ROWID";
/// Of the times of one key the first of these counts.
constexpr std::array<std::string_view, 3> kMethods = {"measured", "simulated", "sampled"};

constexpr const char* kCollectAgain = "collect it again, or take a copy of it";

void check_row(const LibraryRow& row, const std::string& path) {
  if (!std::isfinite(row.us) || row.us <= 0)
    throw Error(path, 0, 0, fmt::format("has no time of '{}': {} us", row.key, row.us), "collect it again");
  if (std::find(kMethods.begin(), kMethods.end(), row.method) == kMethods.end())
    throw Error(path, 0, 0, fmt::format("has a time of unknown method '{}'", row.method),
                fmt::format("known: {}", fmt::join(kMethods, ", ")));
}

/// SHA-256 of the bytes that the file has in the transaction under way.
std::string sha256_of(sqlite3* db, const std::string& path) {
  sqlite3_int64 bytes = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> data(sqlite3_serialize(db, "main", &bytes, 0),
                                                             sqlite3_free);
  if (data == nullptr) throw Error(path, 0, 0, "cannot be read whole: not enough memory");
  return sha256_hex({reinterpret_cast<const char*>(data.get()), static_cast<std::size_t>(bytes)});
}

std::string device_of(sqlite3* db) {
  Statement query(db, "SELECT device FROM performance LIMIT 1");
  return query.step() ? query.text(0) : "";
}

[[noreturn]] void refuse_device(const std::string& path, const std::string& has, const std::string& wanted) {
  throw Error(path, 0, 0, fmt::format("is a performance library of {}, not of {}", has, wanted),
              "a library is of one device: give each a file of its own");
}

[[noreturn]] void refuse_mixed(const std::string& path, const std::set<std::string>& methods,
                               std::string_view what = "has times") {
  throw Error(path, 0, 0, fmt::format("{} of several methods: {}", what, fmt::join(methods, ", ")),
              "give --mixed to take them all the same, the measured ones first");
}

}  // namespace

std::string LibraryContents::device() const { return rows.empty() ? "" : rows.front().device; }

LibraryContents read_library(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error))
    throw Error(path, 0, 0, "there is no such performance library", "`stitchwork library collect` makes one");
  if (!check_database(path, kLibraryKind))
    throw Error(path, 0, 0, "is empty: no performance library, or only the beginning of one",
                "`stitchwork library collect` makes them");
  // Not read-only: what a writer that was killed has left has to be undone first.
  const std::unique_ptr<sqlite3, CloseLibrary> owner(open_database(path, SQLITE_OPEN_READWRITE, kWaitMs));
  sqlite3* db = owner.get();
  require_sound(db, path, kCollectAgain);
  const Transaction snapshot(db, "BEGIN");
  LibraryContents contents;
  std::set<std::string> methods;
  Statement query(db,
                  "SELECT key, device, compiler, us, method, tool_version FROM performance ORDER BY key, "
                  "method");
  while (query.step()) {
    LibraryRow row{query.text(0), query.text(1), query.text(2), query.real(3), query.text(4), query.text(5)};
    check_row(row, path);
    if (!contents.rows.empty() && row.device != contents.device())
      refuse_device(path, contents.device(), row.device);
    methods.insert(row.method);
    contents.rows.push_back(std::move(row));
  }
  contents.methods.assign(methods.begin(), methods.end());
  contents.sha256 = sha256_of(db, path);
  return contents;
}

fusionstitching::PerformanceLibrary performance_library(const LibraryContents& contents,
                                                        const std::string& path, bool mixed) {
  if (contents.rows.empty())
    throw Error(path, 0, 0, "is a performance library without times",
                "`stitchwork library collect` adds some");
  if (contents.methods.size() > 1 && !mixed)
    refuse_mixed(path, {contents.methods.begin(), contents.methods.end()});
  fusionstitching::PerformanceLibrary library{contents.device(), {}, contents.sha256};
  for (const std::string_view method : kMethods)
    for (const LibraryRow& row : contents.rows)
      if (row.method == method) library.entries.try_emplace(row.key, row.us, row.method);
  return library;
}

void CloseLibrary::operator()(sqlite3* db) const { sqlite3_close(db); }

LibraryWriter LibraryWriter::open(const std::string& path) {
  const bool fresh = !check_database(path, kLibraryKind);
  LibraryWriter writer;
  writer.path_ = path;
  writer.db_.reset(open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, kWaitMs));
  sqlite3* db = writer.db_.get();
  if (sqlite3_db_readonly(db, "main") == 1)
    throw Error(path, 0, 0, "cannot be written", "check its permissions");
  if (!fresh) {
    require_sound(db, path, kCollectAgain);
    return writer;
  }
  // All of it or nothing: a file that is there is a library.
  Transaction transaction(db);
  Statement known(db, "SELECT 1 FROM sqlite_master WHERE name = 'performance'");
  if (!known.step()) {
    execute(db, kTable);
    execute(db, fmt::format("PRAGMA application_id = {}", kLibraryApplicationId));
    execute(db, fmt::format("PRAGMA user_version = {}", kLibraryVersion));
  }
  transaction.commit();
  return writer;
}

std::size_t LibraryWriter::insert(const std::vector<LibraryRow>& rows) {
  sqlite3* db = db_.get();
  Transaction transaction(db);
  std::string device = device_of(db);
  Statement insert(
      db,
      "INSERT OR IGNORE INTO performance(key,device,compiler,us,method,tool_version) VALUES(?,?,?,?,?,?)");
  std::size_t added = 0;
  for (const LibraryRow& row : rows) {
    check_row(row, path_);
    if (device.empty()) device = row.device;
    if (row.device != device) refuse_device(path_, device, row.device);
    insert.bind(row.key)
        .bind(row.device)
        .bind(row.compiler)
        .bind(row.us)
        .bind(row.method)
        .bind(row.tool_version)
        .run();
    added += static_cast<std::size_t>(sqlite3_changes(db));
  }
  transaction.commit();
  return added;
}

LibraryMerged merge_libraries(const std::string& into, const std::vector<std::string>& others, bool mixed) {
  std::error_code error;
  std::set<std::string> methods;
  std::string device;
  std::vector<LibraryRow> rows;
  if (fs::exists(into, error)) {
    const LibraryContents there = read_library(into);
    methods.insert(there.methods.begin(), there.methods.end());
    device = there.device();
  }
  for (const std::string& other : others) {
    const LibraryContents one = read_library(other);
    if (device.empty()) device = one.device();
    if (!one.rows.empty() && one.device() != device) refuse_device(other, one.device(), device);
    methods.insert(one.methods.begin(), one.methods.end());
    if (methods.size() > 1 && !mixed)
      refuse_mixed(other, methods, "joined to the others it would make times");
    rows.insert(rows.end(), one.rows.begin(), one.rows.end());
  }
  LibraryMerged merged;
  merged.added = LibraryWriter::open(into).insert(rows);
  merged.known = rows.size() - merged.added;
  return merged;
}

}  // namespace stitchwork
