#include "experiments/profile/iterations.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

using Window = std::pair<double, double>;  ///< begins of its events: from, and before

std::string identity(const ProfileEvent& e) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", static_cast<int>(e.kind), e.kernel, e.module, e.instruction,
                     e.grid, e.block);
}

/// A stretch of a sequence that repeats itself after `period` elements.
struct Repetition {
  std::size_t begin = 0, length = 0, period = 0;
  std::size_t repeats() const { return period == 0 ? 0 : length / period; }
};

/// The longest one of that period.
Repetition longest(const std::vector<int>& sequence, std::size_t period) {
  Repetition best{0, 0, period};
  std::size_t run = 0;
  for (std::size_t i = 0; i + period < sequence.size(); ++i) {
    run = sequence[i] == sequence[i + period] ? run + 1 : 0;
    if (run >= period && run + period > best.length) best = {i + 1 - run, run + period, period};
  }
  return best;
}

/// Periods that there may be: what lies between neighbours of one name, most frequent distances first, and
/// between any two of the rarest names, since a name may come several times in an iteration.
std::vector<std::size_t> periods(const std::vector<int>& sequence) {
  // Choices, not measured: so many periods are tried, each in one pass over the sequence.
  constexpr std::size_t kFrequent = 64, kRareNames = 4, kOfARareName = 64;
  std::unordered_map<int, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < sequence.size(); ++i) places[sequence[i]].push_back(i);
  std::map<std::size_t, std::size_t> frequency;
  std::vector<const std::vector<std::size_t>*> rare;
  for (const auto& [name, at] : places) {
    for (std::size_t i = 1; i < at.size(); ++i) ++frequency[at[i] - at[i - 1]];
    if (at.size() > 1) rare.push_back(&at);
  }
  std::vector<std::pair<std::size_t, std::size_t>> by_frequency;
  for (const auto& [distance, times] : frequency) by_frequency.emplace_back(times, distance);
  std::ranges::sort(by_frequency, [](const auto& a, const auto& b) {
    return std::pair(b.first, a.second) < std::pair(a.first, b.second);
  });
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < std::min(kFrequent, by_frequency.size()); ++i)
    found.insert(by_frequency[i].second);
  std::ranges::sort(rare, [](const auto* a, const auto* b) {
    return std::pair(a->size(), a->front()) < std::pair(b->size(), b->front());
  });
  for (std::size_t r = 0; r < std::min(kRareNames, rare.size()); ++r)
    for (std::size_t i = 1; i < std::min(kOfARareName, rare[r]->size()); ++i) {
      found.insert((*rare[r])[i] - rare[r]->front());
      found.insert(rare[r]->back() - (*rare[r])[rare[r]->size() - 1 - i]);
    }
  found.erase(0);
  return {found.begin(), found.end()};
}

/// The stretch that covers most; of equal ones the one of the shortest period. One that is not half of the
/// sequence is no iteration of it, unless the model says how many there are: then one has each name that is
/// there so often.
Repetition repeated(const std::vector<int>& sequence, const IterationOptions& options) {
  std::size_t least_period = 1;
  if (options.most) {
    std::unordered_map<int, std::int64_t> count;
    for (const int name : sequence) ++count[name];
    least_period = static_cast<std::size_t>(
        std::ranges::count_if(count, [&](const auto& c) { return c.second == *options.most; }));
  }
  Repetition best;
  for (const std::size_t period : periods(sequence)) {
    const Repetition one = longest(sequence, period);
    const auto repeats = static_cast<std::int64_t>(one.repeats());
    if (repeats < 2 || (options.given && repeats != *options.given)) continue;
    if (!options.given && options.most && (repeats > *options.most || period < least_period)) continue;
    if (!options.given && !options.most && 2 * one.length < sequence.size()) continue;
    if (one.length > best.length) best = one;
  }
  return best;
}

/// Where an iteration begins: profiles begin or end with one, or there is a pause between them.
std::size_t offset(const Repetition& stretch, const std::vector<const ProfileEvent*>& sequence, bool clock) {
  if (stretch.begin == 0) return 0;
  if (stretch.begin + stretch.length == sequence.size()) return stretch.length % stretch.period;
  if (!clock) return 0;
  std::size_t best = 0;
  double longest_pause = 0;
  for (std::size_t r = 0; r < stretch.period; ++r) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = stretch.begin + r; i < stretch.begin + stretch.length; i += stretch.period)
      if (i > 0)
        least = std::min(least,
                         sequence[i]->start_us - sequence[i - 1]->start_us - sequence[i - 1]->us.value_or(0));
    if (least > longest_pause && (stretch.length - r) / stretch.period > 1) longest_pause = least, best = r;
  }
  return best;
}

std::vector<Window> windows_of(const Repetition& stretch, const std::vector<const ProfileEvent*>& sequence,
                               bool clock) {
  const std::size_t first = stretch.begin + offset(stretch, sequence, clock);
  const std::size_t count = (stretch.begin + stretch.length - first) / stretch.period;
  std::vector<Window> windows;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t begin = first + k * stretch.period, end = begin + stretch.period;
    windows.emplace_back(sequence[begin]->start_us, end < sequence.size()
                                                        ? sequence[end]->start_us
                                                        : std::numeric_limits<double>::infinity());
  }
  return windows;
}

void add_sample(ProfileLaunch& launch, const ProfileEvent& event) {
  const auto n = static_cast<double>(++launch.samples);
  if (event.us) {
    launch.least_us = launch.timed ? std::min(launch.least_us, *event.us) : *event.us;
    launch.most_us = launch.timed ? std::max(launch.most_us, *event.us) : *event.us;
    launch.mean_us += (*event.us - launch.mean_us) / n;
    launch.timed = true;
  }
  for (const auto& [counter, value] : event.counters) {
    double& mean = launch.counters[counter];
    mean += (value - mean) / n;
  }
}

ProfileLaunch launch_of(const ProfileEvent& e) {
  ProfileLaunch launch;
  launch.kind = e.kind;
  launch.kernel = e.kernel;
  launch.module = e.module;
  launch.instruction = e.instruction;
  launch.op = e.op;
  launch.grid = e.grid;
  launch.block = e.block;
  launch.stream = e.stream;
  return launch;
}

/// Puts the events into windows: of each stream and name the first of a window is one launch, the second
/// another.
class LaunchCollector {
 public:
  LaunchCollector(std::span<const ProfileEvent* const> events, const std::vector<int>& names)
      : events_(events), names_(names) {}

  ProfileIterations by_windows(const std::vector<Window>& windows, bool clock) {
    result_.iterations = static_cast<std::int64_t>(windows.size());
    std::size_t next = 0;
    std::vector<double> spans;
    for (const auto& [from, before] : windows) {
      std::map<std::pair<std::int64_t, int>, int> seen;
      double begin = 0, end = 0;
      bool any = false;
      for (; next < events_.size() && events_[next]->start_us < before; ++next) {
        const ProfileEvent& e = *events_[next];
        if (e.start_us < from) {
          ++result_.left_out;
          continue;
        }
        if (e.kind == ProfileKind::kTransfer) {
          ++result_.transfers;
          continue;
        }
        if (!any) begin = e.start_us;
        end = std::max(any ? end : begin, e.start_us + e.us.value_or(0));
        any = true;
        add(next, seen[{e.stream, names_[next]}]++);
      }
      if (any) spans.push_back(end - begin);
    }
    result_.left_out += events_.size() - next;
    if (clock && !spans.empty()) {
      std::ranges::sort(spans);
      result_.iteration_us = (spans[(spans.size() - 1) / 2] + spans[spans.size() / 2]) / 2;
    }
    return std::move(result_);
  }

  /// Without an order that repeats: `iterations` by how often each name is there.
  ProfileIterations by_counts(std::int64_t iterations) {
    result_.iterations = iterations;
    std::unordered_map<int, std::int64_t> count, seen;
    for (std::size_t i = 0; i < events_.size(); ++i)
      if (events_[i]->kind != ProfileKind::kTransfer) ++count[names_[i]];
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (events_[i]->kind == ProfileKind::kTransfer) {
        ++result_.transfers;
        continue;
      }
      const std::int64_t each = std::max<std::int64_t>(1, count[names_[i]] / iterations);
      add(i, static_cast<int>(seen[names_[i]]++ % each));
    }
    return std::move(result_);
  }

 private:
  void add(std::size_t event, int nth) {
    const ProfileEvent& e = *events_[event];
    const auto [at, fresh] =
        launch_.try_emplace(std::tuple(e.stream, names_[event], nth), result_.launches.size());
    if (fresh) result_.launches.push_back(launch_of(e));
    add_sample(result_.launches[at->second], e);
  }

  std::span<const ProfileEvent* const> events_;
  const std::vector<int>& names_;
  std::map<std::tuple<std::int64_t, int, int>, std::size_t> launch_;
  ProfileIterations result_;
};

}  // namespace

ProfileIterations find_iterations(std::span<const ProfileEvent* const> events,
                                  const IterationOptions& options, const std::string& file) {
  std::unordered_map<std::string, int> known;
  std::vector<int> names;
  std::map<std::int64_t, std::size_t> kernels;  // by stream
  for (const ProfileEvent* e : events) {
    names.push_back(known.try_emplace(identity(*e), static_cast<int>(known.size())).first->second);
    if (e->kind == ProfileKind::kKernel) ++kernels[e->stream];
  }
  LaunchCollector collector(events, names);
  const auto everything = [&](std::string how) {
    ProfileIterations all = collector.by_windows(
        {{-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()}}, options.clock);
    all.how = std::move(how);
    return all;
  };
  if (options.given == 1) return everything("as was asked for");
  if (!options.given && !options.steps.empty()) {
    ProfileIterations named = collector.by_windows(options.steps, options.clock);
    named.how = "ProfilerStep";
    return named;
  }
  if (!options.given && options.most == 1) return everything("each name of the model is there once");
  const auto busiest = std::ranges::max_element(kernels, {}, [](const auto& k) { return k.second; });
  std::vector<int> sequence;
  std::vector<const ProfileEvent*> of_sequence;
  for (std::size_t i = 0; i < events.size(); ++i)
    if (events[i]->kind == ProfileKind::kKernel && events[i]->stream == busiest->first) {
      sequence.push_back(names[i]);
      of_sequence.push_back(events[i]);
    }
  const Repetition stretch = repeated(sequence, options);
  if (stretch.period > 0) {
    ProfileIterations found =
        collector.by_windows(windows_of(stretch, of_sequence, options.clock), options.clock);
    found.how = fmt::format("the same {} in the same order",
                            counted(static_cast<long long>(stretch.period), "kernel"));
    return found;
  }
  if (options.given)
    throw Error(file, 0, 0, fmt::format("no kernels come {} times in the same order", *options.given),
                "leave out --iterations, or give 1 to take all of the profile as one");
  if (options.most.value_or(1) > 1) {
    ProfileIterations counts = collector.by_counts(*options.most);
    counts.how = "each name of the model is there so often; the order differs";
    return counts;
  }
  return everything("nothing repeats");
}

}  // namespace stitchwork
