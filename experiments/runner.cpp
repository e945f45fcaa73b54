#include "experiments/runner.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "core/base/error.h"
#include "core/base/on_interrupt.h"
#include "experiments/results.h"
#include "experiments/store.h"

namespace stitchwork {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// One runner a store: two would run the same trials. Freed by the system however the process ends. Who holds
/// it removes the file: who gets a lock on a file that has no name any more has no lock, and asks again. A
/// trial holds it with its runner, and outlives a runner that is killed by a moment: that moment is waited
/// for.
class Lock {
 public:
  explicit Lock(const std::string& db) : path_(db + ".lock") {
    constexpr auto kMoment = std::chrono::seconds(1);
    const Clock::time_point until = Clock::now() + kMoment;
    while (!take() && Clock::now() < until) ::poll(nullptr, 0, 10);
    if (file_ < 0)
      throw Error(db, 0, 0, "another experiment is recording into this store",
                  "wait for it, or give another file with --db and merge them");
    on_interrupt_.emplace(path_);
  }
  ~Lock() {
    if (file_ < 0) return;
    on_interrupt_.reset();  // from here on the name may be another runner's
    ::unlink(path_.c_str());
    ::close(file_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  bool take() {
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) throw Error(path_, 0, 0, fmt::format("cannot be made: {}", std::strerror(errno)));
    struct stat locked {
    }, named{};
    const bool held = ::flock(file, LOCK_EX | LOCK_NB) == 0 && ::fstat(file, &locked) == 0 &&
                      ::stat(path_.c_str(), &named) == 0 && locked.st_ino == named.st_ino;
    if (held)
      file_ = file;
    else
      ::close(file);
    return held;
  }

  std::string path_;
  int file_ = -1;
  std::optional<RemovedOnInterrupt> on_interrupt_;
};

/// What a child process writes to a pipe, and how it ended.
struct Ended {
  int status = 0;  ///< as waitpid has it
  bool late = false;
  std::string text;
};

/// Reads what comes from `pipe` until the child has ended, so that it never waits for its reader. At `until`
/// the child's whole group is killed: compilers that it has started, too.
Ended wait_for(pid_t child, int pipe, Clock::time_point until) {
  constexpr int kPollMs = 20, kEndMs = 1;  // one that has closed its end is about to be over
  Ended ended;
  std::array<char, 65536> buffer{};
  const auto read_all = [&] {
    ssize_t n = 0;
    while ((n = ::read(pipe, buffer.data(), buffer.size())) > 0)
      ended.text.append(buffer.data(), static_cast<std::size_t>(n));
    return n == 0;  // the child has closed its end
  };
  ::fcntl(pipe, F_SETFL, O_NONBLOCK);
  bool open = true;
  for (;;) {
    siginfo_t found{};
    if (::waitid(P_PID, static_cast<id_t>(child), &found, WEXITED | WNOHANG | WNOWAIT) != 0 && errno != EINTR)
      throw Error(fmt::format("waitid: {}", std::strerror(errno)));
    if (found.si_pid == child) break;
    if (!ended.late && Clock::now() > until) {
      ended.late = true;
      ::kill(-child, SIGKILL);
    }
    pollfd wanted{pipe, POLLIN, 0};
    ::poll(open ? &wanted : nullptr, open ? 1 : 0, open ? kPollMs : kEndMs);
    if (open) open = !read_all();
  }
  if (open) read_all();
  ::kill(-child, SIGKILL);  // what it may have left behind, while its number is still its own
  ::waitpid(child, &ended.status, 0);
  return ended;
}

/// A trial to be carried out, and what is known of it already.
struct Planned {
  Cell cell;
  int missing = 1;    ///< attempts to carry out
  std::string again;  ///< why it is carried out although something like it came out ok; "" where nothing did
};

std::string shown(const std::string& version) { return version.empty() ? "an earlier program's" : version; }

/// Why a trial with another key stands for nothing now: what of it has changed.
std::string why_again(const TrialResults& before, const Settings& now) {
  const std::string &results = before.setting("results"), &model = before.setting("model_sha256");
  std::string why;
  if (results != now.at("results"))
    why = fmt::format("its results are of version {}, this program's are {}", shown(results),
                      now.at("results"));
  if (model != now.at("model_sha256"))
    why += fmt::format("{}the workload has changed", why.empty() ? "" : ", ");
  return why;
}

class Runner {
 public:
  Runner(const ExperimentSpec& spec, const std::string& db, const RunnerOptions& options)
      : spec_(spec), id_(spec.name, spec.text), db_(db), options_(options) {}

  /// This shard's trials, with what is missing of each.
  std::vector<Planned> plan() {
    const Store store = Store::open(db_);
    const std::vector<std::string> names = experiment_names(store);
    const std::vector<TrialResults> known = std::find(names.begin(), names.end(), spec_.name) == names.end()
                                                ? std::vector<TrialResults>()
                                                : read_trials(store, spec_.name);
    std::vector<Planned> planned;
    const std::vector<Cell> all = cells(spec_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (static_cast<int>(i % static_cast<std::size_t>(options_.shards)) != options_.shard - 1) continue;
      const TrialSpec trial = trial_of(spec_, all[i]);
      const Model& of = model(all[i].workload);
      const std::string key = trial_key(of, trial);
      const Settings settings = settings_of(trial_params(of, trial));
      Planned one{all[i], 0, ""};
      std::string status;
      std::int64_t attempts = 0, ok = 0;
      for (const TrialResults& t : known) {
        if (t.key == key) {
          status = t.status;
          attempts = t.attempts;
          ok = static_cast<std::int64_t>(t.ok_attempts.size());
        } else if (t.status == "ok" && t.variant == trial.variant && t.workload == of.graph.source &&
                   is_asked_for(settings, t.settings)) {
          one.again = why_again(t, settings);
        }
      }
      one.missing = missing(status, attempts, ok);
      if (!status.empty()) one.again.clear();
      planned.push_back(std::move(one));
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
        if (round < p.missing) order.push_back(p.cell);
    if (!options_.interleave)
      std::stable_sort(order.begin(), order.end(), [](const Cell& a, const Cell& b) {
        return std::tie(a.workload, a.device, a.seed, a.variant) <
               std::tie(b.workload, b.device, b.seed, b.variant);
      });
    summary.trials = planned.size();
    for (const Planned& p : planned) {
      summary.skipped += p.missing == 0 ? 1 : 0;
      if (!p.again.empty()) summary.again.push_back(to_text(spec_, p.cell) + ": " + p.again);
    }
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
  /// Attempts of a trial that the rounds still lack: those there are count, however they came to be.
  int missing(const std::string& status, std::int64_t attempts, std::int64_t ok) const {
    using Rerun = RunnerOptions::Rerun;
    if (options_.rerun == Rerun::kAll) return options_.rounds;
    const std::int64_t there = options_.rerun == Rerun::kNothing ? attempts : ok;
    const bool failed = options_.rerun == Rerun::kFailed && !status.empty() && status != "ok";
    return static_cast<int>(std::max<std::int64_t>(failed ? 1 : 0, options_.rounds - there));
  }

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
      // A trial and what it starts do not outlive its runner: it is not run twice.
      ::setpgid(0, 0);
      ::signal(SIGINT, SIG_DFL);  // the files are the runner's
      ::signal(SIGTERM, [](int) { ::kill(0, SIGKILL); });
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != runner) ::_exit(70);
      ::close(ends[0]);
      const std::string reason = carry_out(of, trial);
      for (std::size_t at = 0; at < reason.size();) {
        const ssize_t n = ::write(ends[1], reason.data() + at, reason.size() - at);
        if (n < 0 && errno != EINTR) break;
        at += static_cast<std::size_t>(std::max<ssize_t>(0, n));
      }
      ::_exit(0);  // nothing of the parent's is destroyed twice
    }
    ::setpgid(child, child);  // likewise, whichever is first
    ::close(ends[1]);
    const EndedOnInterrupt ended(child);
    const auto limit =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(spec_.timeout_s));
    const auto [status, late, text] = wait_for(child, ends[0], begin + limit);
    ::close(ends[0]);
    std::string reason = text;
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
    if (planned.missing > 0)
      result.push_back(to_text(spec, planned.cell) +
                       (planned.again.empty() ? "" : ": again, " + planned.again));
  return result;
}

RunnerSummary run_experiment(const ExperimentSpec& spec, const std::string& db,
                             const RunnerOptions& options) {
  return Runner(spec, db, options).run();
}

}  // namespace stitchwork
