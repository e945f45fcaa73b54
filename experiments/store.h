// The store: every run is a trial in SQLite (docs/store.md has the schema). WAL, foreign keys on,
// user_version migrations, one transaction an attempt: a kill at any moment loses at most the attempt under
// way.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/trial.h"

struct sqlite3;

namespace stitchwork {

/// Which experiment an attempt belongs to: experiments of one name and different specifications are kept
/// apart.
struct ExperimentId {
  template <typename Name>
  requires std::convertible_to<Name, std::string> ExperimentId(
      Name&& name)  // NOLINT(google-explicit-constructor): "adhoc", "demo"
      : name(std::forward<Name>(name)) {}
  ExperimentId(std::string name, std::string spec) : name(std::move(name)), spec(std::move(spec)) {}
  std::string name;
  std::string spec;  ///< its document; "": only the name
};

class Store {
 public:
  /// Opens or creates `path` (parent folders are made), migrates older schemas. Throws Error naming the file
  /// if it cannot be written, is not a Stitchwork store, or is newer than this program. Another process may
  /// be writing: `wait` is how long it is waited for, here and later.
  static Store open(const std::string& path, std::chrono::milliseconds wait = std::chrono::seconds(30));
  /// Opens a store that is there, to be read. Where nothing can be written (a folder of another user, an
  /// archive) it is read as it is; its version has to be this program's then.
  static Store read(const std::string& path, std::chrono::milliseconds wait = std::chrono::seconds(30));
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// Records a finished trial (status ok, or failed with the reason) with its kernels and counters, in one
  /// transaction. Returns the attempt's id.
  std::int64_t record(const ExperimentId& experiment, const Model& model, const TrialSpec& spec,
                      const TrialResult& result);
  /// Likewise a trial that came to no result: `status` is failed, timeout or killed.
  std::int64_t record_failure(const ExperimentId& experiment, const Model& model, const TrialSpec& spec,
                              std::string_view status, const std::string& reason, double elapsed_ms);

  /// What became of the last attempt of the trial of that key in an experiment of that name ("" = there is
  /// none): a resumed experiment skips what is ok, also where its specification has grown since.
  std::string last_status(const std::string& experiment, const std::string& trial_key) const;

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

/// Stores open in this process. None may be where it forks a child that opens one: SQLite would take the
/// locks of the parent for the child's own (sqlite.org/howtocorrupt.html, section 2.6).
int open_stores();

/// ${XDG_DATA_HOME:-~/.local/share}/stitchwork/runs.db
std::string default_store_path();

}  // namespace stitchwork
