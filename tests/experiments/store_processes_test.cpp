#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/sqlite.h"
#include "experiments/store.h"
#include "tests/experiments/sample_trial.h"
#include "tests/experiments/store_query.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using testing::count;
using testing::sample_model;
using testing::sample_result;
using testing::text;

/// Forks; the child runs `body` and exits with 0 if it did not throw.
template <typename Body>
pid_t in_child(Body body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int status = 1;
  try {
    body();
    status = 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "child: {}\n", e.what());
  }
  ::_exit(status);
}

int exit_status(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(StoreProcesses, CreateAndRecordIntoOneStoreAtTheSameTime) {
  const std::string path = testing::test_folder() + "/runs.db";
  const Model model = sample_model(8);
  constexpr int kProcesses = 4, kRecords = 10;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p)
    children.push_back(in_child([&] {
      Store store = Store::open(path);
      TrialSpec spec;
      for (int i = 0; i < kRecords; ++i) store.record("adhoc", model, spec, sample_result(model, spec, 4));
    }));
  for (pid_t child : children) EXPECT_EQ(exit_status(child), 0);
  const Store store = Store::open(path);
  EXPECT_EQ(text(store, "PRAGMA integrity_check"), "ok");
  EXPECT_EQ(count(store, "SELECT COUNT(*) FROM attempt WHERE status = 'ok'"), kProcesses * kRecords);
  EXPECT_EQ(count(store, "SELECT COUNT(DISTINCT n) FROM attempt"), kProcesses * kRecords);
  EXPECT_EQ(count(store, "SELECT COUNT(*) FROM trial"), 1);
}

TEST(StoreProcesses, OpeningAStoreAgainKeepsTheLockOfTheOneThatIsOpen) {
  const std::string path = testing::test_folder() + "/runs.db";
  const Store store = Store::open(path);
  EXPECT_EQ(count(store, "SELECT COUNT(*) FROM attempt"), 0);  // reads, so that there is a lock
  // Another process that finds none takes itself for the last one and removes the log that is written to.
  const auto locked = [&] {
    return exit_status(in_child([&] {
             const int file = ::open(path.c_str(), O_RDWR);
             struct flock lock {};
             lock.l_type = F_WRLCK;
             lock.l_whence = SEEK_SET;
             lock.l_start = 0x40000002;  // SHARED_FIRST of SQLite's os.h
             lock.l_len = 510;
             if (file < 0 || ::fcntl(file, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
               throw Error("no lock");
           })) == 0;
  };
  EXPECT_TRUE(locked());
  { const Store again = Store::open(path); }
  EXPECT_TRUE(locked());
  EXPECT_EQ(open_stores(), 1);
}

TEST(StoreProcesses, AKillLosesAtMostTheAttemptUnderWay) {
  const std::string path = testing::test_folder() + "/runs.db";
  const Model model = sample_model(8);
  constexpr int kKernels = 6;
  std::int64_t attempts = 0;
  for (int round = 0; round < 8; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    // The child says after each record that it was stored.
    const pid_t child = in_child([&] {
      Store store = Store::open(path);
      TrialSpec spec;
      for (;;) {
        store.record("adhoc", model, spec, sample_result(model, spec, kKernels));
        if (::write(pipe_ends[1], "x", 1) != 1) return;
      }
    });
    ::close(pipe_ends[1]);
    char said = 0;
    ASSERT_EQ(::read(pipe_ends[0], &said, 1), 1);
    std::this_thread::sleep_for(std::chrono::microseconds(700 * round));
    ::kill(child, SIGKILL);
    EXPECT_EQ(exit_status(child), -SIGKILL);
    std::int64_t told = 1;
    while (::read(pipe_ends[0], &said, 1) == 1) ++told;
    ::close(pipe_ends[0]);

    const Store store = Store::open(path);
    EXPECT_EQ(text(store, "PRAGMA integrity_check"), "ok");
    EXPECT_FALSE(Statement(store.handle(), "PRAGMA foreign_key_check").step());
    const std::int64_t now = count(store, "SELECT COUNT(*) FROM attempt");
    EXPECT_GE(now, attempts + told);
    EXPECT_LE(now, attempts + told + 1);
    EXPECT_EQ(count(store, "SELECT COUNT(*) FROM kernel"), now * kKernels);
    attempts = now;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
