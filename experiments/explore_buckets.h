// Sequences of many lengths (Astra, section 5.5): a model unrolled for each of a few lengths, and a
// mini-batch runs in the smallest that holds it. Each has a space and an index of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/explore.h"

namespace stitchwork {

struct Bucket {
  int length = 0;
  std::string model;  ///< as a command takes it
};

/// "13=a.hlo,18=b.hlo" in parts. Throws Error where a part is none, and where lengths do not ascend.
std::vector<Bucket> parse_buckets(const std::vector<std::string>& parts);

/// A length a line, of the data's mini-batches in their order. Throws Error naming the line.
std::vector<int> parse_lengths(std::string_view text, const std::string& file);

/// By mini-batch the number of its bucket: of the data's lengths in turn, over and over; without any, drawn
/// equally by seed.
class BucketOrder {
 public:
  /// Throws Error where a length is beyond the last bucket.
  BucketOrder(const std::vector<Bucket>& buckets, const std::vector<int>& lengths, std::uint64_t seed);
  std::size_t operator[](std::size_t minibatch) const;
  /// Of all mini-batches, by bucket.
  const std::vector<double>& shares() const { return shares_; }

 private:
  std::size_t buckets_;
  std::vector<std::size_t> turns_;  ///< empty: drawn
  std::uint64_t seed_;
  std::vector<double> shares_;
};

struct BucketedExploration {
  std::vector<Bucket> buckets;
  std::vector<double> shares;
  std::vector<Exploration> explorations;  ///< by bucket
  std::size_t minibatches = 0;            ///< of all
  bool done = false;
  /// Of a mini-batch of the shares, us; nothing where a bucket had none.
  std::optional<double> first_us, best_us;
};

/// `options.batches`: of all buckets together. `options.history`: each bucket has its own, FILE.b13.
/// `options.train` is of the first model, and of the others by its parameters' names; all buckets have one
/// state. A bucket that is settled explores no more, whatever its mini-batches. Throws Error as explore does.
BucketedExploration explore_buckets(const std::vector<Bucket>& buckets, const std::vector<Model>& models,
                                    const std::vector<int>& lengths, const ExploreOptions& options);

/// "stitchwork.bucketed-exploration/1" (docs/schema/bucketed-exploration.schema.json).
nlohmann::ordered_json exploration_json(const BucketedExploration& exploration);

}  // namespace stitchwork
