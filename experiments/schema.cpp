#include "experiments/schema.h"

#include <array>

#include "experiments/sqlite.h"

namespace stitchwork {
namespace {

constexpr std::string_view kVersion1 = R"sql(
CREATE TABLE environment(
  id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, host TEXT, os TEXT, cpu TEXT, gpu_name TEXT, sm_arch TEXT, driver TEXT,
  cuda TEXT, compiler TEXT, app_version TEXT, git_commit TEXT, git_dirty INTEGER, env_json TEXT);
CREATE TABLE experiment(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, spec_json TEXT NOT NULL, spec_hash TEXT NOT NULL, created_ns INTEGER NOT NULL,
  UNIQUE(name, spec_hash));
CREATE TABLE trial(
  id INTEGER PRIMARY KEY, experiment_id INTEGER NOT NULL REFERENCES experiment(id), workload TEXT NOT NULL, variant TEXT NOT NULL,
  params_json TEXT NOT NULL, seed INTEGER NOT NULL, trial_key TEXT NOT NULL, UNIQUE(experiment_id, trial_key));
CREATE TABLE attempt(
  id INTEGER PRIMARY KEY, trial_id INTEGER NOT NULL REFERENCES trial(id), environment_id INTEGER NOT NULL REFERENCES environment(id),
  n INTEGER NOT NULL,
  status TEXT NOT NULL CHECK(status IN ('pending','running','ok','failed','skipped','timeout','killed')),
  started_ns INTEGER, ended_ns INTEGER, heartbeat_ns INTEGER, reason TEXT, UNIQUE(trial_id, n));
CREATE TABLE metric_def(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT NOT NULL, direction INTEGER NOT NULL CHECK(direction IN (-1,0,1)),
  description TEXT NOT NULL);
CREATE TABLE sample(
  attempt_id INTEGER NOT NULL REFERENCES attempt(id) ON DELETE CASCADE, metric_id INTEGER NOT NULL REFERENCES metric_def(id),
  round INTEGER NOT NULL, idx INTEGER NOT NULL, value REAL, is_nan INTEGER NOT NULL DEFAULT 0,
  method TEXT NOT NULL CHECK(method IN ('measured','simulated','modelled','imported')),
  PRIMARY KEY(attempt_id, metric_id, round, idx)) WITHOUT ROWID;
CREATE TABLE kernel(
  id INTEGER PRIMARY KEY, attempt_id INTEGER NOT NULL REFERENCES attempt(id) ON DELETE CASCADE, ordinal INTEGER NOT NULL,
  name TEXT NOT NULL, ops_json TEXT NOT NULL, schemes_json TEXT NOT NULL, grid_json TEXT NOT NULL, block_json TEXT NOT NULL,
  grid_barriers INTEGER NOT NULL, regs INTEGER, spill_bytes INTEGER, smem_bytes INTEGER, time_us REAL,
  time_method TEXT NOT NULL CHECK(time_method IN ('measured','simulated','modelled','imported')),
  source_sha256 TEXT, cuda_path TEXT, ptx_path TEXT, UNIQUE(attempt_id, ordinal));
CREATE TABLE counter(
  kernel_id INTEGER NOT NULL REFERENCES kernel(id) ON DELETE CASCADE, metric_id INTEGER NOT NULL REFERENCES metric_def(id), value REAL,
  method TEXT NOT NULL CHECK(method IN ('measured','simulated','modelled','imported')), tool TEXT NOT NULL, tool_version TEXT NOT NULL,
  PRIMARY KEY(kernel_id, metric_id, method, tool)) WITHOUT ROWID;
CREATE TABLE artifact(
  id INTEGER PRIMARY KEY, attempt_id INTEGER NOT NULL REFERENCES attempt(id) ON DELETE CASCADE, kind TEXT NOT NULL, sha256 TEXT NOT NULL,
  bytes INTEGER NOT NULL, relpath TEXT NOT NULL);
CREATE TABLE baseline(
  name TEXT PRIMARY KEY, experiment_id INTEGER NOT NULL REFERENCES experiment(id), env_id INTEGER REFERENCES environment(id), note TEXT);
CREATE INDEX trial_by_key ON trial(trial_key);
CREATE VIEW v_summary AS
  WITH ranked AS (
    SELECT attempt_id, metric_id, method, value,
           ROW_NUMBER() OVER (PARTITION BY attempt_id, metric_id, method ORDER BY value) AS r,
           COUNT(*) OVER (PARTITION BY attempt_id, metric_id, method) AS n
    FROM sample WHERE is_nan = 0)
  SELECT attempt_id, metric_id, method, MAX(n) AS n,
         AVG(CASE WHEN r IN ((n + 1) / 2, (n + 2) / 2) THEN value END) AS median,
         MAX(CASE WHEN r = (n + 3) / 4 THEN value END) AS q25,
         MAX(CASE WHEN r = (3 * n + 3) / 4 THEN value END) AS q75,
         MIN(value) AS min, MAX(value) AS max
  FROM ranked GROUP BY attempt_id, metric_id, method;
)sql";

/// Views with plain names, for people with a SQLite tool.
constexpr std::string_view kVersion2 = R"sql(
CREATE VIEW results AS
  SELECT experiment.name AS experiment, trial.workload, json_extract(trial.params_json, '$.device') AS device, trial.variant, trial.seed,
         attempt.n AS attempt, metric_def.name AS metric, v_summary.median AS value, metric_def.unit, v_summary.method, v_summary.n AS samples,
         v_summary.min, v_summary.max, attempt.id AS attempt_id
  FROM attempt JOIN trial ON trial.id = attempt.trial_id JOIN experiment ON experiment.id = trial.experiment_id
  JOIN v_summary ON v_summary.attempt_id = attempt.id JOIN metric_def ON metric_def.id = v_summary.metric_id
  WHERE attempt.status = 'ok';
CREATE VIEW kernels AS
  SELECT experiment.name AS experiment, trial.workload, json_extract(trial.params_json, '$.device') AS device, trial.variant, trial.seed,
         attempt.n AS attempt, kernel.ordinal, kernel.name AS kernel, kernel.time_us, kernel.time_method, kernel.grid_json AS grid,
         kernel.block_json AS block, kernel.grid_barriers, kernel.regs AS registers, kernel.smem_bytes AS shared_bytes,
         attempt.id AS attempt_id, kernel.id AS kernel_id
  FROM kernel JOIN attempt ON attempt.id = kernel.attempt_id JOIN trial ON trial.id = attempt.trial_id
  JOIN experiment ON experiment.id = trial.experiment_id WHERE attempt.status = 'ok';
CREATE VIEW kernel_counters AS
  SELECT kernels.*, metric_def.name AS counter, counter.value, metric_def.unit, counter.method, counter.tool
  FROM kernels JOIN counter ON counter.kernel_id = kernels.kernel_id JOIN metric_def ON metric_def.id = counter.metric_id;
CREATE VIEW failures AS
  SELECT experiment.name AS experiment, trial.workload, json_extract(trial.params_json, '$.device') AS device, trial.variant, trial.seed,
         attempt.n AS attempt, attempt.status, attempt.reason, attempt.id AS attempt_id
  FROM attempt JOIN trial ON trial.id = attempt.trial_id JOIN experiment ON experiment.id = trial.experiment_id
  WHERE attempt.status IN ('failed', 'timeout', 'killed');
)sql";

/// Method 'sampled'. A CHECK constraint is nothing in the file but its text, which is edited where it stands
/// (SQLite's documentation of ALTER TABLE, section 7); a view made and dropped tells
/// other connections that the schema has changed.
constexpr std::string_view kVersion3 = R"sql(
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''simulated'',', '''simulated'',''sampled'',')
  WHERE type = 'table' AND name IN ('sample', 'kernel', 'counter');
PRAGMA writable_schema = RESET;
CREATE VIEW changed AS SELECT 1;
DROP VIEW changed;
)sql";

constexpr std::array<std::string_view, 3> kMigrations = {kVersion1, kVersion2, kVersion3};

}  // namespace

std::span<const std::string_view> migrations() { return kMigrations; }

void migrate(sqlite3* db) {
  const auto version = [&] {
    Statement query(db, "PRAGMA user_version");
    query.step();
    return query.integer(0);
  };
  const auto newest = static_cast<std::int64_t>(kMigrations.size());
  if (version() == newest) return;
  Transaction transaction(db);
  if (version() > newest) {
    const char* file = sqlite3_db_filename(db, "main");
    throw Error(file, 0, 0,
                fmt::format("has store version {}, newer than this program's {}", version(), newest),
                "update stitchwork");
  }
  // Read again under the write lock: another process may have migrated meanwhile.
  for (std::int64_t at = version(); at < newest; ++at)
    execute(db, std::string(kMigrations[static_cast<std::size_t>(at)]));
  execute(db,
          fmt::format("PRAGMA user_version = {}; PRAGMA application_id = {}", newest, kStoreApplicationId));
  transaction.commit();
}

}  // namespace stitchwork
