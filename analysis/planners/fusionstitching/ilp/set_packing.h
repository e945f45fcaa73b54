// Weighted set packing as an integer program, solved by CBC (COIN-OR branch and cut).
#pragma once

#include <vector>

namespace stitchwork::fusionstitching {

/// Maximise the sum of `weights` of the columns taken, each at most once.
struct SetPacking {
  struct Row {
    std::vector<int> columns;  ///< ascending
    int most = 1;              ///< of them at most so many are taken
    bool exactly = false;      ///< exactly so many
  };
  std::vector<double> weights;  ///< by column
  std::vector<Row> rows;
};

struct SetPackingSolution {
  bool feasible = false;
  bool optimal = false;    ///< false: the limit of nodes ended the search
  int nodes = 0;           ///< of branch and bound
  std::vector<int> taken;  ///< columns, ascending
};

/// Branch and bound gives up behind so many nodes of all programs of one search, measured: behind 200 and
/// behind 1,000 the plans of bert_train, gpt2_decoder_10k, transformer_train, dien_train and adam_step are
/// within 0.03 % of each other's predicted time, and a node takes up to 8 ms. There is no limit of time: a
/// clock would make plans differ.
constexpr int kMostNodes = 200;

/// Deterministic; one solver works at a time, whatever the threads that ask.
SetPackingSolution solve(const SetPacking& program, int most_nodes = kMostNodes);

}  // namespace stitchwork::fusionstitching
