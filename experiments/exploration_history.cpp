#include "experiments/exploration_history.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "experiments/sqlite.h"

namespace stitchwork {
namespace {

constexpr DatabaseKind kHistoryKind = {"history of an exploration", "stitchwork explore",
                                       0x5357454C,  // "SWEL"
                                       2};
/// A second explorer is refused, not waited for: the first may take hours.
constexpr int kHistoryWaitMs = 200;

constexpr const char* kStartAnother = "start another history, or take a copy of it";

// `bindings`: what differs from the mini-batch before, null what is not bound any more.
constexpr const char* kHistoryTables =
    "CREATE TABLE identity(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE minibatch(number INTEGER PRIMARY KEY, us REAL NOT NULL, dimension TEXT NOT NULL, bindings "
    "TEXT NOT NULL, loss REAL);"
    "CREATE TABLE state(number INTEGER PRIMARY KEY, bytes BLOB NOT NULL);"
    "CREATE TABLE profile(key TEXT PRIMARY KEY, us REAL NOT NULL, minibatch INTEGER NOT NULL REFERENCES "
    "minibatch(number)) WITHOUT ROWID;";

std::string changes(const astra::Bindings& before, const astra::Bindings& now) {
  nlohmann::json difference = nlohmann::json::object();
  for (const auto& [name, option] : before)
    if (!now.contains(name)) difference[name] = nullptr;
  for (const auto& [name, option] : now)
    if (const auto old = before.find(name); old == before.end() || old->second != option)
      difference[name] = option;
  return difference.dump();
}

void change(astra::Bindings& bindings, const std::string& text, const std::string& path) {
  const auto difference = nlohmann::json::parse(text, nullptr, false);
  if (!difference.is_object()) throw Error(path, 0, 0, "has bindings that are none", "start another history");
  for (const auto& [name, option] : difference.items())
    if (option.is_string())
      bindings[name] = option.get<std::string>();
    else
      bindings.erase(name);
}

using Connection = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;

/// Beside its place, then moved there: a file that is there is a history, whenever its maker is killed.
void create(const std::string& path, const ExplorationIdentity& identity) {
  const std::string made = path + ".new";
  std::error_code error;
  for (const char* part : {"", "-journal"}) std::filesystem::remove(made + part, error);
  {
    const Connection owner(open_database(made, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, kHistoryWaitMs),
                           sqlite3_close);
    sqlite3* db = owner.get();
    Transaction transaction(db);
    execute(db, kHistoryTables);
    execute(db, fmt::format("PRAGMA application_id = {}", kHistoryKind.application_id));
    execute(db, fmt::format("PRAGMA user_version = {}", kHistoryKind.version));
    Statement insert(db, "INSERT INTO identity(name, value) VALUES(?, ?)");
    for (const auto& [name, value] : identity) insert.bind(name).bind(value).run();
    transaction.commit();
  }
  std::filesystem::rename(made, path, error);
  if (error) throw Error(path, 0, 0, fmt::format("cannot be made: {}", error.message()));
}

}  // namespace

void ExplorationHistory::Close::operator()(sqlite3* db) const { sqlite3_close(db); }

ExplorationHistory ExplorationHistory::open(const std::string& path, const ExplorationIdentity& identity,
                                            bool resume) {
  const bool there = check_database(path, kHistoryKind);
  if (!there) create(path, identity);
  ExplorationHistory history(path);
  history.db_.reset(open_database(path, SQLITE_OPEN_READWRITE, kHistoryWaitMs));
  if (sqlite3_db_readonly(history.db_.get(), "main") == 1)
    throw Error(path, 0, 0, "cannot be written", "check its permissions");
  history.lock();
  require_sound(history.db_.get(), path, kStartAnother);
  history.read();
  if (there && !resume)
    throw Error(path, 0, 0, fmt::format("has an exploration of {} mini-batches", history.minibatches_.size()),
                "--resume goes on with it; another needs a file of its own");
  history.require_same(identity);
  return history;
}

/// Kept until the connection is closed, or the process killed.
void ExplorationHistory::lock() {
  sqlite3* db = db_.get();
  const int status =
      sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT", nullptr, nullptr, nullptr);
  if (status == SQLITE_BUSY)
    throw Error(path_, 0, 0, "another exploration is writing to it", "wait until that has ended");
  if (status == SQLITE_CORRUPT || status == SQLITE_NOTADB)
    throw Error(path_, 0, 0, "is cut off or damaged", kStartAnother);
  if (status != SQLITE_OK) throw_sqlite(db, "history");
  // A kill of the process loses nothing that was committed; the machine's going down may lose the last ones.
  execute(db, "PRAGMA synchronous = NORMAL");
}

void ExplorationHistory::require_same(const ExplorationIdentity& identity) {
  Statement query(db_.get(), "SELECT name, value FROM identity");
  std::map<std::string, std::string> there;
  while (query.step()) there[query.text(0)] = query.text(1);
  for (const auto& [name, value] : identity)
    if (const auto known = there.find(name); known == there.end() || known->second != value)
      throw Error(path_, 0, 0,
                  fmt::format("is an exploration of {} {}, not {}", name,
                              known == there.end() ? "unknown" : known->second, value),
                  "times are not mixed: start another history");
}

void ExplorationHistory::read() {
  sqlite3* db = db_.get();
  Statement minibatches(db, "SELECT number, us, dimension, bindings, loss FROM minibatch ORDER BY number");
  astra::Bindings bindings;
  while (minibatches.step()) {
    if (minibatches.integer(0) != static_cast<std::int64_t>(minibatches_.size()) + 1)
      throw Error(path_, 0, 0, fmt::format("has no mini-batch {}", minibatches_.size() + 1),
                  "start another history");
    change(bindings, minibatches.text(3), path_);
    minibatches_.push_back({bindings, minibatches.real(1), minibatches.text(2), {}});
    if (!minibatches.is_null(4)) minibatches_.back().loss = minibatches.real(4);
  }
  Statement profile(db, "SELECT key, us FROM profile");
  while (profile.step()) index_.emplace(profile.text(0), profile.real(1));
  Statement state(db, "SELECT bytes FROM state ORDER BY number");
  while (state.step()) state_.push_back(state.bytes(0));
}

void ExplorationHistory::add(const MiniBatch& minibatch, const astra::ProfileIndex& news,
                             std::span<const std::span<const std::byte>> state) {
  sqlite3* db = db_.get();
  const auto number = static_cast<std::int64_t>(minibatches_.size()) + 1;
  Transaction transaction(db);
  Statement(db, "INSERT INTO minibatch(number, us, dimension, bindings, loss) VALUES(?, ?, ?, ?, ?)")
      .bind(number)
      .bind(minibatch.us)
      .bind(minibatch.dimension)
      .bind(changes(minibatches_.empty() ? astra::Bindings() : minibatches_.back().bindings,
                    minibatch.bindings))
      .bind(minibatch.loss)
      .run();
  for (std::size_t i = 0; i < state.size(); ++i)
    Statement(db, "INSERT OR REPLACE INTO state(number, bytes) VALUES(?, ?)")
        .bind(static_cast<std::int64_t>(i))
        .bind(state[i])
        .run();
  Statement insert(db, "INSERT INTO profile(key, us, minibatch) VALUES(?, ?, ?)");
  for (const auto& [key, us] : news) insert.bind(key).bind(us).bind(number).run();
  transaction.commit();
  minibatches_.push_back(minibatch);
  index_.insert(news.begin(), news.end());
}

}  // namespace stitchwork
