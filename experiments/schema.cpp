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

/// Identity and methods (docs/store.md). What nothing ever wrote is dropped: artifact, baseline, kernel's
/// paths, sample's round and idx (always 0), attempt's heartbeat (its end) and three of its statuses. Library
/// calls and gaps of simulated runs were recorded as simulated: they were modelled, and totals are of both.
constexpr std::string_view kVersion4 = R"sql(
DROP VIEW failures;
DROP VIEW kernel_counters;
DROP VIEW kernels;
DROP VIEW results;
DROP VIEW v_summary;
DROP TABLE artifact;
DROP TABLE baseline;
ALTER TABLE kernel DROP COLUMN cuda_path;
ALTER TABLE kernel DROP COLUMN ptx_path;
ALTER TABLE attempt DROP COLUMN heartbeat_ns;
ALTER TABLE environment ADD COLUMN gpu_uuid TEXT;
ALTER TABLE environment ADD COLUMN gpu_clocks TEXT;

CREATE TABLE sample_4(
  attempt_id INTEGER NOT NULL REFERENCES attempt(id) ON DELETE CASCADE, metric_id INTEGER NOT NULL REFERENCES metric_def(id),
  method TEXT NOT NULL CHECK(method IN ('measured','simulated','sampled','modelled','imported') OR method GLOB '*ed + *ed'),
  value REAL, is_nan INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(attempt_id, metric_id, method)) WITHOUT ROWID;
INSERT INTO sample_4(attempt_id, metric_id, method, value, is_nan)
  SELECT attempt_id, metric_id,
         CASE WHEN name = 'overhead_us' THEN 'modelled'
              WHEN name = 'library_us' AND method IN ('simulated','sampled') THEN 'modelled'
              WHEN name = 'total_us' AND method IN ('simulated','sampled','measured') AND EXISTS(
                SELECT 1 FROM sample AS part JOIN metric_def AS of_part ON of_part.id = part.metric_id
                WHERE part.attempt_id = sample.attempt_id AND part.value <> 0 AND
                      (of_part.name = 'overhead_us' OR (of_part.name = 'library_us' AND sample.method <> 'measured')))
                THEN method || ' + modelled'
              ELSE method END, value, is_nan
  FROM sample JOIN metric_def ON metric_def.id = sample.metric_id WHERE round = 0 AND idx = 0;
DROP TABLE sample;
ALTER TABLE sample_4 RENAME TO sample;

UPDATE trial SET params_json = json_set(params_json, '$.seed', seed)
  WHERE json_extract(params_json, '$.backend') <> 'imported';
UPDATE trial SET params_json = json_remove(params_json, '$.cache') WHERE json_extract(params_json, '$.backend') = 'model';
UPDATE trial SET params_json = json_set(params_json, '$.mode', 'exact')
  WHERE json_extract(params_json, '$.backend') = 'sim' AND json_extract(params_json, '$.mode') IS NULL;
UPDATE trial SET params_json = json_remove(json_set(params_json, '$.plan', 'from a file'), '$.edited_plan')
  WHERE json_extract(params_json, '$.edited_plan');

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(replace(sql, '''pending'',', ''), '''running'',', ''), '''skipped'',', '')
  WHERE type = 'table' AND name = 'attempt';
PRAGMA writable_schema = RESET;

CREATE VIEW attempts AS
  SELECT attempt.id AS attempt_id, experiment.name AS experiment, trial.workload, json_extract(trial.params_json, '$.device') AS device,
         json_extract(trial.params_json, '$.backend') AS backend, trial.variant, trial.seed, trial.trial_key, trial.params_json AS params,
         trial.id AS trial_id, attempt.n AS attempt, attempt.status, attempt.reason, attempt.started_ns, attempt.ended_ns,
         attempt.environment_id
  FROM attempt JOIN trial ON trial.id = attempt.trial_id JOIN experiment ON experiment.id = trial.experiment_id;
CREATE VIEW series AS
  SELECT attempt_id, name AS metric, unit, method,
         CASE WHEN method = 'modelled' THEN ''
              WHEN name IN ('plan_ms','compile_ms','run_ms') THEN COALESCE(host, '') || ', ' || COALESCE(cpu, '')
              WHEN method GLOB 'measured*' OR method = 'imported' THEN COALESCE(gpu_name, '') || COALESCE(', ' || gpu_uuid, '') ||
                COALESCE(', driver ' || driver, '') || COALESCE(', ' || gpu_clocks, '') || COALESCE(', ' || cuda, '')
              ELSE COALESCE(cuda, '') END AS source, value
  FROM sample JOIN metric_def ON metric_def.id = metric_id JOIN attempt ON attempt.id = attempt_id
  JOIN environment ON environment.id = environment_id WHERE is_nan = 0
  UNION ALL
  SELECT attempt_id, metric_def.name, unit, MIN(method),
         CASE WHEN MIN(method) = 'modelled' THEN ''
              WHEN MIN(method) IN ('measured','imported') THEN COALESCE(gpu_name, '') || COALESCE(', ' || gpu_uuid, '') ||
                COALESCE(', driver ' || driver, '') || COALESCE(', ' || gpu_clocks, '') || COALESCE(', ' || cuda, '')
              ELSE COALESCE(cuda, '') END, SUM(counter.value)
  FROM kernel JOIN counter ON counter.kernel_id = kernel.id JOIN metric_def ON metric_def.id = counter.metric_id
  JOIN attempt ON attempt.id = attempt_id JOIN environment ON environment.id = environment_id
  WHERE unit <> '1' GROUP BY attempt_id, counter.metric_id
  HAVING MIN(method) = MAX(method) OR (MIN(method) = 'sampled' AND MAX(method) = 'simulated');
CREATE VIEW results AS
  WITH ranked AS (
    SELECT attempts.*, metric, unit, method, source, value,
           ROW_NUMBER() OVER (PARTITION BY experiment, trial_key, workload, variant, metric, method, source ORDER BY value) AS r,
           COUNT(*) OVER (PARTITION BY experiment, trial_key, workload, variant, metric, method, source) AS n
    FROM attempts JOIN series USING (attempt_id) WHERE status = 'ok')
  SELECT experiment, workload, device, backend, variant, seed, metric,
         AVG(CASE WHEN r IN ((n + 1) / 2, (n + 2) / 2) THEN value END) AS value, unit, method, MAX(n) AS samples,
         MIN(value) AS min, MAX(CASE WHEN r = (n + 3) / 4 THEN value END) AS q25,
         MAX(CASE WHEN r = (3 * n + 3) / 4 THEN value END) AS q75, MAX(value) AS max, source, params, trial_key,
         MAX(attempt_id) AS attempt_id
  FROM ranked GROUP BY experiment, trial_key, workload, variant, metric, method, source;
CREATE VIEW kernels AS
  SELECT experiment, workload, device, backend, variant, seed, attempt, kernel.ordinal, kernel.name AS kernel, kernel.time_us,
         kernel.time_method, kernel.grid_json AS grid, kernel.block_json AS block, kernel.grid_barriers, kernel.regs AS registers,
         kernel.smem_bytes AS shared_bytes, params, trial_key, attempts.attempt_id, kernel.id AS kernel_id
  FROM attempts JOIN kernel ON kernel.attempt_id = attempts.attempt_id
  WHERE attempts.attempt_id IN (SELECT MAX(attempt_id) FROM attempts WHERE status = 'ok' GROUP BY experiment, trial_key, workload, variant);
CREATE VIEW kernel_counters AS
  SELECT kernels.*, metric_def.name AS counter, counter.value, metric_def.unit, counter.method, counter.tool
  FROM kernels JOIN counter ON counter.kernel_id = kernels.kernel_id JOIN metric_def ON metric_def.id = counter.metric_id;
CREATE VIEW failures AS
  SELECT experiment, workload, device, backend, variant, seed, attempt, status, reason, params, trial_key, attempt_id
  FROM attempts WHERE status <> 'ok';
)sql";

constexpr std::array<std::string_view, 4> kMigrations = {kVersion1, kVersion2, kVersion3, kVersion4};

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
