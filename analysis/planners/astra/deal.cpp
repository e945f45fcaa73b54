// Steps on streams: which, and what they wait for.
#include <algorithm>
#include <tuple>

#include "analysis/planners/astra/epochs.h"
#include "core/base/at.h"
#include "core/base/error.h"

namespace stitchwork::astra {
namespace {

class Dealer {
 public:
  Dealer(const StreamSpace& space, int streams) : space_(space), streams_(streams) {
    const std::size_t steps = space.before.size();
    dealt_.stream.resize(steps, 0);
    dealt_.waits.resize(steps);
    turn_.resize(steps, -1);
    known_.resize(steps);
    last_.resize(at(streams), -1);
  }

  Dealt deal(const std::vector<StreamCounts>& counts) {
    std::size_t e = 0;
    for (const SuperEpoch& part : space_.super_epochs) {
      join();
      for (const Epoch& epoch : part.epochs) {
        if (epoch.alone) join();
        add(epoch, counts.at(e++));
        if (epoch.alone) join();
      }
    }
    return std::move(dealt_);
  }

 private:
  /// By stream the turn up to which its steps have ended.
  using Clock = std::vector<int>;

  /// All streams wait for each other: by what their next steps wait for.
  void join() { barrier_ = last_; }

  void add(const Epoch& epoch, const StreamCounts& counts) {
    std::vector<std::tuple<double, double, int>> steps;
    for (std::size_t c = 0; c < epoch.classes.size(); ++c) {
      const StepClass& of = epoch.classes[c];
      std::vector<int> members = of.steps;
      std::sort(members.begin(), members.end(), [&](int a, int b) {
        return std::pair(stream_before(a), a) < std::pair(stream_before(b), b);
      });
      std::size_t next = 0;
      for (std::size_t s = 0; s < counts.at(c).size(); ++s)
        for (int n = 0; n < counts[c][s]; ++n) dealt_.stream[at(members.at(next++))] = static_cast<int>(s);
      SW_CHECK(next == members.size(), "{} of {} steps are dealt", next, members.size());
      for (const int s : of.steps) steps.emplace_back(-space_.way_us[at(s)], -of.us, s);
    }
    std::sort(steps.begin(), steps.end());
    for (const auto& [way, us, s] : steps) dispatch(s);
  }

  int stream_before(int step) const {
    int latest = -1;
    for (const int p : space_.before[at(step)])
      if (latest < 0 || turn_[at(p)] > turn_[at(latest)]) latest = p;
    return latest < 0 ? 0 : dealt_.stream[at(latest)];
  }

  void dispatch(int step) {
    const int stream = dealt_.stream[at(step)];
    Clock clock(at(streams_), -1);
    const auto learn = [&](int of) {
      for (std::size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], known_[at(of)][s]);
      clock[at(dealt_.stream[at(of)])] = std::max(clock[at(dealt_.stream[at(of)])], turn_[at(of)]);
    };
    if (last_[at(stream)] >= 0) learn(last_[at(stream)]);
    std::vector<int> wanted = space_.before[at(step)];
    for (const int s : barrier_)
      if (s >= 0) wanted.push_back(s);
    std::sort(wanted.begin(), wanted.end(), [&](int a, int b) { return turn_[at(a)] > turn_[at(b)]; });
    for (const int p : wanted) {
      if (turn_[at(p)] <= clock[at(dealt_.stream[at(p)])]) continue;
      dealt_.waits[at(step)].push_back(p);
      learn(p);
    }
    std::sort(dealt_.waits[at(step)].begin(), dealt_.waits[at(step)].end());
    turn_[at(step)] = static_cast<int>(dealt_.order.size());
    dealt_.order.push_back(step);
    known_[at(step)] = std::move(clock);
    last_[at(stream)] = step;
  }

  const StreamSpace& space_;
  int streams_;
  Dealt dealt_;
  std::vector<int> turn_;  ///< by step: its place in the order
  std::vector<Clock> known_;
  std::vector<int> last_;     ///< by stream
  std::vector<int> barrier_;  ///< what ended it
};

}  // namespace

Dealt deal(const StreamSpace& space, const std::vector<StreamCounts>& counts, int streams) {
  return Dealer(space, streams).deal(counts);
}

}  // namespace stitchwork::astra
