// Host threads of a launch.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace stitchwork::sim {

/// Host threads that wait for work, this one among them: starting threads for each batch of blocks would cost
/// more than small batches take. They wait asleep, as the machine may have other work. Jobs do not throw.
class Crew {
 public:
  explicit Crew(int threads) {
    for (int t = 1; t < threads; ++t) {
      others_.emplace_back([this, t] {
        for (std::uint64_t seen = 0;;) {
          std::unique_lock lock(mutex_);
          begin_.wait(lock, [&] { return round_ != seen; });
          seen = round_;
          if (!job_) return;
          lock.unlock();
          job_(t);
          lock.lock();
          if (--working_ == 0) end_.notify_one();
        }
      });
    }
  }
  ~Crew() {
    begin(nullptr);
    for (std::thread& t : others_) t.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Runs job(0) here and job(1) and so on on the others; returns when all have ended.
  void run(std::function<void(int)> job) {
    begin(std::move(job));
    job_(0);
    std::unique_lock lock(mutex_);
    end_.wait(lock, [&] { return working_ == 0; });
  }

 private:
  void begin(std::function<void(int)> job) {
    {
      const std::lock_guard lock(mutex_);
      job_ = std::move(job);
      working_ = others_.size();
      ++round_;
    }
    begin_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable begin_, end_;
  std::function<void(int)> job_;  ///< none: the threads end
  std::size_t working_ = 0;       ///< of the others
  std::uint64_t round_ = 0;
  std::vector<std::thread> others_;
};

}  // namespace stitchwork::sim
