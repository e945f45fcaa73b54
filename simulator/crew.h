// Host threads of a launch, and the access logs that they write and replay.
#pragma once

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "simulator/l2_cache.h"
#include "simulator/machine.h"

namespace stitchwork::sim {

/// Access logs of one unit of work, one a partition of the L2.
struct Logs {
  explicit Logs(std::size_t partitions) : logs(partitions) {}
  ~Logs() {
    for (AccessLog& l : logs) delete[] l.begin;
  }
  Logs(Logs&& o) noexcept : logs(std::move(o.logs)) { o.logs.clear(); }
  Logs(const Logs&) = delete;
  void replay(std::size_t partition, L2State& l2, L2Counters& counters) {
    AccessLog& log = logs[partition];
    l2.replay(log.begin, log.end, counters);
    log.end = log.begin;
  }
  std::uint64_t entries() const {
    std::uint64_t n = 0;
    for (const AccessLog& l : logs) n += static_cast<std::uint64_t>(l.end - l.begin);
    return n;
  }
  std::vector<AccessLog> logs;
};

/// Host threads that wait for work, this one among them: starting threads for each batch of blocks would cost
/// more than small batches take. Jobs do not throw.
class Crew {
 public:
  explicit Crew(int threads) : begin_(threads), end_(threads) {
    for (int t = 1; t < threads; ++t) {
      others_.emplace_back([this, t] {
        for (;;) {
          begin_.arrive_and_wait();
          if (!job_) return;
          job_(t);
          end_.arrive_and_wait();
        }
      });
    }
  }
  ~Crew() {
    job_ = nullptr;
    begin_.arrive_and_wait();
    for (std::thread& t : others_) t.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Runs job(0) here and job(1) and so on on the others; returns when all have ended.
  void run(std::function<void(int)> job) {
    job_ = std::move(job);
    begin_.arrive_and_wait();
    job_(0);
    end_.arrive_and_wait();
  }

 private:
  std::barrier<> begin_, end_;
  std::function<void(int)> job_;
  std::vector<std::thread> others_;
};

}  // namespace stitchwork::sim
