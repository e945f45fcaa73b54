#include "experiments/store.h"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/overrides_json.h"
#include "core/error.h"
#include "core/hlo_text.h"
#include "core/version.h"
#include "experiments/limits.h"
#include "experiments/metrics.h"
#include "experiments/schema.h"
#include "experiments/sqlite.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Big-endian 32-bit word of a SQLite header.
std::uint32_t word_at(const std::string& header, std::size_t offset) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) word = word << 8 | static_cast<unsigned char>(header[offset + i]);
  return word;
}

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
void check_header(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error) || fs::file_size(path, error) == 0) return;
  if (fs::is_directory(path, error))
    throw Error(path, 0, 0, "is a folder, not a store", "give a file name with --db");
  std::ifstream in(path, std::ios::binary);
  std::string header(100, '\0');
  in.read(header.data(), static_cast<std::streamsize>(header.size()));
  if (in.bad() || !in.is_open()) throw Error(path, 0, 0, "cannot be read", "check its permissions");
  const bool sqlite = in.gcount() == 100 && header.compare(0, 15, "SQLite format 3") == 0;
  if (!sqlite)
    throw Error(path, 0, 0, "is not a SQLite database",
                "give another file with --db; this one was left alone");
  // Offsets of user_version and application_id: https://www.sqlite.org/fileformat2.html section 1.3.
  const std::uint32_t user_version = word_at(header, 60), application = word_at(header, 68);
  if (application != static_cast<std::uint32_t>(kStoreApplicationId))
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

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0)
      if (const std::size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown";
}

std::int64_t environment_row(sqlite3* db, const TrialSpec& spec, const TrialResult& result) {
  utsname system{};
  ::uname(&system);
  const Version& v = version();
  const Device& target = device(spec.device);
  const std::string gpu = spec.backend == "cuda"  ? target.name
                          : spec.backend == "sim" ? target.name + " (simulated)"
                                                  : target.name + " (modelled)";
  ordered_json env{{"host", system.nodename},
                   {"os", std::string(system.sysname) + " " + system.release},
                   {"cpu", cpu_name()},
                   {"gpu", gpu},
                   {"ptx_compiler", result.executable.compiler},
                   {"compiler", v.compiler},
                   {"version", v.version},
                   {"commit", v.commit},
                   {"dirty", v.dirty}};
  const std::string text = env.dump(), hash = sha256_hex(text);
  Statement(db,
            "INSERT OR IGNORE INTO "
            "environment(hash,host,os,cpu,gpu_name,sm_arch,driver,cuda,compiler,app_version,git_commit,"
            "git_dirty,env_json) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)")
      .bind(hash)
      .bind(system.nodename)
      .bind(std::string(system.sysname) + " " + system.release)
      .bind(cpu_name())
      .bind(gpu)
      .bind(fmt::format("sm_{}{}", target.cc_major, target.cc_minor))
      .bind(nullptr)
      .bind(result.executable.compiler)
      .bind(v.compiler)
      .bind(v.version)
      .bind(v.commit)
      .bind(v.dirty ? 1 : 0)
      .bind(text)
      .run();
  Statement query(db, "SELECT id FROM environment WHERE hash = ?");
  query.bind(hash).step();
  return query.integer(0);
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
  ordered_json params{{"device", device(spec.device).id},
                      {"backend", spec.backend},
                      {"cache", spec.cache == sim::CacheMode::kCold ? "cold" : "warm"},
                      {"planner", spec.planner},
                      {"options", spec.options.knobs},
                      {"model_sha256", model.graph.source_sha256}};
  if (spec.sampled) params["mode"] = "sampled";
  if (!spec.limits.empty()) params["limits"] = spec.limits;
  if (!spec.options.edits.empty()) params["overrides"] = edits_to_json(spec.options.edits);
  if (spec.plan) params["edited_plan"] = true;
  Statement(db,
            "INSERT OR IGNORE INTO trial(experiment_id,workload,variant,params_json,seed,trial_key) "
            "VALUES(?,?,?,?,?,?)")
      .bind(experiment)
      .bind(model.graph.source)
      .bind(spec.variant.empty() ? spec.planner : spec.variant)
      .bind(params.dump())
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
            "INSERT INTO attempt(trial_id,environment_id,n,status,started_ns,ended_ns,heartbeat_ns,reason) "
            "VALUES(?,?,1+(SELECT COALESCE(MAX(n),0) FROM attempt WHERE trial_id=?),?,?,?,?,?)")
      .bind(trial)
      .bind(environment)
      .bind(trial)
      .bind(status)
      .bind(ended - static_cast<std::int64_t>(1e6 * elapsed_ms))
      .bind(ended)
      .bind(ended)
      .bind(reason.empty() ? std::optional<std::string>() : reason)
      .run();
  return sqlite3_last_insert_rowid(db);
}

class Samples {
 public:
  Samples(sqlite3* db, std::int64_t attempt)
      : db_(db),
        attempt_(attempt),
        insert_(
            db,
            "INSERT INTO sample(attempt_id,metric_id,round,idx,value,is_nan,method) VALUES(?,?,0,0,?,?,?)") {}
  void add(std::string_view metric, double value, Method method) {
    const bool nan = value != value;
    insert_.bind(attempt_).bind(metric_id(db_, metric));
    if (nan)
      insert_.bind(nullptr);
    else
      insert_.bind(value);
    insert_.bind(nan ? 1 : 0).bind(name(method)).run();
  }

 private:
  sqlite3* db_;
  std::int64_t attempt_;
  Statement insert_;
};

void insert_kernels(sqlite3* db, std::int64_t attempt, const Model& model, const TrialResult& result) {
  const Computation& entry = model.graph.entry_computation();
  const FusionPlan& plan = result.executable.plan;
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
    const auto add = [&](std::string_view metric, double value, std::string_view tool, std::string_view of) {
      counter.bind(kernel_id)
          .bind(metric_id(db, metric))
          .bind(value)
          .bind(name(run.method))
          .bind(tool)
          .bind(of)
          .run();
    };
    for (const auto& [metric, value] : run.profiled) add(metric, value, "Nsight Compute", "");
    if (run.method == Method::kMeasured) continue;  // a GPU's other counters are unknown
    for (const auto& [metric, value] : sim::counter_list(run.counters)) {
      const bool known = run.method != Method::kModelled || metric == "dram_read_transactions" ||
                         metric == "dram_write_transactions" || metric == "inst_fp_32" ||
                         metric == "achieved_occupancy" || metric == "sm_efficiency";
      if (known) add(metric, value, "stitchwork", version().version);
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
  if (!opened().knows(path)) check_header(path);
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

  const FusionPlan& plan = result.executable.plan;
  const Method executed = spec.sampled              ? Method::kSampled
                          : spec.backend == "sim"   ? Method::kSimulated
                          : spec.backend == "model" ? Method::kModelled
                                                    : Method::kMeasured;
  double kernel_us = 0;
  int barriers = 0;
  for (const KernelRun& run : result.run.kernels) kernel_us += run.time_us;
  for (const KernelPlan& k : plan.kernels) barriers += k.launch.grid_barriers;
  Samples samples(db, attempt);
  samples.add("memory_kernels", plan.counts.memory_kernels, Method::kModelled);
  samples.add("library_calls", plan.counts.library_calls, Method::kModelled);
  samples.add("copies", plan.counts.copies, Method::kModelled);
  samples.add("memsets", plan.counts.memsets, Method::kModelled);
  samples.add("grid_barriers_planned", barriers, Method::kModelled);
  samples.add("predicted_us", plan.predicted_us, Method::kModelled);
  samples.add("kernel_us", kernel_us, executed);
  samples.add("total_us", result.run.total_us, executed);
  double library_us = 0, control_us = 0;
  for (std::size_t i = 0; i < result.run.steps.size(); ++i) {
    const StepKind kind = plan.steps[i].kind;
    if (kind == StepKind::kLibrary) library_us += result.run.steps[i].time_us;
    if (kind == StepKind::kControl) control_us += result.run.steps[i].time_us;
  }
  samples.add("library_us", library_us, executed);
  samples.add("overhead_us", result.run.total_us - kernel_us - library_us - control_us, executed);
  std::int64_t ops = 0;
  for (const Computation& computation : model.graph.computations)
    ops += static_cast<std::int64_t>(computation.nodes.size());
  samples.add("graph_ops", static_cast<double>(ops), Method::kModelled);
  const LimitTimes limits = limit_times(target_of(spec), result.costs);
  for (std::size_t i = 0; i < kLimits.size(); ++i)
    samples.add(kLimits[i].metric, limits[i], Method::kModelled);
  samples.add("plan_ms", result.plan_ms, Method::kMeasured);
  samples.add("compile_ms", result.compile_ms, Method::kMeasured);
  samples.add("run_ms", result.run_ms, Method::kMeasured);
  if (result.check) {
    samples.add("check_max_abs_error", result.check->max_abs_error, executed);
    samples.add("check_max_rel_error", result.check->max_rel_error, executed);
  }
  insert_kernels(db, attempt, model, result);
  transaction.commit();
  return attempt;
}

std::string Store::last_status(const std::string& experiment, const std::string& variant,
                               const std::string& trial_key) const {
  Statement query(db_.get(),
                  "SELECT status FROM attempt JOIN trial ON trial.id = trial_id JOIN experiment ON "
                  "experiment.id = experiment_id WHERE experiment.name = ? AND variant = ? AND trial_key = ? "
                  "ORDER BY attempt.id DESC LIMIT 1");
  return query.bind(experiment).bind(variant).bind(trial_key).step() ? query.text(0) : "";
}

std::string default_store_path() {
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  const std::string base = data && *data ? data : std::string(home ? home : ".") + "/.local/share";
  return base + "/stitchwork/runs.db";
}

}  // namespace stitchwork
