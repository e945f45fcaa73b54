// The store: every run is a trial in SQLite (docs/store.md has the schema). WAL, foreign keys on,
// user_version migrations, one transaction an attempt: a kill at any moment loses at most the attempt under
// way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "experiments/trial.h"

struct sqlite3;

namespace stitchwork {

class Store {
 public:
  /// Opens or creates `path` (parent folders are made), migrates older schemas. Throws Error naming the file
  /// if it cannot be written, is not a Stitchwork store, or is newer than this program.
  static Store open(const std::string& path);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// Records a finished trial (status ok, or failed with the reason) with its kernels and counters, in one
  /// transaction. Returns the attempt's id. `experiment` names the experiment it belongs to ("adhoc" for
  /// `run`).
  std::int64_t record(const std::string& experiment, const Model& model, const TrialSpec& spec,
                      const TrialResult& result);

  /// True if the trial was run and came out ok: a resumed experiment skips it.
  bool has_ok_attempt(const std::string& trial_key) const;

  const std::string& path() const { return path_; }
  sqlite3* handle() const { return db_.get(); }

 private:
  struct Close {
    void operator()(sqlite3*) const;
  };
  explicit Store(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::unique_ptr<sqlite3, Close> db_;
};

/// ${XDG_DATA_HOME:-~/.local/share}/stitchwork/runs.db
std::string default_store_path();

}  // namespace stitchwork
