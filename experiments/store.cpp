#include "experiments/store.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/base/version.h"
#include "core/hlo/hlo_text.h"
#include "experiments/clock.h"
#include "experiments/environment.h"
#include "experiments/metrics.h"
#include "experiments/schema.h"
#include "experiments/sqlite.h"
#include "experiments/trial_metrics.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::atomic<int> open_now = 0;

/// Files that this process has had open as stores.
class Opened {
 public:
  bool knows(const std::string& path) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto file = identity(path);
    return file && files_.count(*file) > 0;
  }
  void add(const std::string& path) {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (const auto file = identity(path)) files_.insert(*file);
  }

 private:
  using Identity = std::pair<dev_t, ino_t>;
  static std::optional<Identity> identity(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return std::nullopt;
    return Identity(status.st_dev, status.st_ino);
  }
  std::mutex mutex_;
  std::set<Identity> files_;
};

Opened& opened() {
  static Opened files;
  return files;
}

/// Refuses a file that is not ours before SQLite may touch it (it would add journal files beside it).
void check_store_header(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error) || fs::file_size(path, error) == 0) return;
  if (fs::is_directory(path, error))
    throw Error(path, 0, 0, "is a folder, not a store", "give a file name with --db");
  const auto header = sqlite_header(path);
  if (!header)
    throw Error(path, 0, 0, "is not a SQLite database",
                "give another file with --db; this one was left alone");
  const std::uint32_t user_version = header->user_version;
  if (header->application_id != static_cast<std::uint32_t>(kStoreApplicationId))
    throw Error(path, 0, 0, "is a database of another program",
                "give another file with --db; this one was left alone");
  if (user_version > migrations().size())
    throw Error(
        path, 0, 0,
        fmt::format("has store version {}, newer than this program's {}", user_version, migrations().size()),
        "update stitchwork");
}

/// Switches to a write-ahead log. SQLite does not wait for a process that is switching too, so this does.
void write_ahead(sqlite3* db, std::chrono::milliseconds wait) {
  execute(db, "PRAGMA synchronous = NORMAL");
  const auto until = std::chrono::steady_clock::now() + wait;
  for (;;) {
    const int status = sqlite3_exec(db, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    if (status == SQLITE_OK) return;
    if (status != SQLITE_BUSY || std::chrono::steady_clock::now() > until) throw_sqlite(db, "store");
    sqlite3_sleep(50);
  }
}

std::string spec_of(const ExperimentId& experiment) {
  return experiment.spec.empty() ? ordered_json{{"name", experiment.name}}.dump() : experiment.spec;
}

std::int64_t experiment_row(sqlite3* db, const ExperimentId& experiment) {
  const std::string &name = experiment.name, spec = spec_of(experiment);
  Statement(db, "INSERT OR IGNORE INTO experiment(name,spec_json,spec_hash,created_ns) VALUES(?,?,?,?)")
      .bind(name)
      .bind(spec)
      .bind(sha256_hex(spec))
      .bind(now_ns())
      .run();
  Statement query(db, "SELECT id FROM experiment WHERE name = ? AND spec_hash = ?");
  query.bind(name).bind(sha256_hex(spec)).step();
  return query.integer(0);
}

std::int64_t trial_row(sqlite3* db, std::int64_t experiment, const Model& model, const TrialSpec& spec) {
  const std::string key = trial_key(model, spec);
  Statement(db,
            "INSERT OR IGNORE INTO trial(experiment_id,workload,variant,params_json,seed,trial_key) "
            "VALUES(?,?,?,?,?,?)")
      .bind(experiment)
      .bind(model.graph.source)
      .bind(variant_of(spec))
      .bind(trial_params(model, spec).dump())
      .bind(static_cast<std::int64_t>(spec.seed))
      .bind(key)
      .run();
  Statement query(db, "SELECT id FROM trial WHERE experiment_id = ? AND trial_key = ?");
  query.bind(experiment).bind(key).step();
  return query.integer(0);
}

std::string failure_reason(const TrialResult& result) {
  if (!result.run.findings.empty())
    return fmt::format("{}: {}", sim::name(result.run.findings[0].kind), result.run.findings[0].message);
  if (result.check && !result.check->ok) return "check: " + result.check->message;
  return "";
}

std::int64_t attempt_row(sqlite3* db, std::int64_t trial, std::int64_t environment, std::string_view status,
                         const std::string& reason, double elapsed_ms) {
  const std::int64_t ended = now_ns();
  Statement(db,
            "INSERT INTO attempt(trial_id,environment_id,n,status,started_ns,ended_ns,reason) "
            "VALUES(?,?,1+(SELECT COALESCE(MAX(n),0) FROM attempt WHERE trial_id=?),?,?,?,?)")
      .bind(trial)
      .bind(environment)
      .bind(trial)
      .bind(status)
      .bind(ended - static_cast<std::int64_t>(1e6 * elapsed_ms))
      .bind(ended)
      .bind(reason.empty() ? std::optional<std::string>() : reason)
      .run();
  return sqlite3_last_insert_rowid(db);
}

void insert_samples(sqlite3* db, std::int64_t attempt, const std::vector<TrialMetric>& all) {
  Statement insert(db, "INSERT INTO sample(attempt_id,metric_id,method,value,is_nan) VALUES(?,?,?,?,?)");
  for (const TrialMetric& one : all) {
    const bool nan = std::isnan(one.value);
    insert.bind(attempt)
        .bind(metric_id(db, one.metric))
        .bind(one.method)
        .bind(nan ? std::optional<double>() : one.value)
        .bind(nan ? 1 : 0)
        .run();
  }
}

void insert_kernels(sqlite3* db, std::int64_t attempt, const Model& model, const TrialResult& result) {
  const FusionPlan& plan = result.executable.plan;
  const Computation& entry = planned_graph(model.graph, plan).entry_computation();
  Statement kernel(
      db,
      "INSERT INTO "
      "kernel(attempt_id,ordinal,name,ops_json,schemes_json,grid_json,block_json,grid_barriers,regs,"
      "spill_bytes,smem_bytes,time_us,time_method,source_sha256) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  Statement counter(
      db, "INSERT INTO counter(kernel_id,metric_id,value,method,tool,tool_version) VALUES(?,?,?,?,?,?)");
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const KernelPlan& k = plan.kernels[i];
    const KernelRun& run = result.run.kernels[i];
    ordered_json ops = ordered_json::array(), schemes = ordered_json::object();
    for (NodeId id : k.ops) ops.push_back(entry.node(id).name);
    for (const auto& [id, scheme] : k.schemes) schemes[entry.node(id).name] = scheme_text(k, id);
    kernel.bind(attempt)
        .bind(static_cast<std::int64_t>(i))
        .bind(k.id + " " + k.name)
        .bind(ops.dump())
        .bind(schemes.dump())
        .bind(fmt::format("[{},1,1]", k.launch.grid))
        .bind(fmt::format("[{},1,1]", k.launch.block))
        .bind(k.launch.grid_barriers)
        .bind(run.registers)
        .bind(run.spill_bytes)
        .bind(k.launch.shared_bytes)
        .bind(run.time_us)
        .bind(name(run.method))
        .bind(result.executable.kernels[i].source_sha256)
        .run();
    const std::int64_t kernel_id = sqlite3_last_insert_rowid(db);
    const auto add = [&](std::string_view metric, double value, Method method, std::string_view tool,
                         std::string_view of) {
      counter.bind(kernel_id)
          .bind(metric_id(db, metric))
          .bind(value)
          .bind(name(method))
          .bind(tool)
          .bind(of)
          .run();
    };
    const Method of_parts = run.method == Method::kMeasured ? Method::kModelled : run.method;
    if (run.parts.total_us > 0) {
      for (const Limit& limit : kLimits)
        add(limit.counter, run.parts.*limit.part, of_parts, "stitchwork", version().version);
      for (std::size_t u = 0; u < kUnits.size(); ++u)
        if (run.parts.busy_us[u] > 0)
          add(busy_metric(u), run.parts.busy_us[u], of_parts, "stitchwork", version().version);
    }
    for (const auto& [metric, value] : run.profiled) add(metric, value, run.method, "Nsight Compute", "");
    if (run.method == Method::kMeasured) continue;  // a GPU's other counters are unknown
    for (const auto& [metric, value] : sim::counter_list(run.counters)) {
      const bool known = run.method != Method::kModelled || metric == "dram_read_transactions" ||
                         metric == "dram_write_transactions" || metric == "inst_fp_32" ||
                         metric == "achieved_occupancy" || metric == "sm_efficiency";
      if (known) add(metric, value, run.method, "stitchwork", version().version);
    }
  }
}

}  // namespace

void Store::Close::operator()(sqlite3* db) const {
  sqlite3_close(db);
  --open_now;
}

int open_stores() { return open_now; }
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

Store Store::open(const std::string& path, std::chrono::milliseconds wait) {
  std::error_code error;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) {
    fs::create_directories(folder, error);
    if (error)
      throw Error(path, 0, 0, fmt::format("its folder cannot be made: {}", error.message()),
                  "give another file with --db");
  }
  // Closing a file by hand drops every lock that SQLite holds on it for this process
  // (sqlite.org/howtocorrupt.html, section 2.2): what was ours is not looked at again.
  if (!opened().knows(path)) check_store_header(path);
  Store store(path);
  sqlite3* db = nullptr;
  const int status = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  store.db_.reset(db);
  if (db != nullptr) ++open_now;
  if (status != SQLITE_OK || sqlite3_db_readonly(db, "main") == 1)
    throw Error(
        path, 0, 0,
        status != SQLITE_OK ? fmt::format("cannot be opened: {}", sqlite3_errmsg(db)) : "cannot be written",
        "give another file with --db");
  sqlite3_busy_timeout(db, static_cast<int>(wait.count()));
  execute(db, "PRAGMA foreign_keys = ON");
  // Tables before the write-ahead log: what marks the file as ours is then in the file itself, where
  // check_header looks, and not only in a log that a kill may leave behind.
  migrate(db);
  write_ahead(db, wait);
  opened().add(path);
  return store;
}

namespace {

/// As SQLite's URIs write it (sqlite.org/uri.html): of a file that nobody changes.
std::string unchanging(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path)
    uri += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02x}", c) : std::string(1, c);
  return uri + "?immutable=1";
}

bool may_be_written(const std::string& path) {
  const fs::path folder = fs::absolute(path).parent_path();
  const auto may = [](const std::string& name) {
    return ::faccessat(AT_FDCWD, name.c_str(), W_OK, AT_EACCESS) == 0;
  };
  return may(path) && may(folder.string());
}

}  // namespace

Store Store::read(const std::string& path, std::chrono::milliseconds wait) {
  if (may_be_written(path)) return open(path, wait);
  const char* copied =
      "copy it, with the files of its name that end in -wal and -shm, to where you may write";
  if (!opened().knows(path)) check_store_header(path);
  std::error_code error;
  if (const auto log = fs::file_size(path + "-wal", error); !error && log > 0)
    throw Error(path, 0, 0, "cannot be read without writing: a run has not ended in it", copied);
  Store store(path);
  sqlite3* db = nullptr;
  const int status =
      sqlite3_open_v2(unchanging(path).c_str(), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  store.db_.reset(db);
  if (db != nullptr) ++open_now;
  if (status != SQLITE_OK)
    throw Error(path, 0, 0, fmt::format("cannot be opened: {}", sqlite3_errmsg(db)), "check its permissions");
  Statement version(db, "PRAGMA user_version");
  if (version.step() && version.integer(0) < static_cast<std::int64_t>(migrations().size()))
    throw Error(path, 0, 0, "is of an older version, and cannot be written", copied);
  opened().add(path);
  return store;
}

std::int64_t Store::record_failure(const ExperimentId& experiment, const Model& model, const TrialSpec& spec,
                                   std::string_view status, const std::string& reason, double elapsed_ms) {
  sqlite3* db = db_.get();
  Transaction transaction(db);
  const std::int64_t environment = environment_row(db, spec, {});
  const std::int64_t trial = trial_row(db, experiment_row(db, experiment), model, spec);
  const std::int64_t attempt = attempt_row(db, trial, environment, status, reason, elapsed_ms);
  transaction.commit();
  return attempt;
}

std::int64_t Store::record(const ExperimentId& experiment, const Model& model, const TrialSpec& spec,
                           const TrialResult& result) {
  sqlite3* db = db_.get();
  Transaction transaction(db);
  const std::int64_t environment = environment_row(db, spec, result);
  const std::int64_t trial = trial_row(db, experiment_row(db, experiment), model, spec);
  const std::int64_t attempt =
      attempt_row(db, trial, environment, result.ok() ? "ok" : "failed", failure_reason(result),
                  result.plan_ms + result.compile_ms + result.run_ms);

  insert_samples(db, attempt, trial_metrics(model, spec, result));
  insert_kernels(db, attempt, model, result);
  transaction.commit();
  return attempt;
}

std::string Store::last_status(const std::string& experiment, const std::string& trial_key) const {
  Statement query(db_.get(),
                  "SELECT status FROM attempt JOIN trial ON trial.id = trial_id JOIN experiment ON "
                  "experiment.id = experiment_id WHERE experiment.name = ? AND trial_key = ? "
                  "ORDER BY attempt.id DESC LIMIT 1");
  return query.bind(experiment).bind(trial_key).step() ? query.text(0) : "";
}

std::string default_store_path() {
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {  // a service, a container: not the folder that it happens to be in
    const passwd* user = getpwuid(getuid());
    home = user == nullptr ? nullptr : user->pw_dir;
  }
  const std::string base = data && *data ? data : std::string(home ? home : ".") + "/.local/share";
  return base + "/stitchwork/runs.db";
}

}  // namespace stitchwork
