// Streams, events and graphs of a GPU that is not there. With one stream work is done as it comes. With
// several nothing is done before somebody waits for a stream, and then in an order drawn from those that
// streams and events allow: what was not waited for may well not have been done.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace stitchwork::testing {

struct FakeEvent {
  double us = 0;     ///< when it was last done
  int recorded = 0;  ///< how often it was put into a stream
  int done = 0;      ///< how many of these have been reached
  bool captured = false;
};

class FakeStreams {
 public:
  struct Work {
    std::function<void()> run;         ///< null of a wait and a record
    FakeEvent* records = nullptr;      ///< reaches the event
    const FakeEvent* waits = nullptr;  ///< goes on behind it
    int number = 0;                    ///< which of the event's records
  };
  using Queues = std::map<int, std::deque<Work>>;

  std::uint32_t seed = 0;  ///< of the order; 1: the first stream that can goes on, 2: the last

  int create() {
    const int stream = next_++;
    queues_[stream];
    return stream;
  }
  void destroy(int stream) { queues_.erase(stream); }
  std::size_t live() const { return queues_.size(); }

  void put(int stream, Work work) {
    if (captured_.contains(stream)) {
      captured_.at(stream).push_back(std::move(work));
      return;
    }
    if (!queues_.contains(stream)) return work.run();  // the default stream, of a call by itself
    queues_.at(stream).push_back(std::move(work));
    if (queues_.size() == 1) drain(stream);
  }
  void record(int stream, FakeEvent* event) {
    event->captured = captured_.contains(stream);
    put(stream, {.run = nullptr, .records = event, .waits = nullptr, .number = ++event->recorded});
  }
  void wait(int stream, const FakeEvent* event) {
    if (event->recorded == 0) return;
    if (event->captured && !captured_.empty()) captured_[stream];  // the stream joins the capture
    put(stream, {.run = nullptr, .records = nullptr, .waits = event, .number = event->recorded});
  }

  /// Whether all on `stream` has been done: not where it waits for what nobody reaches.
  bool drain(int stream) {
    idle = true;
    return run(queues_, [&] { return queues_.at(stream).empty(); });
  }

  void begin_capture(int stream) {
    captured_.clear();
    captured_[origin_ = stream];
  }
  /// False where a stream of the capture was not joined: the stream that it began on does not wait for its
  /// end.
  bool end_capture() {
    graph_ = std::exchange(captured_, {});
    for (const auto& [stream, works] : graph_)
      if (stream != origin_ && (works.empty() || works.back().records == nullptr ||
                                !waited_for(works.back().records, works.back().number)))
        return false;
    return true;
  }
  /// Puts all of the last capture into `stream`.
  void launch_graph(int stream) {
    put(stream, {.run =
                     [this, graph = graph_]() mutable {
                       if (graph.size() > 1) before_graph();
                       std::map<const FakeEvent*, int> reached;
                       for (const auto& [of, works] : graph)
                         for (const Work& work : works)
                           if (work.records != nullptr) reached[work.records] = 0;
                       run(
                           graph, [&] { return false; }, &reached);
                     },
                 .records = nullptr,
                 .waits = nullptr,
                 .number = 0});
  }

  double* clock_us = nullptr;
  std::function<void()> before_graph;  ///< before the work of a graph of several streams
  bool idle = false;                   ///< somebody has waited for a stream, and no stream for an event since

 private:
  bool waited_for(const FakeEvent* event, int number) const {
    for (const Work& work : graph_.at(origin_))
      if (work.waits == event && work.number == number) return true;
    return false;
  }

  /// Until `enough`, or no work is left that may go on. `reached`: of events that count for a graph alone.
  bool run(Queues& queues, const std::function<bool()>& enough,
           std::map<const FakeEvent*, int>* reached = nullptr) {
    const auto done = [&](const FakeEvent* event) {
      return reached != nullptr && reached->contains(event) ? reached->at(event) : event->done;
    };
    while (!enough()) {
      std::vector<std::deque<Work>*> ready;
      for (auto& [stream, works] : queues)
        if (!works.empty() &&
            (works.front().waits == nullptr || done(works.front().waits) >= works.front().number))
          ready.push_back(&works);
      if (ready.empty()) return enough();
      std::deque<Work>& from = *(seed == 1   ? ready.front()
                                 : seed == 2 ? ready.back()
                                             : ready[random() % ready.size()]);
      const Work work = std::move(from.front());
      from.pop_front();
      if (work.run) work.run();
      if (work.records == nullptr) continue;
      if (reached != nullptr)
        reached->at(work.records) = work.number;
      else
        work.records->done = work.number;
      work.records->us = *clock_us;
    }
    return true;
  }

  std::uint32_t random() { return std::mt19937(seed * 7919 + ++asked_)(); }

  Queues queues_, captured_, graph_;
  int next_ = 1, origin_ = 0;
  std::uint32_t asked_ = 0;
};

}  // namespace stitchwork::testing
