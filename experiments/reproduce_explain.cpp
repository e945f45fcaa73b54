// What explains the differences between a paper's numbers and ours.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "experiments/reproduce.h"

namespace stitchwork {
namespace {

/// Ours may differ so much from the paper's before the report says why.
constexpr double kFar = 0.25;

/// What of a number compares by its ratio: of what is saved, what is left.
double cost(const ReproducedValue& v, double number) { return v.saved ? 100 - number : number; }

bool is_near(double ratio) { return std::abs(ratio - 1) <= kFar; }

/// What explains one value of a table (reproduce.h `explain`).
class Explanation {
 public:
  Explanation(const ReproducedTable& table, const ReproducedValue& value)
      : table_(table), value_(value), rest_(*value.ratio()) {}

  std::string text() {
    if (!value_.needed_by.empty() && *value_.ours == 0)
      return fmt::format("ours is none: {}, which alone need any", value_.needed_by);
    condition();
    base();
    limit();
    mixture();
    if (parts_.empty()) common();
    if (parts_.empty()) return "not explained";
    return fmt::format("{}{}", is_near(rest_) ? "" : "not explained: ", fmt::join(parts_, "; "));
  }

 private:
  const ReproducedValue* other(const std::string& column, const std::string& of_row = "") const {
    const std::string& row = of_row.empty() ? value_.row : of_row;
    for (const ReproducedValue& one : table_.values)
      if (one.row == row && one.column == column) return &one;
    return nullptr;
  }

  void condition() {
    const ReproducedValue* under = other(value_.instead);
    if (under == nullptr || !under->ours) return;
    rest_ = cost(value_, *under->ours) / cost(value_, *value_.paper);
    parts_.push_back(fmt::format("{} is {}, {:.3g} of the paper's", under->column,
                                 number_text(under->ours, under->unit), rest_));
  }

  void base() {
    const ReproducedValue* base = other(value_.follows, value_.follows_row);
    if (base == nullptr || base->ratio().value_or(0) == 0) return;
    scale_ = *base->ratio();
    rest_ /= scale_;
    parts_.push_back(fmt::format("{}{}{} is {:.3g} of the paper's, too, which leaves a factor of {:.3g}",
                                 value_.follows_row, value_.follows_row.empty() ? "" : " of ", base->column,
                                 scale_, rest_));
  }

  /// No plan of the graph comes to the paper's number, for a graph of ours' size.
  void limit() {
    const ReproducedValue* best = other(value_.limit);
    if (is_near(rest_) || best == nullptr || !best->ours) return;
    const double least = cost(value_, *best->ours);
    if (least <= 0 || cost(value_, *value_.paper) * scale_ >= least) return;
    rest_ = cost(value_, *value_.ours) / least;
    parts_.push_back(fmt::format(
        "{} is {} for our graph, and {} {:.3g} of {}", best->column, number_text(best->ours, best->unit),
        value_.saved ? "what ours leaves" : "ours", rest_, value_.saved ? "what that leaves" : "that"));
  }

  /// The paper's number lies between ours and that of work that grows with sizes: its kernels are larger.
  void mixture() {
    const ReproducedValue* other_end = other(value_.mixed_with);
    if (is_near(rest_) || other_end == nullptr || !other_end->ours) return;
    const double ours = cost(value_, *value_.ours), end = cost(value_, *other_end->ours);
    const double share = (cost(value_, *value_.paper) - end) / (ours - end);
    if (!(share >= 0 && share <= 1)) return;
    rest_ = 1;
    parts_.push_back(fmt::format(
        "{} is {}: the paper's lies between, {:.0f} % from that and {:.0f} % from ours", other_end->column,
        number_text(other_end->ours, other_end->unit), 100 * share, 100 * (1 - share)));
  }

  /// Whether `one` is at the best that any plan of our graph can have, which is beyond the paper's number for
  /// a graph of ours' size.
  bool at_limit(const ReproducedValue& one) const {
    const ReproducedValue* best = other(one.limit);
    if (best == nullptr || !best->ours) return false;
    const double least = cost(one, *best->ours);
    return least > 0 && cost(one, *one.paper) * *value_.ratio() < least &&
           is_near(cost(one, *one.ours) / least);
  }

  /// All numbers that go with this one differ as much: what they are of does, as a larger model. One may be
  /// at its limit instead.
  void common() {
    std::vector<std::string> with;
    for (const ReproducedValue& one : table_.values) {
      if (one.row != value_.row || one.follows != value_.column || !one.follows_row.empty() || !one.ratio())
        continue;
      const ReproducedValue* under = other(one.instead);
      const ReproducedValue& as = under != nullptr && under->ours ? *under : one;
      const double ratio = cost(one, *as.ours) / cost(one, *one.paper);
      if (*value_.ratio() == 0) return;
      if (!is_near(ratio / *value_.ratio())) {
        if (!at_limit(one)) return;
        with.push_back(
            fmt::format("{} is {:.3g} of the paper's, and no plan of our graph has less", as.column, ratio));
        continue;
      }
      with.push_back(fmt::format("{} is {:.3g} of the paper's, too", as.column, ratio));
    }
    if (with.empty()) return;
    rest_ = 1;
    parts_.push_back(fmt::format("a factor of the whole row: {}", fmt::join(with, ", ")));
  }

  const ReproducedTable& table_;
  const ReproducedValue& value_;
  double rest_, scale_ = 1;
  std::vector<std::string> parts_;
};

}  // namespace

std::optional<double> ReproducedValue::ratio() const {
  if (!paper || !ours) return std::nullopt;
  const double of_paper = cost(*this, *paper);
  if (of_paper == 0) return std::nullopt;
  return cost(*this, *ours) / of_paper;
}

bool ReproducedValue::far() const {
  const auto r = ratio();
  return r && !is_near(*r);
}

void explain(ReproducedTable& table) {
  for (ReproducedValue& v : table.values)
    if (v.far()) v.why = Explanation(table, v).text();
}

std::vector<std::string> reasons(const ReproducedTable& table) {
  std::vector<std::pair<std::string, std::string>> by_reason;  // reason, the values it is of
  for (const ReproducedValue& v : table.values) {
    if (!v.far()) continue;
    const std::string &why = v.why, what = v.row + " " + v.column;
    const auto known = std::find_if(by_reason.begin(), by_reason.end(),
                                    [&](const auto& entry) { return entry.first == why; });
    if (known == by_reason.end())
      by_reason.emplace_back(why, what);
    else
      known->second += "; " + what;
  }
  std::vector<std::string> result;
  for (const auto& [why, what] : by_reason) result.push_back(fmt::format("{}: {}.", what, why));
  return result;
}

}  // namespace stitchwork
