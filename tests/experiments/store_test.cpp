#include "experiments/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/metrics.h"
#include "experiments/results.h"
#include "experiments/schema.h"
#include "experiments/sqlite.h"
#include "tests/experiments/sample_trial.h"
#include "tests/experiments/store_query.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::count;
using ::testing::HasSubstr;
using testing::sample_model;
using testing::sample_result;
using testing::text;

/// Opening `path` throws an Error of that message and leaves the file as it was, with nothing beside it.
void expect_refused(const std::string& path, const ::testing::Matcher<std::string>& message) {
  const std::string before = read_file(path);
  const auto beside = [&] {
    return std::distance(fs::directory_iterator(fs::path(path).parent_path()), fs::directory_iterator());
  };
  const auto files = beside();
  try {
    Store::open(path);
    FAIL() << "opened";
  } catch (const Error& e) {
    EXPECT_EQ(e.file(), path);
    EXPECT_THAT(e.what(), message);
    EXPECT_NE(e.hint(), "");
  }
  EXPECT_TRUE(read_file(path) == before) << "the file was changed";
  EXPECT_EQ(beside(), files);
}

TEST(Store, TheDefaultIsInTheUsersFolderWithoutAnEnvironmentToo) {
  const char* before = std::getenv("HOME");
  const std::string home = before == nullptr ? "" : before;
  ::unsetenv("XDG_DATA_HOME");
  ::unsetenv("HOME");
  const std::string path = default_store_path();
  if (before != nullptr) ::setenv("HOME", home.c_str(), 1);
  EXPECT_EQ(path.front(), '/') << path;  // where the command is called from has no store of its own
}

TEST(Store, RefusesAFileThatIsNoDatabase) {
  const std::string path = testing::test_folder() + "/notes.txt";
  write_file(path, "these are my notes");
  expect_refused(path, HasSubstr("not a SQLite database"));
  write_file(path, std::string(5000, 'x'));
  expect_refused(path, HasSubstr("not a SQLite database"));
}

TEST(Store, RefusesTheDatabaseOfAnotherProgram) {
  const std::string path = testing::test_folder() + "/other.db";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  execute(db, "CREATE TABLE mine(x); INSERT INTO mine VALUES(1)");
  sqlite3_close(db);
  expect_refused(path, HasSubstr("another program"));
}

TEST(Store, RefusesANewerStore) {
  const std::string path = testing::test_folder() + "/new.db";
  {
    const Store store = Store::open(path);
    execute(store.handle(), "PRAGMA user_version = 99");
  }
  expect_refused(path, AllOf(HasSubstr("version 99"), HasSubstr("update")));
}

TEST(Store, RefusesANewerStoreWhoseVersionIsOnlyInTheLog) {
  const std::string path = testing::test_folder() + "/new.db";
  const Store store = Store::open(path);
  execute(store.handle(), "PRAGMA user_version = 99");
  EXPECT_THROW(Store::open(path), Error);
}

TEST(Store, RefusesAFolderAndAPathBelowAFile) {
  const std::string folder = testing::test_folder();
  EXPECT_THROW(Store::open(folder), Error);
  write_file(folder + "/file", "x");
  EXPECT_THROW(Store::open(folder + "/file/runs.db"), Error);
  EXPECT_EQ(read_file(folder + "/file"), "x");
}

TEST(Store, RefusesAFileItMayNotWrite) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everything";
  const std::string path = testing::test_folder() + "/runs.db";
  { const Store store = Store::open(path); }
  fs::permissions(path, fs::perms::owner_read);
  expect_refused(path, HasSubstr("cannot be written"));
}

TEST(Store, IsReadWhereNothingCanBeWritten) {
  const fs::path folder = fs::path(testing::test_folder()) / "archive 100%#1";
  const std::string path = (folder / "runs.db").string();
  { const Store store = Store::open(path); }
  fs::permissions(path, fs::perms{0444});
  // Who may write everywhere is somebody else for this test.
  const bool root = ::geteuid() == 0;
  const auto said = [&]() -> std::string {
    fs::permissions(folder, fs::perms{0555});
    if (root && ::seteuid(65534) != 0) return "nobody else to be";
    std::string text = "read";
    try {
      const Store store = Store::read(path);
      EXPECT_EQ(count(store, "SELECT count(*) FROM trial"), 0);
    } catch (const Error& e) {
      text = e.what();
    }
    if (root && ::seteuid(0) != 0) text += ", and nobody else again";
    fs::permissions(folder, fs::perms{0755});
    return text;
  };
  EXPECT_EQ(said(), "read");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
  write_file(path + "-wal", "what a run has not ended");
  EXPECT_THAT(said(), HasSubstr("a run has not ended in it; copy it"));
}

TEST(Store, MakesItsFolderAndOpensAgain) {
  const std::string path = testing::test_folder() + "/a/b/runs.db";
  { const Store store = Store::open(path); }
  const Store store = Store::open(path);
  EXPECT_EQ(count(store, "PRAGMA user_version"), static_cast<std::int64_t>(migrations().size()));
  EXPECT_EQ(text(store, "PRAGMA journal_mode"), "wal");
  EXPECT_EQ(count(store, "PRAGMA foreign_keys"), 1);
}

TEST(Store, MigratesEveryEarlierVersionAndKeepsWhatItHolds) {
  const std::string folder = testing::test_folder();
  const Model model = sample_model(4);
  const TrialSpec spec;
  for (std::size_t version = 1; version < migrations().size(); ++version) {
    const std::string path = fmt::format("{}/{}.db", folder, version);
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    for (std::size_t i = 0; i < version; ++i) execute(db, std::string(migrations()[i]));
    execute(db, fmt::format("PRAGMA user_version = {}; PRAGMA application_id = {}", version,
                            kStoreApplicationId));
    execute(db, "INSERT INTO experiment(name,spec_json,spec_hash,created_ns) VALUES('old','{}','x',1)");
    sqlite3_close(db);
    Store store = Store::open(path);
    EXPECT_EQ(count(store, "PRAGMA user_version"), static_cast<std::int64_t>(migrations().size()));
    EXPECT_EQ(text(store, "SELECT name FROM experiment"), "old");
    EXPECT_EQ(text(store, "PRAGMA integrity_check"), "ok");
    store.record("adhoc", model, spec, sample_result(model, spec, 2));
    EXPECT_EQ(count(store, "SELECT value FROM results WHERE metric = 'memory_kernels'"), 2);
    TrialSpec sampled;
    sampled.sampled = true;
    store.record("adhoc", model, sampled, sample_result(model, sampled, 2));
    EXPECT_EQ(count(store, "SELECT COUNT(*) FROM results WHERE metric = 'kernel_us' AND method = 'sampled'"),
              1);
    EXPECT_THROW(execute(store.handle(), "UPDATE sample SET method = 'guessed'"), Error)
        << "the CHECK stands";
  }
}

/// A store of version 3 as the program of then wrote it: a simulated run with a modelled library call.
void make_version_3(const std::string& path) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  for (std::size_t i = 0; i < 3; ++i) execute(db, std::string(migrations()[i]));
  execute(db, fmt::format("PRAGMA user_version = 3; PRAGMA application_id = {}", kStoreApplicationId));
  execute(db, R"sql(
    INSERT INTO environment(id,hash,gpu_name,cuda) VALUES(1,'h','T4 (simulated)','clang 14');
    INSERT INTO experiment(id,name,spec_json,spec_hash,created_ns) VALUES(1,'old','{}','x',1);
    INSERT INTO trial(id,experiment_id,workload,variant,params_json,seed,trial_key) VALUES
      (1,1,'bert','xla','{"device":"t4","backend":"sim","cache":"cold","planner":"xla","options":{},"model_sha256":"m"}',7,'a'),
      (2,1,'bert','xla','{"device":"t4","backend":"sim","cache":"cold","planner":"xla","options":{},"model_sha256":"m"}',7,'b');
    INSERT INTO attempt(id,trial_id,environment_id,n,status,started_ns,ended_ns,heartbeat_ns)
      VALUES(1,1,1,1,'ok',1,2,2), (2,2,1,1,'ok',3,4,4);
    INSERT INTO metric_def(id,name,unit,direction,description) VALUES(1,'kernel_us','us',-1,''), (2,'library_us','us',-1,''),
      (3,'overhead_us','us',-1,''), (4,'total_us','us',-1,''), (5,'inst_fp_32','instructions',-1,'');
    INSERT INTO sample(attempt_id,metric_id,round,idx,value,method) VALUES(1,1,0,0,10,'simulated'), (1,2,0,0,5,'simulated'),
      (1,3,0,0,1,'simulated'), (1,4,0,0,16,'simulated'), (2,1,0,0,20,'simulated'), (2,4,0,0,20,'simulated');
    INSERT INTO kernel(id,attempt_id,ordinal,name,ops_json,schemes_json,grid_json,block_json,grid_barriers,time_us,time_method)
      VALUES(1,1,0,'k0 a','["a"]','{"a":"local"}','[80,1,1]','[256,1,1]',0,10,'simulated');
    INSERT INTO counter(kernel_id,metric_id,value,method,tool,tool_version) VALUES(1,5,100,'simulated','stitchwork','0.1');
  )sql");
  sqlite3_close(db);
}

TEST(Store, AStoreOfVersion3StaysReadableAndItsMethodsBecomeTrue) {
  const std::string path = testing::test_folder() + "/old.db";
  make_version_3(path);
  const Store store = Store::open(path);
  const ExperimentResults results = read_results(store, "old");
  ASSERT_EQ(results.trials.size(), 2u) << "settings that were in the key alone still tell trials apart";
  const TrialResults& trial = results.trials[0];
  EXPECT_EQ(trial.find("kernel_us")->method, "simulated");
  EXPECT_EQ(trial.find("library_us")->method, "modelled");
  EXPECT_EQ(trial.find("overhead_us")->method, "modelled");
  EXPECT_EQ(trial.find("total_us")->method, "simulated + modelled");
  EXPECT_EQ(results.trials[1].find("total_us")->method, "simulated") << "it has no other part";
  EXPECT_EQ(trial.median("total_us"), 16);
  EXPECT_EQ(trial.median("inst_fp_32"), 100);
  EXPECT_EQ(trial.setting("seed"), "7");
  EXPECT_EQ(trial.setting("mode"), "exact");
  EXPECT_EQ(trial.setting("results"), "") << "of a program that had none";
  EXPECT_EQ(read_kernels(store, trial).at(0).ops.at(0).second, "local");
  EXPECT_THAT(row_names(results.trials)[0], HasSubstr("trial a"));
  for (const char* gone : {"artifact", "baseline", "v_summary"})
    EXPECT_EQ(count(store, fmt::format("SELECT COUNT(*) FROM sqlite_schema WHERE name = '{}'", gone)), 0);
  EXPECT_THROW(execute(store.handle(), "UPDATE attempt SET status = 'running'"), Error);
}

TEST(Store, ViewsWithPlainNamesShowWhatWasRecorded) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = sample_model(12);
  const TrialSpec spec;
  store.record("adhoc", model, spec, sample_result(model, spec, 3));
  store.record_failure("adhoc", model, spec, "timeout", "too long", 1);
  EXPECT_EQ(
      text(store, "SELECT experiment || ' ' || workload || ' ' || device || ' ' || variant FROM results"),
      "adhoc chain.hlo v100-sxm2 astitch");
  EXPECT_EQ(count(store, "SELECT COUNT(*) FROM kernels"), 3);
  EXPECT_EQ(count(store,
                  "SELECT value FROM kernel_counters WHERE counter = 'inst_fp_32' AND ordinal = 2 AND method "
                  "= 'simulated'"),
            2'002'000);
  EXPECT_EQ(text(store, "SELECT status || ': ' || reason FROM failures"), "timeout: too long");
}

TEST(Store, IsKnownAsOursWhileAnotherProcessHasItOpen) {
  const std::string path = testing::test_folder() + "/runs.db";
  const Store first = Store::open(path);
  EXPECT_NO_THROW(Store::open(path));
}

TEST(Store, RecordsATrialWithItsKernelsAndCounters) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = sample_model(12);
  TrialSpec spec;
  spec.seed = 7;
  const TrialResult result = sample_result(model, spec, 3);
  const std::int64_t attempt = store.record("adhoc", model, spec, result);
  EXPECT_EQ(text(store, "SELECT workload || ' ' || variant || ' ' || seed FROM trial"),
            "chain.hlo astitch 7");
  EXPECT_EQ(text(store, "SELECT name FROM experiment"), "adhoc");
  EXPECT_EQ(text(store, fmt::format("SELECT status FROM attempt WHERE id = {} AND n = 1", attempt)), "ok");
  EXPECT_EQ(text(store, "SELECT ops_json FROM kernel WHERE ordinal = 1"),
            R"(["tanh.4","tanh.5","tanh.6","tanh.7"])");
  EXPECT_EQ(text(store, "SELECT schemes_json FROM kernel WHERE ordinal = 0"),
            R"({"tanh.0":"independent","tanh.1":"local","tanh.2":"regional","tanh.3":"resident"})");
  EXPECT_EQ(
      count(store,
            "SELECT value FROM counter JOIN kernel ON kernel.id = kernel_id JOIN metric_def ON "
            "metric_def.id = metric_id WHERE metric_def.name = 'inst_fp_32' AND ordinal = 2 AND method = "
            "'simulated'"),
      2'002'000);
  EXPECT_EQ(count(store, "SELECT COUNT(*) FROM counter"),
            3 * static_cast<std::int64_t>(sim::counter_list(sim::Counters{}).size()));
  EXPECT_EQ(count(store, "SELECT value FROM results WHERE metric = 'memory_kernels' AND method = 'modelled'"),
            3);
}

TEST(Store, EveryCounterIsAKnownMetric) {
  for (const auto& [counter, value] : sim::counter_list(sim::Counters{}))
    EXPECT_TRUE(std::any_of(metrics().begin(), metrics().end(), [&](const Metric& m) {
      return m.name == counter;
    })) << counter;
}

TEST(Store, AFailedCheckIsRecordedWithItsReason) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = sample_model(4);
  const TrialSpec spec;
  TrialResult result = sample_result(model, spec, 1);
  result.check =
      CheckResult{.ok = false, .max_abs_error = 1, .max_rel_error = NAN, .message = "output 0: [3] is nan"};
  store.record("adhoc", model, spec, result);
  EXPECT_EQ(text(store, "SELECT status || ': ' || reason FROM attempt"),
            "failed: check: output 0: [3] is nan");
  EXPECT_EQ(count(store,
                  "SELECT is_nan FROM sample JOIN metric_def ON metric_def.id = metric_id WHERE name = "
                  "'check_max_rel_error' AND value IS NULL"),
            1);
}

TEST(Store, ResumeSkipsTrialsThatCameOutOkAndNoOthers) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = sample_model(4);
  TrialSpec spec;
  const std::string key = trial_key(model, spec);
  EXPECT_NE(store.last_status("adhoc", key), "ok");
  TrialResult result = sample_result(model, spec, 1);
  result.check->ok = false;
  store.record("adhoc", model, spec, result);
  EXPECT_NE(store.last_status("adhoc", key), "ok");
  result.check->ok = true;
  store.record("adhoc", model, spec, result);
  EXPECT_EQ(store.last_status("adhoc", key), "ok");
  EXPECT_EQ(count(store, "SELECT MAX(n) FROM attempt"), 2);
  EXPECT_EQ(count(store, "SELECT COUNT(*) FROM trial"), 1);
  spec.seed = 1;
  EXPECT_EQ(store.last_status("adhoc", trial_key(model, spec)), "");
}

TEST(Store, TrialKeyDependsOnWhatDecidesTheResult) {
  const Model model = sample_model(4);
  const TrialSpec base;
  std::vector<TrialSpec> others(5);
  others[0].planner = "xla";
  others[1].device = "t4";
  others[2].seed = 1;
  others[3].cache = sim::CacheMode::kWarm;
  others[4].options.knobs["mapping"] = "paper";
  for (const TrialSpec& other : others) EXPECT_NE(trial_key(model, base), trial_key(model, other));
  EXPECT_NE(trial_key(model, base), trial_key(sample_model(5), base));
  TrialSpec alias;
  alias.device = "V100";
  alias.check = true;
  EXPECT_EQ(trial_key(model, base), trial_key(model, alias));
}

TEST(Store, ResultsHaveMedianAndQuartilesWithoutNaNs) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = sample_model(4);
  TrialResult result = sample_result(model, {}, 1);
  const auto add = [&](double error) {
    result.check->max_rel_error = error;
    store.record("adhoc", model, {}, result);
  };
  for (const double value : {50.0, 10.0, 30.0, 20.0, 40.0}) add(value);
  add(NAN);
  const auto summary = [&] {
    return text(store,
                "SELECT printf('%d %g %g %g %g %g', samples, min, q25, value, q75, max) FROM results WHERE "
                "metric = 'check_max_rel_error'");
  };
  EXPECT_EQ(summary(), "5 10 20 30 40 50");
  add(60);
  EXPECT_EQ(summary(), "6 10 20 35 50 60");
  execute(store.handle(), "DELETE FROM sample WHERE value IS NULL OR value > 10");
  EXPECT_EQ(summary(), "1 10 10 10 10 10");
}

TEST(Store, AnAttemptThatCannotBeStoredLeavesNothing) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = sample_model(4);
  execute(store.handle(),
          "CREATE TRIGGER full BEFORE INSERT ON kernel WHEN NEW.ordinal = 1 BEGIN SELECT RAISE(ABORT, 'disk "
          "full'); END");
  EXPECT_THROW(store.record("adhoc", model, {}, sample_result(model, {}, 2)), Error);
  EXPECT_EQ(count(store, "SELECT COUNT(*) FROM attempt"), 0);
  EXPECT_EQ(count(store, "SELECT COUNT(*) FROM trial"), 0);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
