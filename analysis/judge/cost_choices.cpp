#include "analysis/judge/cost_choices.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "analysis/facts/choices.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/operand_index.h"
#include "analysis/judge/cost_access.h"
#include "analysis/schedule/branches.h"
#include "core/base/sorted.h"
#include "core/index/buffer.h"

namespace stitchwork::costs {
namespace {

/// Of the integer units, and branches beside.
ThreadWork asking(double integer, double branches) {
  ThreadWork work;
  work.int32_warp_instructions = integer;
  work.warp_instructions = integer + branches;
  return work;
}

}  // namespace

double reduced_elements(const Computation& computation, const Node& node) {
  double elements = 1;
  for (const std::int64_t extent : operand_map(computation, node.id, 0)->symbols)
    elements *= static_cast<double>(extent);
  return elements;
}

Choices::Choices(const Computation& computation, const Group& group, const GroupEvaluations& found,
                 const Layout& layout)
    : computation_(computation), group_(group), found_(found), layout_(layout) {
  if (!any()) return;
  values_.resize(found.values.size());
  arguments_.resize(found.values.size());
  order_values();
  for (const int v : order_)
    if (is_choice(v)) arguments_[static_cast<std::size_t>(v)] = arguments(v);
  place(std::vector<char>(values_.size(), 1));
  place(find_branched());
  share_branches();
  count_guards();
}

std::span<const Reading> Choices::readings(int v) const {
  const std::size_t first = first_reading_[static_cast<std::size_t>(v)];
  return std::span(*found_.readings).subspan(first, first_reading_[static_cast<std::size_t>(v) + 1] - first);
}

bool Choices::is_choice(int v) const { return !evaluation(v).load && chooses_operand(node(v).op); }

void Choices::order_values() {
  first_reading_.assign(values_.size() + 1, 0);
  for (const Reading& r : *found_.readings) ++first_reading_[static_cast<std::size_t>(r.reader) + 1];
  for (std::size_t v = 0; v < values_.size(); ++v) first_reading_[v + 1] += first_reading_[v];
  std::vector<int> readers(values_.size());
  for (const Reading& r : *found_.readings) ++readers[static_cast<std::size_t>(r.value)];
  for (int v = 0; v < static_cast<int>(values_.size()); ++v)
    if (readers[static_cast<std::size_t>(v)] == 0) order_.push_back(v);
  for (std::size_t i = 0; i < order_.size(); ++i)
    for (const Reading& r : readings(order_[i]))
      if (--readers[static_cast<std::size_t>(r.value)] == 0) order_.push_back(r.value);
}

std::vector<Choices::Argument> Choices::arguments(int v) {
  const Node& choice = node(v);
  std::vector<int> pieces;
  if (choice.op == Op::kDynamicUpdateSlice)
    pieces = {1, 0};
  else
    for (int i = 0; i < static_cast<int>(choice.operands.size()); ++i) pieces.push_back(i);
  std::vector<Argument> result;
  for (const int piece : pieces) {
    const auto reads = readings(v);
    const auto read = std::ranges::find(reads, piece, &Reading::operand);
    if (read == reads.end()) maps_.push_back(read_map(computation_, choice, piece, evaluation(v).map));
    const IndexMap& map = read == reads.end() ? maps_.back() : evaluation(read->value).map;
    if (map.is_empty() && piece != pieces.back()) continue;
    result.push_back({piece, &map});
    if (map.constraints.empty()) break;  // it always holds
  }
  return result;
}

// ---- branches, as analysis/schedule/branches.cpp finds them

std::int64_t Choices::work(int v) const {
  const Evaluation& e = evaluation(v);
  const Node& op = node(v);
  if (e.resident) return 1;
  if (e.load) return kLoadWork;
  if (is_choice(v)) return static_cast<std::int64_t>(arguments_[static_cast<std::size_t>(v)].size());
  if (op.op == Op::kIota) return kIndexWork;
  if (!reduces(op)) return def(op.op).moves_elements && op.op != Op::kSelect ? 0 : def(op.op).instructions;
  const double most = static_cast<double>(kMostWorkSelected);
  return kReducedWork * static_cast<std::int64_t>(std::min(reduced_elements(computation_, op), most));
}

int Choices::common(int a, int b) const {
  while (a != b) {
    int& inner = a > b ? a : b;
    inner = branches_[static_cast<std::size_t>(inner)].parent;
  }
  return a;
}

int Choices::outside_of_elements(int v, int branch) const {
  const IndexMap& map = evaluation(v).map;
  while (branch >= 0) {
    const Branch& around = branches_[static_cast<std::size_t>(branch)];
    const IndexMap& choice = evaluation(around.choice).map;
    // The body of a window's loop is where the loop is, and what stands before one outside of its body.
    if (map.symbols.size() > choice.symbols.size()) break;
    if (map.symbols.size() == choice.symbols.size() &&
        (!map.symbols.empty() || depth_of(map) >= depth_of(*around.map)))
      break;
    branch = around.parent;
  }
  return branch;
}

void Choices::read(int v, int branch) {
  int& place = at(v).branch;
  place = place == kNotRead ? branch : common(place, branch);
}

/// Also one that another root reads.
bool Choices::is_root(int v) const {
  const Evaluation& e = evaluation(v);
  if (e.by < 0) return true;
  if (e.load || (e.op != group_.dominant && !contains_sorted(group_.sub_dominants, e.op))) return false;
  const auto placed = found_.placements->find(e.op);
  return placed != found_.placements->end() && placed->second.map == e.map;
}

void Choices::place(const std::vector<char>& branched) {
  branches_.clear();
  for (int v = 0; v < static_cast<int>(values_.size()); ++v)
    values_[static_cast<std::size_t>(v)] = {.branch = is_root(v) ? -1 : kNotRead};
  for (const int v : order_) visit(v, branched[static_cast<std::size_t>(v)] != 0);
}

void Choices::visit(int v, bool branched) {
  if (at(v).branch == kNotRead) return;  // an argument that is never taken
  const int here = at(v).branch = outside_of_elements(v, at(v).branch);
  const std::vector<Argument>& of_choice = arguments_[static_cast<std::size_t>(v)];
  if (branched && of_choice.size() > 1) {
    at(v).first = static_cast<int>(branches_.size());
    for (int i = 0; i < static_cast<int>(of_choice.size()); ++i)
      branches_.push_back({v, i, here, of_choice[static_cast<std::size_t>(i)].map});
  }
  const bool chooses = !of_choice.empty();
  for (const Reading& r : readings(v)) {
    const auto taken = std::ranges::find(of_choice, r.operand, &Argument::operand);
    const bool index = chooses && node(v).op == Op::kDynamicUpdateSlice && r.operand > 1;
    if (chooses && taken == of_choice.end() && !index) continue;
    const bool in_branch = at(v).first >= 0 && !index;
    read(r.value, in_branch ? at(v).first + static_cast<int>(taken - of_choice.begin()) : here);
  }
}

std::vector<char> Choices::find_branched() {
  std::vector<std::int64_t> inside(branches_.size());
  for (const int v : order_)
    for (int b = at(v).branch; b >= 0; b = branches_[static_cast<std::size_t>(b)].parent)
      inside[static_cast<std::size_t>(b)] += work(v);
  std::vector<char> branched(values_.size());
  for (const int v : order_) {
    const int first = at(v).first;
    if (first < 0) continue;
    const std::size_t number = arguments_[static_cast<std::size_t>(v)].size();
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < number; ++i) sum += inside[static_cast<std::size_t>(first) + i];
    branched[static_cast<std::size_t>(v)] = has_branches(number, sum) ? 1 : 0;
  }
  return branched;
}

void Choices::share_branches() {
  for (std::size_t b = 0; b < branches_.size(); ++b) {
    Branch& branch = branches_[b];
    const Branch outside = branch.parent < 0 ? Branch{} : branches_[static_cast<std::size_t>(branch.parent)];
    const std::size_t number = arguments_[static_cast<std::size_t>(branch.choice)].size();
    const bool ranges = node(branch.choice).op == Op::kConcatenate;
    const IndexMap* met = branch.map;
    if (ranges) {
      const double chosen = admitted_share(evaluation(branch.choice).map);
      branch.share = chosen > 0 ? outside.share * std::min(1.0, admitted_share(*branch.map) / chosen) : 0;
    } else if (static_cast<std::size_t>(branch.argument) + 1 < number) {
      branch.share = std::min(outside.share, admitted_share(*branch.map));
    } else {  // what no other is taken for
      branch.share = outside.share;
      for (std::size_t i = 1; i < number; ++i) branch.share -= branches_[b - i].share;
      branch.share = std::max(0.0, branch.share);
      met = branches_[b - number + 1].map;
    }
    branch.warps = std::min(outside.warps, branch.share * divergence(*met, layout_));
  }
}

double Choices::warps(int v) const {
  const Evaluation& e = evaluation(v);
  const int branch = at(v).branch;
  if (branch == kNotRead) return 0;
  const double share = admitted_share(e.map);
  if (share <= 0) return 0;
  return warp_accesses(e.map, group_.mapping, layout_) * unfilled_warps(e.map, group_.mapping, layout_) /
         share * (branch < 0 ? 1 : branches_[static_cast<std::size_t>(branch)].warps);
}

// ---- guards

template <typename T>
bool Choices::is_known(int branch, std::set<T> Known::*set, const T& what) {
  const auto known = [&](int b) -> std::set<T>& { return known_[known_index(b)].*set; };
  for (int b = branch; b >= 0; b = branches_[static_cast<std::size_t>(b)].parent)
    if (known(b).contains(what)) return true;
  return !(branch >= 0 && known(-1).contains(what)) && !known(branch).insert(what).second;
}

bool Choices::holds(int branch, const Constraint& constraint) const {
  for (int b = branch; b >= 0; b = branches_[static_cast<std::size_t>(b)].parent) {
    const Branch& around = branches_[static_cast<std::size_t>(b)];
    const bool last = static_cast<std::size_t>(around.argument) + 1 ==
                      arguments_[static_cast<std::size_t>(around.choice)].size();
    if (last || node(around.choice).op == Op::kConcatenate) continue;
    if (std::ranges::find(around.map->constraints, constraint) != around.map->constraints.end()) return true;
  }
  return false;
}

double Choices::part(const IndexTerm& term, int branch) {
  // What is the same for all elements of a window stands before its loop.
  if (term.inner == nullptr || (in_window_ && !term.inner->uses_symbols())) return 0;
  IndexExpr whole;
  whole.terms.push_back(term);
  whole.terms[0].coefficient = 1;
  if (is_known(branch, &Known::parts, whole)) return 0;
  const bool shifts = std::has_single_bit(static_cast<std::uint64_t>(term.divisor));
  // Derived from the code compiled: multiplying by the reciprocal and shifts; of a remainder the product with
  // the divisor and the difference.
  constexpr double kDivision = 3, kRemainder = 2;
  const bool remainder = term.kind == AtomKind::kMod;
  if (!shifts) return kDivision + (remainder ? kRemainder : 0) + parts(*term.inner, branch);
  // A power of two's bits are masked wherever they lie.
  const IndexExpr& inner = *term.inner;
  if (remainder && inner.terms.size() == 1 && inner.constant == 0 &&
      inner.terms[0].kind == AtomKind::kFloorDiv && inner.terms[0].coefficient == 1 &&
      std::has_single_bit(static_cast<std::uint64_t>(inner.terms[0].divisor)))
    return 1 + parts(*inner.terms[0].inner, branch);
  return 1 + parts(inner, branch);
}

double Choices::parts(const IndexExpr& expr, int branch) {
  if (expr.terms.size() == 1 && expr.constant == 0 && expr.terms[0].coefficient == 1)
    return part(expr.terms[0], branch);
  if (expr.terms.empty() || (in_window_ && !expr.uses_symbols()) || is_known(branch, &Known::parts, expr))
    return 0;
  // A loop's index is counted up with what is added to it.
  double sum = in_window_ ? 1 : static_cast<double>(expr.terms.size()) - (expr.constant == 0 ? 1 : 0);
  for (const IndexTerm& term : expr.terms) sum += part(term, branch);
  return sum;
}

double Choices::condition(const Constraint& constraint, const IndexMap& map, int branch) {
  if (holds(branch, constraint) || is_known(branch, &Known::conditions, constraint)) return 0;
  const Interval all = range_without(constraint, map);
  const bool below = constraint.range.lo > all.lo, above = constraint.range.hi < all.hi;
  const bool range = below && above && constraint.range.lo != constraint.range.hi;
  return (range ? 2 : 1) + parts(constraint.expr, branch);
}

double Choices::conditions(const IndexMap& map, int branch) {
  double sum = 0;
  int open = 0;
  for (const Constraint& constraint : map.constraints) {
    if (holds(branch, constraint)) continue;
    ++open;
    sum += condition(constraint, map, branch);
  }
  return sum + std::max(0, open - 1);
}

ThreadWork Choices::of_choice(int v) {
  const std::vector<Argument>& of_choice = arguments_[static_cast<std::size_t>(v)];
  const int branch = at(v).branch;
  if (of_choice.size() < 2) return {};
  const bool in_branches = at(v).first >= 0;
  const double others = static_cast<double>(of_choice.size()) - 1;
  double asked = 0, taken = others;
  if (in_branches && node(v).op == Op::kConcatenate) {
    // Searched by halves: a warp comes by the halves that the pieces lie in which it meets, neighbours.
    double met = 0;
    for (std::size_t i = 0; i < of_choice.size(); ++i)
      met += branches_[static_cast<std::size_t>(at(v).first) + i].warps;
    const double outside = branch < 0 ? 1 : branches_[static_cast<std::size_t>(branch)].warps;
    met = outside > 0 ? std::max(1.0, met / outside) : 1;
    const double halvings = std::ceil(std::log2(others + 1));
    taken = std::min(others, std::max(0.0, halvings - std::log2(met)) + met - 1);
    const auto dimension = static_cast<std::size_t>(node(v).attrs.dimensions.at(0));
    asked = parts(evaluation(v).map.results.at(dimension), branch) + halvings;
  } else {
    for (std::size_t i = 0; i + 1 < of_choice.size(); ++i) asked += conditions(*of_choice[i].map, branch);
  }
  const bool once =
      std::ranges::all_of(of_choice, [&](const Argument& of) { return layout_.holds(*of.map); });
  const double share = once ? 1.0 / layout_.width : 1;
  // Into the argument's branch and behind it.
  if (!in_branches) return asking(asked * share + others, 0);
  // Vectors are loaded in branches of their own before (print_branches.cpp, loads ahead).
  const double times = once && layout_.width > 1 ? 2 : 1;
  return asking(asked, 2 * taken) * (times * share);
}

std::vector<Constraint> Choices::open_constraints(int v) const {
  std::vector<Constraint> open = evaluation(v).map.constraints;
  std::erase_if(open, [&](const Constraint& constraint) { return holds(at(v).branch, constraint); });
  return open;
}

ThreadWork Choices::of_load(int v) {
  const IndexMap& map = evaluation(v).map;
  return asking(conditions(map, at(v).branch), 1) * (layout_.holds(map) ? 1.0 / layout_.width : 1);
}

ThreadWork Choices::of_window(int v) {
  // Derived from the code compiled: the condition once more, and which sum goes on.
  constexpr double kKeepSum = 2;
  for (const Reading& r : readings(v))
    if (r.operand == 0 && !evaluation(r.value).map.constraints.empty()) return asking(kKeepSum, 0);
  return {};
}

ThreadWork Choices::of_address(int v) {
  if (in_window_) return {};  // a loop's index is counted up with what is added to it
  IndexExpr place = buffer_offset(node(v), evaluation(v).map.results);
  place.constant = 0;
  // Derived from the code printed: a wide product, and a sum in two instructions.
  constexpr double kAddress = 3;
  if (is_known(at(v).branch, &Known::addresses, std::pair(evaluation(v).op, place))) return {};
  return asking(kAddress + parts(place, at(v).branch), 0);
}

void Choices::count_guards() {
  known_.resize(2 * branches_.size() + 1);
  for (const int v : order_) {
    OfValue& value = at(v);
    const Evaluation& e = evaluation(v);
    if (value.branch == kNotRead || e.resident) continue;
    ahead_ = e.load && layout_.width > 1;
    in_window_ = !e.map.symbols.empty();
    if (is_choice(v)) value.guards = of_choice(v);
    if (!e.load && reduces(node(v))) value.guards = of_window(v);
    if (!e.load) continue;
    value.guarded_load = !open_constraints(v).empty();
    if (value.guarded_load) value.guards = of_load(v);
    value.address = of_address(v);
  }
}

}  // namespace stitchwork::costs
