#include "experiments/profile/import.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/sha256.h"
#include "core/base/version.h"
#include "core/hlo/hlo_text.h"
#include "experiments/clock.h"
#include "experiments/metrics.h"
#include "experiments/profile/kernel_names.h"
#include "experiments/profile/profile_text.h"
#include "experiments/sqlite.h"
#include "occupancy_model/device.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

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

std::int64_t environment_of(sqlite3* db, const Profile& profile, const Device& device) {
  const std::string gpu = profile.device.empty() ? device.name : profile.device;
  const std::string arch = fmt::format("sm_{}{}", device.cc_major, device.cc_minor);
  const std::string text = ordered_json{{"gpu", gpu}, {"tool", profile.tool}, {"sm_arch", arch}}.dump();
  return row_of(db,
                "INSERT OR IGNORE INTO environment(hash,gpu_name,sm_arch,app_version,git_commit,git_dirty,"
                "env_json) VALUES(?,?,?,?,?,0,?)",
                "SELECT id FROM environment WHERE hash = ?",
                {sha256_hex(text), gpu, arch, version().version, version().commit, text}, {sha256_hex(text)});
}

std::int64_t attempt_of(sqlite3* db, const Profile& profile, const Device& target, std::int64_t trial) {
  Statement(db,
            "INSERT INTO attempt(trial_id,environment_id,n,status,started_ns,ended_ns) "
            "VALUES(?,?,1,'ok',?,?)")
      .bind(trial)
      .bind(environment_of(db, profile, target))
      .bind(now_ns())
      .bind(now_ns())
      .run();
  return sqlite3_last_insert_rowid(db);
}

void insert_launches(sqlite3* db, std::int64_t attempt, const Profile& profile,
                     const ImportedIteration& iteration) {
  Statement kernel(db,
                   "INSERT INTO kernel(attempt_id,ordinal,name,ops_json,schemes_json,grid_json,block_json,"
                   "grid_barriers,regs,time_us,time_method) VALUES(?,?,?,?,'{}',?,?,0,?,?,'imported')");
  Statement counter(
      db, "INSERT INTO counter(kernel_id,metric_id,value,method,tool,tool_version) VALUES(?,?,?,?,?,'')");
  constexpr const char* kUnknownExtents = "[1]";
  std::int64_t ordinal = 0;
  for (std::size_t i = 0; i < iteration.iterations.launches.size(); ++i) {
    const ProfileLaunch& l = iteration.iterations.launches[i];
    if (l.kind != ProfileKind::kKernel) continue;
    const auto registers = l.counters.find("registers");
    kernel.bind(attempt)
        .bind(ordinal++)
        .bind(l.kernel)
        .bind(ordered_json(iteration.ops[i]).dump())
        .bind(l.grid.empty() ? kUnknownExtents : l.grid)
        .bind(l.block.empty() ? kUnknownExtents : l.block)
        .bind(registers == l.counters.end() ? std::optional<double>() : registers->second)
        .bind(l.timed ? std::optional(l.mean_us) : std::nullopt)
        .run();
    const std::int64_t id = sqlite3_last_insert_rowid(db);
    for (const auto& [name, value] : l.counters)
      counter.bind(id).bind(metric_id(db, name)).bind(value).bind("imported").bind(profile.tool).run();
  }
}

/// Numbers of the iteration as a whole. Without times of all launches there are only counts.
void insert_totals(sqlite3* db, std::int64_t attempt, const ImportedIteration& iteration) {
  struct Sum {
    double count = 0, us = 0;
    bool timed = true;
  } kernels, library, copies, memsets;
  for (std::size_t i = 0; i < iteration.iterations.launches.size(); ++i) {
    const ProfileLaunch& l = iteration.iterations.launches[i];
    Sum& sum = l.kind == ProfileKind::kCopy     ? copies
               : l.kind == ProfileKind::kMemset ? memsets
               : iteration.library[i] != 0      ? library
                                                : kernels;
    ++sum.count;
    sum.us += l.mean_us;
    sum.timed = sum.timed && l.timed;
  }
  Statement sample(db,
                   "INSERT INTO sample(attempt_id,metric_id,value,is_nan,method) VALUES(?,?,?,0,'imported')");
  const auto add = [&](std::string_view metric, double value) {
    sample.bind(attempt).bind(metric_id(db, metric)).bind(value).run();
  };
  add("memory_kernels", kernels.count);
  add("library_calls", library.count);
  add("copies", copies.count);
  add("memsets", memsets.count);
  if (kernels.timed) add("kernel_us", kernels.us);
  if (library.timed) add("library_us", library.us);
  if (const std::optional<double> total = iteration.iterations.iteration_us) {
    add("total_us", *total);
    // Launches on several streams may overlap: there is no time outside of them then.
    if (const double outside = *total - kernels.us - library.us; outside >= 0) add("overhead_us", outside);
  }
}

}  // namespace

std::int64_t ImportedIteration::kernels() const {
  return std::ranges::count(iterations.launches, ProfileKind::kKernel, &ProfileLaunch::kind);
}

ImportedIteration unmatched_iteration(const Profile& profile, std::optional<std::int64_t> given) {
  std::vector<const ProfileEvent*> events;
  const int gpu = busiest_device(profile);
  for (const ProfileEvent& e : profile.events)
    if (e.device == gpu) events.push_back(&e);
  ImportedIteration result{
      find_iterations(events, {given, {}, profile.steps, profile.clock}, profile.file), {}, {}};
  for (const ProfileLaunch& l : result.iterations.launches) {
    result.ops.emplace_back();
    result.library.push_back(is_library_product(l.kernel) ? 1 : 0);
  }
  return result;
}

ImportedIteration matched_iteration(const ProfileComparison& comparison, const Model& model,
                                    const FusionPlan& plan) {
  ImportedIteration result{comparison.iterations, {}, {}};
  const Graph& graph = planned_graph(model.graph, plan);
  for (std::size_t i = 0; i < comparison.matches.size(); ++i) {
    const ProfileMatch& m = comparison.matches[i];
    const Computation& of = body_computation(graph, plan, m.stands_for.body);
    bool product =
        m.rule == ProfileRule::kNone && is_library_product(comparison.iterations.launches[i].kernel);
    for (const NodeId op : m.stands_for.ops)
      product = product || of.node(op).op == Op::kDot || of.node(op).op == Op::kConvolution;
    result.ops.push_back(op_names_of(graph, plan, m.stands_for));
    result.library.push_back(product ? 1 : 0);
  }
  return result;
}

bool import_profile(Store& store, const Profile& profile, const ImportedIteration& iteration,
                    const ImportOptions& options, const std::string& sha256) {
  sqlite3* db = store.handle();
  Transaction transaction(db);
  const Device& target = device(options.device);
  const std::string spec = ordered_json{{"name", options.experiment}, {"imported", profile.tool}}.dump();
  const std::string now = std::to_string(now_ns());
  const std::int64_t experiment =
      row_of(db,
             "INSERT OR IGNORE INTO experiment(name,spec_json,spec_hash,created_ns) VALUES(?,?,?,CAST(? AS "
             "INTEGER))",
             "SELECT id FROM experiment WHERE name = ? AND spec_hash = ?",
             {options.experiment, spec, sha256_hex(spec), now}, {options.experiment, sha256_hex(spec)});
  ordered_json settings = {
      {"device", target.id}, {"backend", "imported"}, {"tool", profile.tool}, {"sha256", sha256}};
  if (!options.model_sha256.empty()) settings["model_sha256"] = options.model_sha256;
  settings["iterations"] = iteration.iterations.iterations;
  const std::string params = settings.dump();
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
  const std::int64_t attempt = attempt_of(db, profile, target, sqlite3_last_insert_rowid(db));
  insert_launches(db, attempt, profile, iteration);
  insert_totals(db, attempt, iteration);
  transaction.commit();
  return true;
}

}  // namespace stitchwork
