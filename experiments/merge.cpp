#include "experiments/merge.h"

#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "experiments/sqlite.h"

namespace stitchwork {
namespace {

/// The other store under the name `other`, until the end.
class Attached {
 public:
  Attached(sqlite3* db, const std::string& path) : db_(db) {
    Statement(db, "ATTACH DATABASE ? AS other").bind(path).run();
  }
  ~Attached() { sqlite3_exec(db_, "DETACH DATABASE other", nullptr, nullptr, nullptr); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  sqlite3* db_;
};

/// Rows of a table that stand for themselves (environments, metrics, experiments): their number here by their
/// number there. `columns` are all but the id; `same` tells which columns name the row.
std::map<std::int64_t, std::int64_t> adopt(sqlite3* db, const std::string& table, const std::string& columns,
                                           const std::string& same) {
  execute(db, fmt::format("INSERT OR IGNORE INTO main.{0}({1}) SELECT {1} FROM other.{0} ORDER BY id", table,
                          columns));
  std::map<std::int64_t, std::int64_t> ids;
  Statement pairs(
      db, fmt::format("SELECT o.id, m.id FROM other.{0} AS o JOIN main.{0} AS m ON {1}", table, same));
  while (pairs.step()) ids[pairs.integer(0)] = pairs.integer(1);
  return ids;
}

/// Copies the rows of `table` that belong to one owner there to one here; `mapped` is a column to be
/// renumbered.
void copy_rows(sqlite3* db, const std::string& table, const std::string& owner, std::int64_t there,
               std::int64_t here, const std::string& columns) {
  Statement(
      db, fmt::format(
              "INSERT INTO main.{0}({1},metric_id,{2}) SELECT ?,metric_here.id,{2} FROM other.{0} AS t JOIN "
              "other.metric_def AS metric_there ON metric_there.id = t.metric_id JOIN main.metric_def AS "
              "metric_here ON metric_here.name = metric_there.name WHERE t.{1} = ?",
              table, owner, columns))
      .bind(here)
      .bind(there)
      .run();
}

}  // namespace

Merged merge_store(Store& store, const std::string& other) {
  std::error_code error;
  if (!std::filesystem::exists(other)) throw Error(other, 0, 0, "no such store");
  if (std::filesystem::equivalent(other, store.path(), error))
    throw Error(other, 0, 0, "is the store that is merged into");
  { const Store checked = Store::open(other); }  // refuses other files, migrates older stores
  sqlite3* db = store.handle();
  const Attached attached(db, other);
  Transaction transaction(db);
  const auto environments = adopt(
      db, "environment",
      "hash,host,os,cpu,gpu_name,gpu_uuid,gpu_clocks,sm_arch,driver,cuda,compiler,app_version,git_commit,"
      "git_dirty,env_json",
      "m.hash = o.hash");
  adopt(db, "metric_def", "name,unit,direction,description", "m.name = o.name");
  const auto experiments = adopt(db, "experiment", "name,spec_json,spec_hash,created_ns",
                                 "m.name = o.name AND m.spec_hash = o.spec_hash");
  Merged merged;
  Statement attempts(
      db,
      "SELECT a.id, t.experiment_id, t.workload, t.variant, t.params_json, t.seed, t.trial_key, "
      "a.environment_id, a.status, a.started_ns, a.ended_ns, a.reason FROM other.attempt AS "
      "a "
      "JOIN other.trial AS t ON t.id = a.trial_id ORDER BY a.id");
  while (attempts.step()) {
    const std::int64_t experiment = experiments.at(attempts.integer(1));
    Statement(db,
              "INSERT OR IGNORE INTO main.trial(experiment_id,workload,variant,params_json,seed,trial_key) "
              "VALUES(?,?,?,?,?,?)")
        .bind(experiment)
        .bind(attempts.text(2))
        .bind(attempts.text(3))
        .bind(attempts.text(4))
        .bind(attempts.integer(5))
        .bind(attempts.text(6))
        .run();
    Statement find(db, "SELECT id FROM main.trial WHERE experiment_id = ? AND trial_key = ?");
    find.bind(experiment).bind(attempts.text(6)).step();
    const std::int64_t trial = find.integer(0), environment = environments.at(attempts.integer(7));
    Statement same(
        db,
        "SELECT 1 FROM main.attempt WHERE trial_id = ? AND environment_id = ? AND started_ns = ? AND "
        "ended_ns = ?");
    if (same.bind(trial).bind(environment).bind(attempts.integer(9)).bind(attempts.integer(10)).step()) {
      ++merged.known;
      continue;
    }
    Statement(db,
              "INSERT INTO main.attempt(trial_id,environment_id,n,status,started_ns,ended_ns,reason) "
              "VALUES(?,?,1+(SELECT COALESCE(MAX(n),0) FROM main.attempt WHERE trial_id=?),?,?,?,?)")
        .bind(trial)
        .bind(environment)
        .bind(trial)
        .bind(attempts.text(8))
        .bind(attempts.integer(9))
        .bind(attempts.integer(10))
        .bind(attempts.is_null(11) ? std::optional<std::string>() : attempts.text(11))
        .run();
    const std::int64_t attempt = sqlite3_last_insert_rowid(db), there = attempts.integer(0);
    copy_rows(db, "sample", "attempt_id", there, attempt, "value,is_nan,method");
    Statement kernels(db, "SELECT id FROM other.kernel WHERE attempt_id = ? ORDER BY ordinal");
    kernels.bind(there);
    while (kernels.step()) {
      const std::string columns =
          "ordinal,name,ops_json,schemes_json,grid_json,block_json,grid_barriers,regs,spill_bytes,"
          "smem_bytes,time_us,time_method,source_sha256";
      Statement(db, fmt::format(
                        "INSERT INTO main.kernel(attempt_id,{0}) SELECT ?,{0} FROM other.kernel WHERE id = ?",
                        columns))
          .bind(attempt)
          .bind(kernels.integer(0))
          .run();
      copy_rows(db, "counter", "kernel_id", kernels.integer(0), sqlite3_last_insert_rowid(db),
                "value,method,tool,tool_version");
    }
    ++merged.attempts;
  }
  transaction.commit();
  return merged;
}

}  // namespace stitchwork
