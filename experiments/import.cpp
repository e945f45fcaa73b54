#include "experiments/import.h"

#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "core/hlo/hlo_text.h"
#include "experiments/clock.h"
#include "experiments/metrics.h"
#include "experiments/sqlite.h"
#include "occupancy_model/device.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;
constexpr const char* kTool = "ncu";

/// The row with these values, made where it is not there.
std::int64_t row_of(sqlite3* db, const std::string& insert, const std::string& select,
                    const std::vector<std::string>& inserted, const std::vector<std::string>& selected) {
  Statement make(db, insert);
  for (const std::string& value : inserted) make.bind(value);
  make.run();
  Statement find(db, select);
  for (const std::string& value : selected) find.bind(value);
  find.step();
  return find.integer(0);
}

std::int64_t environment_of(sqlite3* db, const ImportedProfile& profile, const Device& device) {
  const std::string gpu = profile.device.empty() ? device.name : profile.device;
  const std::string arch = fmt::format("sm_{}{}", device.cc_major, device.cc_minor);
  const std::string text = ordered_json{{"gpu", gpu}, {"tool", kTool}, {"sm_arch", arch}}.dump();
  return row_of(db,
                "INSERT OR IGNORE INTO environment(hash,gpu_name,sm_arch,app_version,git_commit,git_dirty,"
                "env_json) VALUES(?,?,?,?,?,0,?)",
                "SELECT id FROM environment WHERE hash = ?",
                {sha256_hex(text), gpu, arch, version().version, version().commit, text}, {sha256_hex(text)});
}

}  // namespace

bool import_profile(Store& store, const ImportedProfile& profile, const ImportOptions& options,
                    const std::string& sha256) {
  sqlite3* db = store.handle();
  Transaction transaction(db);
  const Device& target = device(options.device);
  const std::string spec = ordered_json{{"name", options.experiment}, {"imported", kTool}}.dump();
  const std::string now = std::to_string(now_ns());
  const std::int64_t experiment =
      row_of(db,
             "INSERT OR IGNORE INTO experiment(name,spec_json,spec_hash,created_ns) VALUES(?,?,?,CAST(? AS "
             "INTEGER))",
             "SELECT id FROM experiment WHERE name = ? AND spec_hash = ?",
             {options.experiment, spec, sha256_hex(spec), now}, {options.experiment, sha256_hex(spec)});
  const std::string params = ordered_json{
      {"device", target.id},
      {"backend", "imported"},
      {"tool", kTool},
      {"sha256", sha256}}.dump();
  const std::string key = sha256_hex(fmt::format("{}\n{}\n{}", options.workload, options.variant, params));
  Statement known(db,
                  "SELECT 1 FROM attempt JOIN trial ON trial.id = trial_id WHERE experiment_id = ? AND "
                  "trial_key = ?");
  if (known.bind(experiment).bind(key).step()) return false;
  Statement(db,
            "INSERT INTO trial(experiment_id,workload,variant,params_json,seed,trial_key) "
            "VALUES(?,?,?,?,0,?)")
      .bind(experiment)
      .bind(options.workload)
      .bind(options.variant)
      .bind(params)
      .bind(key)
      .run();
  const std::int64_t trial = sqlite3_last_insert_rowid(db);
  Statement(db,
            "INSERT INTO attempt(trial_id,environment_id,n,status,started_ns,ended_ns) "
            "VALUES(?,?,1,'ok',?,?)")
      .bind(trial)
      .bind(environment_of(db, profile, target))
      .bind(now_ns())
      .bind(now_ns())
      .run();
  const std::int64_t attempt = sqlite3_last_insert_rowid(db);
  double us = 0;
  bool timed = true;
  Statement kernel(db,
                   "INSERT INTO kernel(attempt_id,ordinal,name,ops_json,schemes_json,grid_json,block_json,"
                   "grid_barriers,regs,time_us,time_method) VALUES(?,?,?,'[]','{}',?,?,0,?,?,'imported')");
  Statement counter(
      db, "INSERT INTO counter(kernel_id,metric_id,value,method,tool,tool_version) VALUES(?,?,?,?,?,'')");
  for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
    const ProfiledKernel& k = profile.kernels[i];
    const auto registers = k.counters.find("registers");
    kernel.bind(attempt)
        .bind(static_cast<std::int64_t>(i))
        .bind(k.name)
        .bind(k.grid)
        .bind(k.block)
        .bind(registers == k.counters.end() ? std::optional<double>() : registers->second)
        .bind(k.time_us)
        .run();
    const std::int64_t id = sqlite3_last_insert_rowid(db);
    us += k.time_us.value_or(0);
    timed = timed && k.time_us;
    for (const auto& [name, value] : k.counters)
      counter.bind(id).bind(metric_id(db, name)).bind(value).bind("imported").bind(kTool).run();
  }
  Statement sample(db,
                   "INSERT INTO sample(attempt_id,metric_id,value,is_nan,method) VALUES(?,?,?,0,'imported')");
  const auto add = [&](std::string_view metric, double value) {
    sample.bind(attempt).bind(metric_id(db, metric)).bind(value).run();
  };
  add("memory_kernels", static_cast<double>(profile.kernels.size()));
  if (timed) add("kernel_us", us);
  transaction.commit();
  return true;
}

}  // namespace stitchwork
