// A paper's tables and figures again: its numbers beside ours (experiments/<paper>/paper.json).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiments/runner.h"
#include "figures/data/figure.h"

namespace stitchwork {

/// Ours of a model at other sizes.
struct NumberAtSize {
  std::string workload;
  double ours = 0;
};

/// A number of the paper, and ours.
struct ReproducedValue {
  std::string row, column, unit;  ///< unit: "%", "x" or ""
  std::optional<double> paper;    ///< empty: the paper does not give it
  std::optional<double> ours;     ///< empty: a trial failed
  std::string method;             ///< how ours was obtained
  bool saved = false;             ///< percent of another variant's number that are saved
  bool fitted = false;            ///< ours comes from constants that were fitted to the paper's
  bool averaged = false;          ///< a mean, least or most of other rows
  std::string follows;            ///< column that this number goes with; "": none
  std::string follows_row;        ///< of another row; "": of its own
  std::string instead;     ///< column with ours as it would be under a condition of the paper's; "": none
  std::string limit;       ///< column with the best that any plan of our graph can have; "": none
  std::string mixed_with;  ///< column with ours of work alone that the paper's larger sizes have more of
  std::string needed_by;   ///< where ours is zero: which quantities of ours, all zero, alone need any
  std::string unsaid;      ///< what the paper does not say of the model that this is of; "": nothing
  std::vector<NumberAtSize> sizes;     ///< ours at other values of what is unsaid
  std::vector<std::string> between;    ///< columns with ours at both ends of a range that the paper gives
  std::string over, under;             ///< columns of which this is the quotient; "": it is none
  std::string average_of, mean;        ///< of a mean: the column and the kind of mean
  std::vector<std::string> mean_rows;  ///< of a mean: the rows it is over
  std::string why;         ///< where ours is far from the paper's: what of that other numbers explain
  bool explained = false;  ///< whether `why` is all of it, but for a quarter
  std::string rerun;       ///< the command that makes ours again; "": the paper's whole experiment

  /// ours / paper; of what is saved, what is left of ours / what is left of the paper's.
  std::optional<double> ratio() const;
  /// Whether ours differs from the paper's by more than a quarter.
  bool far() const;
};

/// Which of a row's variants took least time, and by what.
struct BestVariant {
  std::vector<std::string> variants;  ///< the fastest first, those within a hundredth of it behind it
  std::string over;                   ///< the fastest of the others; "": there is none
  double factor = 1;                  ///< its time / the best one's
  std::string cause;                  ///< the part of the time that differs most: "memory time", ...
  std::string why;                    ///< all parts that do, with their numbers
};

struct ReproducedTable {
  std::string id, place, title;
  std::string artifact;  ///< its id in paper.json: `id` without the device
  std::string device;    ///< id
  bool matrix = false;   ///< shown as rows by columns, without a paper's numbers
  std::vector<ReproducedValue> values;
  std::map<std::string, BestVariant> best;  ///< by row
  std::vector<std::string> notes;
  std::vector<std::string> exceptions;  ///< to an order the paper claims, with their causes
  std::vector<Figure> figures;
};

/// A page of `stitchwork view` on a model of the paper, relative to the report.
struct ReproducedPage {
  std::string text, address;
};

struct Reproduction {
  std::string paper, title, device;
  bool quick = false;
  std::vector<ReproducedTable> tables;
  std::set<std::string> versions;         ///< of the results: "" of stores from before they had one
  std::vector<std::string> failures;      ///< trials that failed
  std::vector<std::string> environments;  ///< that the store's trials ran in
  std::vector<std::string> experiments;   ///< of the store, that the tables are of
  std::vector<ReproducedPage> pages;      ///< that the report leads to
  std::string exports;  ///< where the tiny models stand for exports that nobody gave: how to make these
  std::string command;  ///< that asks for the same again: `stitchwork reproduce PAPER`, with what was chosen

  /// Whether the paper gives numbers that ours stand beside.
  bool compared() const;
};

struct ReproduceOptions {
  bool quick = false;                  ///< the tiny variants, simulated and checked
  bool run = true;                     ///< else only what the store has
  std::vector<std::string> only;       ///< ids of tables; empty: all
  std::vector<std::string> workloads;  ///< of the experiments; empty: all
  std::vector<std::string> devices;    ///< likewise; ids or what device() takes
  std::string db;
  std::function<void(std::size_t, std::size_t, double, const std::string&)> progress;
  std::string models;  ///< folder of a paper's exports that are no datasets; "": its tiny ones
  std::string dumps;   ///< folder of compilers' dumps, for papers whose variants are peers (spec.h)
};

/// Papers there are: folders of data_folder("experiments") (core/base/data.h) with a paper.json.
std::vector<std::string> papers();

/// Runs what is not in the store yet. Throws Error naming the papers or tables if there is none of that name,
/// and, with `run` off, where the store has none of the paper's experiments.
Reproduction reproduce(const std::string& paper, const ReproduceOptions& options);

/// Ids of the paper's tables that are called `id` or have a figure called so.
std::vector<std::string> tables_of_figure(const std::string& paper, const std::string& id);

/// Whether the store holds the paper's experiments on tiny variants only.
bool only_quick(const std::string& paper, const std::string& db);

/// What a table shows: heads, and its lines under them; which columns are of numbers.
std::vector<std::string> heads(const ReproducedTable& table);
std::vector<std::vector<std::string>> lines(const ReproducedTable& table);
std::vector<bool> number_columns(const ReproducedTable& table);
/// "12.3 %", "1.50x", "1,234".
std::string number_text(const std::optional<double>& value, const std::string& unit);
/// Says of each value that is far from the paper's what of the difference the table's other numbers explain:
/// the column that has it under the paper's condition, the one that it follows, the one with the best that
/// any plan of our graph can have, a factor that it has in common with all that follow it, or numbers of ours
/// on both sides of the paper's at sizes that the paper leaves open. A quotient or mean is explained by what
/// it is made of: with the paper's numbers in place of those that are explained themselves. Where a quarter
/// or more remains, or there is no such column, it is not explained, and that is what is said.
void explain(ReproducedTable& table);
/// What `explain` found, the values with it: "MEM of CRNN; MEM of ASR: ...".
std::vector<std::string> reasons(const ReproducedTable& table);
/// Title, device, and what the stars say.
std::string heading(const Reproduction& reproduction);

}  // namespace stitchwork
