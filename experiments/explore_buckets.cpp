#include "experiments/explore_buckets.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/error.h"

namespace stitchwork {
namespace {

std::optional<int> length_of(std::string_view text) {
  int length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc() || end != text.data() + text.size() || length < 1) return std::nullopt;
  return length;
}

/// Of a mini-batch of these shares.
std::optional<double> expected_us(const BucketedExploration& e, bool best) {
  double us = 0;
  for (std::size_t b = 0; b < e.buckets.size(); ++b) {
    const Exploration& of = e.explorations[b];
    if (e.shares[b] == 0) continue;
    if (of.minibatches.empty()) return std::nullopt;
    us += e.shares[b] * of.minibatches[best ? of.best : 0].us;
  }
  return us;
}

/// What is fed back in another model of the same job: its parameters of the same names.
std::vector<FedBack> of_model(std::vector<FedBack> state, const Model& first, const Model& model) {
  const Computation &from = first.graph.entry_computation(), &to = model.graph.entry_computation();
  for (FedBack& one : state) {
    const std::string& name = from.node(from.parameters.at(one.parameter)).name;
    const auto same = std::find_if(to.parameters.begin(), to.parameters.end(),
                                   [&](NodeId parameter) { return to.node(parameter).name == name; });
    if (same == to.parameters.end())
      throw Error(model.graph.source, 0, 0,
                  fmt::format("has no parameter {}, which {} feeds back", name, first.graph.source),
                  "buckets are one training step, unrolled to several lengths");
    one.parameter = static_cast<std::size_t>(same - to.parameters.begin());
  }
  return state;
}

}  // namespace

std::vector<Bucket> parse_buckets(const std::vector<std::string>& parts) {
  std::vector<Bucket> buckets;
  for (const std::string& part : parts) {
    const std::size_t equal = part.find('=');
    const std::optional<int> length =
        equal == std::string::npos ? std::nullopt : length_of(std::string_view(part).substr(0, equal));
    if (!length || equal + 1 == part.size())
      throw Error(fmt::format("--buckets {} is no LENGTH=MODEL", part), "such as 13=rnn_t13.hlo.gz");
    if (!buckets.empty() && *length <= buckets.back().length)
      throw Error(fmt::format("--buckets: {} behind {}", *length, buckets.back().length),
                  "lengths ascend: a mini-batch runs in the first bucket that holds it");
    buckets.push_back({*length, part.substr(equal + 1)});
  }
  return buckets;
}

std::vector<int> parse_lengths(std::string_view text, const std::string& file) {
  std::vector<int> lengths;
  int line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    if (one.ends_with('\r')) one.remove_suffix(1);
    if (one.empty()) continue;
    const std::optional<int> length = length_of(one);
    if (!length)
      throw Error(file, line, 0, fmt::format("'{}' is no length", one), "a positive number a line");
    lengths.push_back(*length);
  }
  if (lengths.empty()) throw Error(file, 0, 0, "has no lengths", "a positive number a line");
  return lengths;
}

BucketOrder::BucketOrder(const std::vector<Bucket>& buckets, const std::vector<int>& lengths,
                         std::uint64_t seed)
    : buckets_(buckets.size()), seed_(seed), shares_(buckets.size(), 0) {
  for (const int length : lengths) {
    const auto fits = std::find_if(buckets.begin(), buckets.end(),
                                   [&](const Bucket& bucket) { return bucket.length >= length; });
    if (fits == buckets.end())
      throw Error(
          fmt::format("no bucket holds a length of {}: the last has {}", length, buckets.back().length),
          "add a bucket, or cut the sequences");
    turns_.push_back(static_cast<std::size_t>(fits - buckets.begin()));
    shares_[turns_.back()] += 1.0 / static_cast<double>(lengths.size());
  }
  if (turns_.empty()) shares_.assign(buckets.size(), 1.0 / static_cast<double>(buckets.size()));
}

std::size_t BucketOrder::operator[](std::size_t minibatch) const {
  if (!turns_.empty()) return turns_[minibatch % turns_.size()];
  return std::mt19937_64(seed_ + minibatch)() % buckets_;
}

BucketedExploration explore_buckets(const std::vector<Bucket>& buckets, const std::vector<Model>& models,
                                    const std::vector<int>& lengths, const ExploreOptions& options) {
  const BucketOrder order(buckets, lengths, options.trial.seed);
  BucketedExploration result{buckets, order.shares(), {}, 0, false, {}, {}};
  std::vector<ExploreOptions> own(buckets.size(), options);
  std::vector<std::unique_ptr<Explorer>> explorers;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const auto within = [&, b](std::size_t done, double last_us, double best_us, const std::string& what) {
      options.progress(done, last_us, best_us, fmt::format("bucket {}: {}", buckets[b].length, what));
    };
    if (options.progress) own[b].progress = within;
    if (options.train) own[b].train = of_model(*options.train, models.front(), models[b]);
    if (!options.history.empty()) own[b].history = fmt::format("{}.b{}", options.history, buckets[b].length);
    explorers.push_back(std::make_unique<Explorer>(models[b], own[b]));
    result.minibatches += explorers.back()->minibatches();
  }

  // Mini-batches of settled buckets are training, not exploration: they have no place in any history, so the
  // order is of those that explored, and where it stands follows from how many each bucket has.
  std::vector<bool> settled;
  for (const double share : order.shares()) settled.push_back(share == 0);
  std::vector<std::size_t> left(buckets.size());
  for (std::size_t b = 0; b < buckets.size(); ++b) left[b] = explorers[b]->minibatches();
  Explorer* last = nullptr;
  std::size_t n = 0;
  for (std::size_t before = result.minibatches; before > 0; ++n)
    if (const std::size_t b = order[n]; left[b] > 0) {
      --left[b], --before;
      last = explorers[b].get();
    }
  const std::size_t most = options.batches.value_or(std::numeric_limits<std::size_t>::max());
  for (std::size_t run = 0; run < most; ++n) {
    if (std::all_of(settled.begin(), settled.end(), [](bool one) { return one; })) break;
    const std::size_t b = order[n];
    if (settled[b]) continue;
    if (last != nullptr && last != explorers[b].get() && last->training() != nullptr)
      explorers[b]->training()->take(*last->training());
    if (!explorers[b]->step()) {
      settled[b] = true;
      continue;
    }
    last = explorers[b].get();
    ++run, ++result.minibatches;
  }
  result.done = true;
  for (const auto& explorer : explorers) {
    result.explorations.push_back(explorer->finish());
    result.done = result.done && result.explorations.back().done;
  }
  result.first_us = expected_us(result, false);
  result.best_us = expected_us(result, true);
  return result;
}

nlohmann::ordered_json exploration_json(const BucketedExploration& e) {
  using nlohmann::ordered_json;
  const auto number = [](const std::optional<double>& us) { return us ? ordered_json(*us) : ordered_json(); };
  ordered_json buckets = ordered_json::array();
  for (std::size_t b = 0; b < e.buckets.size(); ++b) {
    ordered_json exploration = exploration_json(e.explorations[b]);
    exploration["history"] = nullptr;
    buckets.push_back(
        {{"length", e.buckets[b].length}, {"share", e.shares[b]}, {"exploration", exploration}});
  }
  return {{"schema", "stitchwork.bucketed-exploration/1"},
          {"done", e.done},
          {"minibatches", e.minibatches},
          {"first_us", number(e.first_us)},
          {"best_us", number(e.best_us)},
          {"buckets", buckets}};
}

}  // namespace stitchwork
