// A paper's tables again: its figures beside ours (experiments/<paper>/paper.json).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/runner.h"

namespace stitchwork {

/// A number of the paper, and ours.
struct ReproducedValue {
  std::string row, column, unit;  ///< unit: "%", "x" or ""
  std::optional<double> paper;    ///< empty: the paper does not give it
  std::optional<double> ours;     ///< empty: a trial failed
  std::string method;             ///< how ours was obtained

  /// ours / paper; of percentages too.
  std::optional<double> ratio() const;
  /// Whether ours differs from the paper's by more than a quarter.
  bool far() const;
};

struct ReproducedTable {
  std::string id, place, title;
  std::vector<ReproducedValue> values;
  std::vector<std::string> notes;       ///< why ours differ
  std::vector<std::string> exceptions;  ///< to an order the paper claims
};

struct Reproduction {
  std::string paper, title, device;
  bool quick = false;
  std::vector<ReproducedTable> tables;
  std::vector<std::string> failures;  ///< trials that failed
};

struct ReproduceOptions {
  bool quick = false;             ///< the tiny variants, simulated and checked
  std::vector<std::string> only;  ///< ids of tables; empty: all
  std::string db;
  std::function<void(std::size_t, std::size_t, double, const std::string&)> progress;
};

/// Papers there are: folders of experiments/ (or of $STITCHWORK_EXPERIMENTS) with a paper.json.
std::vector<std::string> papers();

/// Runs what is not in the store yet. Throws Error naming the papers or tables if there is none of that name.
Reproduction reproduce(const std::string& paper, const ReproduceOptions& options);

/// What tables show: heads, and a table's lines under them.
std::vector<std::string> reproduction_heads();
std::vector<std::vector<std::string>> lines(const ReproducedTable& table);
/// Title, device, and what the stars say.
std::string heading(const Reproduction& reproduction);

std::string to_markdown(const Reproduction& reproduction);

}  // namespace stitchwork
