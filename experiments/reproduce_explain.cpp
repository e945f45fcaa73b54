// What explains the differences between a paper's numbers and ours.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "experiments/reproduce_values.h"

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
    if (!value_.needed_by.empty() && *value_.ours == 0) {
      rest_ = 1;
      return fmt::format("ours is none: {}, which alone need any", value_.needed_by);
    }
    condition();
    base();
    limit();
    mixture();
    if (parts_.empty()) common();
    if (!is_near(rest_)) range();
    if (!is_near(rest_)) parts_of_mean();
    if (!is_near(rest_)) parts_of_quotient();
    if (!is_near(rest_)) sizes();
    if (parts_.empty()) return "not explained";
    return fmt::format("{}{}", explained() ? "" : "not explained: ", fmt::join(parts_, "; "));
  }
  bool explained() const { return is_near(rest_); }

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

  /// What is left between the paper's number and ours from `least` to `most`: nothing where it lies there,
  /// else what the nearer end is of it.
  std::string place_in(double least, double most) {
    const double paper = *value_.paper, nearer = std::clamp(paper, least, most);
    rest_ = cost(value_, nearer) / cost(value_, paper);
    return nearer == paper ? "the paper's lies between"
                           : fmt::format("the nearer is {:.3g} of the paper's", rest_);
  }

  /// The paper gives a range of what ours is outside of: ours at its ends.
  void range() {
    if (value_.between.size() != 2) return;
    const ReproducedValue *one = other(value_.between[0]), *end = other(value_.between[1]);
    if (one == nullptr || end == nullptr || !one->ours || !end->ours) return;
    const auto [least, most] = std::minmax(*one->ours, *end->ours);
    parts_.push_back(fmt::format("{} is {}, {} {}: {}", one->column, number_text(one->ours, one->unit),
                                 end->column, number_text(end->ours, end->unit), place_in(least, most)));
  }

  /// What `remade` is of the paper's; whether that leaves nothing.
  void remake(const std::optional<double>& remade, const std::vector<std::string>& replaced) {
    if (replaced.empty() || !remade) return;
    rest_ = cost(value_, *remade) / cost(value_, *value_.paper);
    parts_.push_back(fmt::format("with the paper's {} it is {}, {:.3g} of the paper's",
                                 fmt::join(replaced, " and "), number_text(remade, value_.unit), rest_));
  }

  /// A mean over rows, those that are explained themselves by the paper's numbers.
  void parts_of_mean() {
    std::vector<double> numbers;
    std::vector<std::string> replaced;
    for (const std::string& row : value_.mean_rows) {
      const ReproducedValue* one = other(value_.average_of, row);
      const bool as_the_paper = one->far() && one->explained;
      numbers.push_back(as_the_paper ? *one->paper : *one->ours);
      if (as_the_paper) replaced.push_back(row);
    }
    remake(mean_of(std::move(numbers), value_.mean), replaced);
  }

  /// A quotient of columns, likewise.
  void parts_of_quotient() {
    const ReproducedValue *over = other(value_.over), *under = other(value_.under);
    if (over == nullptr || under == nullptr || !over->ours || !under->ours) return;
    std::vector<std::string> replaced;
    const auto number = [&](const ReproducedValue& one) {
      if (!one.far() || !one.explained) return *one.ours;
      replaced.push_back(one.column);
      return *one.paper;
    };
    const double dividend = number(*over), divisor = number(*under);
    remake(divisor == 0 ? std::nullopt : std::optional(dividend / divisor), replaced);
  }

  /// The model stands in for one of which the paper does not say all: ours at other values of that.
  void sizes() {
    if (value_.unsaid.empty() || value_.sizes.empty()) return;
    NumberAtSize least{"", *value_.ours}, most = least;
    for (const NumberAtSize& at : value_.sizes) {
      if (at.ours < least.ours) least = at;
      if (at.ours > most.ours) most = at;
    }
    const auto text = [&](const NumberAtSize& at) {
      return number_text(at.ours, value_.unit) + (at.workload.empty() ? "" : " of " + at.workload);
    };
    const std::string place = place_in(least.ours, most.ours);
    parts_.push_back(fmt::format(
        "a stand-in, as the paper does not say {}: {}", value_.unsaid,
        least.ours == most.ours
            ? "ours is the same at other sizes"
            : fmt::format("ours is from {} to {} at other sizes, {}", text(least), text(most), place)));
  }

  const ReproducedTable& table_;
  const ReproducedValue& value_;
  double rest_, scale_ = 1;
  std::vector<std::string> parts_;
};

/// What a value is made of comes before it: means of quotients last.
int rank(const ReproducedValue& v) { return !v.average_of.empty() ? 2 : !v.over.empty() ? 1 : 0; }

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
  for (int made = 0; made <= 2; ++made)
    for (ReproducedValue& v : table.values) {
      if (rank(v) != made || !v.far()) continue;
      Explanation explanation(table, v);
      v.why = explanation.text();
      v.explained = explanation.explained();
    }
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
