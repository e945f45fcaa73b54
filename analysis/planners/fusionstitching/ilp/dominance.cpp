#include "analysis/planners/fusionstitching/ilp/dominance.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "core/base/at.h"
#include "core/base/disjoint_sets.h"

namespace stitchwork::fusionstitching {
namespace {

class Reduction {
 public:
  explicit Reduction(const SetPacking& program)
      : program_(program),
        rows_(program.rows),
        rows_of_(program.weights.size()),
        column_stays_(program.weights.size(), true),
        row_stays_(program.rows.size(), true) {
    collect();
  }

  std::vector<PackingPart> run() {
    while (drop_columns() | drop_rows()) collect();
    return parts();
  }

 private:
  /// Rows of the columns that stay, and the other way round.
  void collect() {
    for (auto& rows : rows_of_) rows.clear();
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (!row_stays_[r]) continue;
      std::erase_if(rows_[r].columns, [&](int c) { return !column_stays_[at(c)]; });
      for (const int c : rows_[r].columns) rows_of_[at(c)].push_back(static_cast<int>(r));
    }
  }

  /// Of one column, the row that fewest columns are in.
  int shortest_row(int column) const {
    const auto& rows = rows_of_[at(column)];
    return *std::min_element(rows.begin(), rows.end(), [&](int r, int s) {
      return std::tuple(rows_[at(r)].columns.size(), r) < std::tuple(rows_[at(s)].columns.size(), s);
    });
  }

  bool before(int a, int b) const {
    return std::tuple(-program_.weights[at(a)], a) < std::tuple(-program_.weights[at(b)], b);
  }

  /// Whether a may stand wherever b does, and never beside it.
  bool replaces(int a, int b) const {
    const auto &of_a = rows_of_[at(a)], &of_b = rows_of_[at(b)];
    if (of_a.size() > of_b.size() || !before(a, b)) return false;
    if (!std::includes(of_b.begin(), of_b.end(), of_a.begin(), of_a.end())) return false;
    bool apart = false;
    for (const int r : of_a) apart = apart || rows_[at(r)].most == 1;
    return apart && std::all_of(of_b.begin(), of_b.end(), [&](int r) {
             return !rows_[at(r)].exactly || std::binary_search(of_a.begin(), of_a.end(), r);
           });
  }

  bool drop_columns() {
    std::vector<std::vector<int>> by_row(rows_.size());  // each column once: who replaces b has a row of b's
    for (int c = 0; c < static_cast<int>(rows_of_.size()); ++c)
      if (column_stays_[at(c)] && !rows_of_[at(c)].empty()) by_row[at(shortest_row(c))].push_back(c);
    bool dropped = false;
    for (int b = 0; b < static_cast<int>(rows_of_.size()); ++b) {
      if (!column_stays_[at(b)]) continue;
      const auto& rows = rows_of_[at(b)];
      // Among those that were dropped, too: what replaces them replaces b.
      if (std::any_of(rows.begin(), rows.end(), [&](int r) {
            const auto& others = by_row[at(r)];
            return std::any_of(others.begin(), others.end(), [&](int a) { return a != b && replaces(a, b); });
          })) {
        column_stays_[at(b)] = false;
        dropped = true;
      }
    }
    return dropped;
  }

  /// Whether row s asks of every column of r at least what r asks.
  bool covers(int s, int r) const {
    const auto &of_s = rows_[at(s)], &of_r = rows_[at(r)];
    if (of_r.exactly || of_s.most > of_r.most || of_s.columns.size() < of_r.columns.size()) return false;
    // Of equal rows the first stays, or the one that asks for exactly so many.
    if (of_s.columns.size() == of_r.columns.size() && of_s.most == of_r.most && !of_s.exactly && s > r)
      return false;
    return std::includes(of_s.columns.begin(), of_s.columns.end(), of_r.columns.begin(), of_r.columns.end());
  }

  bool drop_rows() {
    collect();
    bool dropped = false;
    for (int r = 0; r < static_cast<int>(rows_.size()); ++r) {
      const SetPacking::Row& row = rows_[at(r)];
      if (!row_stays_[at(r)] || row.exactly) continue;
      bool covered = static_cast<int>(row.columns.size()) <= row.most;
      if (!covered) {
        const int rarest = *std::min_element(row.columns.begin(), row.columns.end(), [&](int a, int b) {
          return rows_of_[at(a)].size() < rows_of_[at(b)].size();
        });
        const auto& others = rows_of_[at(rarest)];
        covered = std::any_of(others.begin(), others.end(),
                              [&](int s) { return s != r && row_stays_[at(s)] && covers(s, r); });
      }
      if (covered) row_stays_[at(r)] = false, dropped = true;
    }
    return dropped;
  }

  std::vector<PackingPart> parts() const {
    DisjointSets<int> connected;
    for (std::size_t r = 0; r < rows_.size(); ++r)
      if (row_stays_[r])
        for (const int c : rows_[r].columns) connected.join(rows_[r].columns.front(), c);
    std::vector<PackingPart> result;
    std::vector<int> part_of(rows_of_.size(), -1), number(rows_of_.size(), -1);
    for (int c = 0; c < static_cast<int>(rows_of_.size()); ++c) {
      if (!column_stays_[at(c)]) continue;
      int& part = part_of[at(connected.find(c))];
      if (part < 0) part = static_cast<int>(result.size()), result.emplace_back();
      PackingPart& own = result[at(part)];
      number[at(c)] = static_cast<int>(own.columns.size());
      own.columns.push_back(c);
      own.program.weights.push_back(program_.weights[at(c)]);
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (!row_stays_[r] || rows_[r].columns.empty()) continue;
      SetPacking::Row row = rows_[r];
      const int part = part_of[at(connected.find(row.columns.front()))];
      for (int& c : row.columns) c = number[at(c)];
      result[at(part)].program.rows.push_back(std::move(row));
    }
    return result;
  }

  const SetPacking& program_;
  std::vector<SetPacking::Row> rows_;
  std::vector<std::vector<int>> rows_of_;  ///< by column, ascending
  std::vector<bool> column_stays_, row_stays_;
};

}  // namespace

std::vector<PackingPart> without_dominated(const SetPacking& program) { return Reduction(program).run(); }

}  // namespace stitchwork::fusionstitching
