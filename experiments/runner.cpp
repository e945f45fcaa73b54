#include "experiments/runner.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>
#include <tuple>

#include "core/error.h"
#include "experiments/store.h"

namespace stitchwork {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// One runner a store: two would run the same trials. Freed by the system however the process ends.
class Lock {
 public:
  explicit Lock(const std::string& db) : path_(db + ".lock") {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) throw Error(path_, 0, 0, fmt::format("cannot be made: {}", std::strerror(errno)));
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      ::close(file_);
      throw Error(db, 0, 0, "another experiment is recording into this store",
                  "wait for it, or give another file with --db and merge them");
    }
  }
  ~Lock() {
    ::unlink(path_.c_str());
    ::close(file_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::string path_;
  int file_ = -1;
};

/// A trial to be carried out, and what is known of it already.
struct Planned {
  Cell cell;
  bool skipped = false;
};

class Runner {
 public:
  Runner(const ExperimentSpec& spec, const std::string& db, const RunnerOptions& options)
      : spec_(spec), id_(spec.name, spec.text), db_(db), options_(options) {}

  /// This shard's trials, with those to skip marked.
  std::vector<Planned> plan() {
    const Store store = Store::open(db_);
    std::vector<Planned> planned;
    const std::vector<Cell> all = cells(spec_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (static_cast<int>(i % static_cast<std::size_t>(options_.shards)) != options_.shard - 1) continue;
      const TrialSpec trial = trial_of(spec_, all[i]);
      const std::string status =
          store.last_status(spec_.name, trial.variant, trial_key(model(all[i].workload), trial));
      using Rerun = RunnerOptions::Rerun;
      const bool again =
          options_.rerun == Rerun::kAll || (options_.rerun == Rerun::kFailed && status != "ok");
      planned.push_back({all[i], !status.empty() && !again});
    }
    return planned;
  }

  RunnerSummary run() {
    const Lock lock(db_);
    const std::vector<Planned> planned = plan();
    RunnerSummary summary;
    std::vector<Cell> order;
    for (int round = 0; round < options_.rounds; ++round)
      for (const Planned& p : planned)
        if (!p.skipped) order.push_back(p.cell);
    if (!options_.interleave)
      std::stable_sort(order.begin(), order.end(), [](const Cell& a, const Cell& b) {
        return std::tie(a.workload, a.device, a.seed, a.variant) <
               std::tie(b.workload, b.device, b.seed, b.variant);
      });
    summary.trials = planned.size();
    for (const Planned& p : planned) summary.skipped += p.skipped ? 1 : 0;
    const Clock::time_point begin = Clock::now();
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::string text = to_text(spec_, order[i]);
      if (options_.progress) {
        const double each = i == 0 ? -1 : seconds_since(begin) / static_cast<double>(i);
        options_.progress(i, order.size(), each < 0 ? -1 : each * static_cast<double>(order.size() - i),
                          text);
      }
      const std::string reason = attempt(order[i]);
      ++(reason.empty() ? summary.ok : summary.failed);
      if (!reason.empty()) summary.failures.push_back(text + ": " + reason);
    }
    if (options_.progress) options_.progress(order.size(), order.size(), 0, "done");
    return summary;
  }

 private:
  const Model& model(std::size_t workload) {
    const auto known = models_.find(workload);
    if (known != models_.end()) return known->second;
    if (options_.progress) options_.progress(0, 0, -1, "reading " + spec_.workloads[workload]);
    return models_.emplace(workload, load_model(spec_.workloads[workload])).first->second;
  }

  /// Runs the trial in a child. Returns "" or why it failed.
  std::string attempt(const Cell& cell) {
    const Model& of = model(cell.workload);
    const TrialSpec trial = trial_of(spec_, cell);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(fmt::format("pipe: {}", std::strerror(errno)));
    const Clock::time_point begin = Clock::now();
    SW_CHECK(open_stores() == 0);
    const pid_t runner = ::getpid(), child = ::fork();
    if (child < 0) throw Error(fmt::format("no process for the trial: {}", std::strerror(errno)));
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a trial does not outlive its runner and is not run twice
      if (::getppid() != runner) ::_exit(70);
      ::close(ends[0]);
      const std::string reason = carry_out(of, trial);
      static_cast<void>(!::write(ends[1], reason.data(), reason.size()));
      ::_exit(0);  // nothing of the parent's is destroyed twice
    }
    ::close(ends[1]);
    bool late = false;
    const int status = wait_for(child, begin, late);
    std::string reason;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
      reason.append(buffer, static_cast<std::size_t>(n));
    ::close(ends[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return reason;  // recorded by the child
    reason = late ? fmt::format("ran longer than {} s", spec_.timeout_s)
             : WIFSIGNALED(status)
                 ? fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                 : fmt::format("exit code {}", WEXITSTATUS(status));
    Store::open(db_).record_failure(id_, of, trial, late ? "timeout" : "killed", reason,
                                    1e3 * seconds_since(begin));
    return reason;
  }

  /// In the child: never throws.
  std::string carry_out(const Model& of, const TrialSpec& trial) {
    const Clock::time_point begin = Clock::now();
    try {
      try {
        const TrialResult result = run_trial(of, trial);
        Store::open(db_).record(id_, of, trial, result);
        if (result.ok()) return "";
        return result.check && !result.check->ok ? "check: " + result.check->message
                                                 : result.run.findings.at(0).message;
      } catch (const Error& error) {
        Store::open(db_).record_failure(id_, of, trial, "failed", error.what(), 1e3 * seconds_since(begin));
        return error.what();
      }
    } catch (const std::exception& error) {
      static_cast<void>(std::fputs((std::string(error.what()) + "\n").c_str(), stderr));
      ::_exit(70);
    }
  }

  int wait_for(pid_t child, Clock::time_point begin, bool& late) const {
    constexpr auto kPoll = std::chrono::milliseconds(2);
    for (;;) {
      int status = 0;
      const pid_t ended = ::waitpid(child, &status, WNOHANG);
      if (ended == child) return status;
      if (ended < 0 && errno != EINTR) throw Error(fmt::format("waitpid: {}", std::strerror(errno)));
      if (!late && seconds_since(begin) > spec_.timeout_s) {
        late = true;
        ::kill(child, SIGKILL);
      }
      std::this_thread::sleep_for(kPoll);
    }
  }

  const ExperimentSpec& spec_;
  ExperimentId id_;
  std::string db_;
  const RunnerOptions& options_;
  std::map<std::size_t, Model> models_;
};

}  // namespace

std::vector<std::string> trials_to_run(const ExperimentSpec& spec, const std::string& db,
                                       const RunnerOptions& options) {
  std::vector<std::string> result;
  if (!std::filesystem::exists(db)) {  // and is not made for this
    const std::vector<Cell> all = cells(spec);
    for (std::size_t i = static_cast<std::size_t>(options.shard) - 1; i < all.size();
         i += static_cast<std::size_t>(options.shards))
      result.push_back(to_text(spec, all[i]));
    return result;
  }
  for (const Planned& planned : Runner(spec, db, options).plan())
    if (!planned.skipped) result.push_back(to_text(spec, planned.cell));
  return result;
}

RunnerSummary run_experiment(const ExperimentSpec& spec, const std::string& db,
                             const RunnerOptions& options) {
  return Runner(spec, db, options).run();
}

}  // namespace stitchwork
