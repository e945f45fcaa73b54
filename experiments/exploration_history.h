// The history of an exploration (docs/planners/astra.md): a SQLite file of its own, one transaction a
// mini-batch. The profile index in it is the whole state.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/planners/astra/tree.h"

struct sqlite3;

namespace stitchwork {

/// A mini-batch that was run.
struct MiniBatch {
  astra::Bindings bindings;
  double us = 0;               ///< of the whole
  std::string dimension;       ///< what it tried: default, fusion, kernels, streams, allocations
  std::optional<double> loss;  ///< of training mini-batches
  bool operator==(const MiniBatch&) const = default;
};

/// A training's state: the bytes of each array.
using StateBytes = std::vector<std::vector<std::byte>>;

/// What has to be equal for an exploration to be gone on with, by name: "device", "v100-sxm2".
using ExplorationIdentity = std::vector<std::pair<std::string, std::string>>;

class ExplorationHistory {
 public:
  /// Makes `path`, or with `resume` opens what is there and reads it. Until it is closed nobody else writes.
  /// With `resume` one that is not there is begun, so that whoever was killed early goes on likewise. Throws
  /// Error naming the file: where it has an exploration and `resume` is off, where it is something else, cut
  /// off, newer, of another identity (naming what differs), written to by another exploration, or cannot be
  /// written.
  static ExplorationHistory open(const std::string& path, const ExplorationIdentity& identity, bool resume);

  const std::vector<MiniBatch>& minibatches() const { return minibatches_; }
  const astra::ProfileIndex& index() const { return index_; }

  /// Of a training, behind the last mini-batch; empty: nothing was fed back.
  const StateBytes& state() const { return state_; }

  /// In one transaction: the mini-batch, what it tells that was not known, and the state that it leaves.
  void add(const MiniBatch& minibatch, const astra::ProfileIndex& news,
           std::span<const std::span<const std::byte>> state = {});

 private:
  struct Close {
    void operator()(sqlite3*) const;
  };
  explicit ExplorationHistory(std::string path) : path_(std::move(path)) {}
  void lock();
  void require_same(const ExplorationIdentity& identity);
  void read();

  std::string path_;
  std::unique_ptr<sqlite3, Close> db_;
  std::vector<MiniBatch> minibatches_;
  astra::ProfileIndex index_;
  StateBytes state_;  ///< as it was when the file was opened
};

}  // namespace stitchwork
