#include "analysis/schedule/branches.h"

#include <algorithm>
#include <numeric>

#include "analysis/schedule/layout.h"

namespace stitchwork {
namespace {

/// A choice between more arguments has branches.
/// A choice, not measured: few enough that compares and jumps take as much.
constexpr std::size_t kMostSelected = 3;

class Finder {
 public:
  Finder(const Computation& computation, const Step& step) : computation_(computation), step_(step) {}

  Branches run() {
    place(std::vector<char>(step_.values.size(), 1));
    // What all arguments of each choice would cost together, decides which of them have branches.
    std::vector<std::int64_t> inside(found_.all.size());
    for (const int v : step_.order)
      for (int b = found_.of[at(v)]; b >= 0; b = found_.all[at(b)].parent) inside[at(b)] += work(value(v));
    std::vector<char> branched(step_.values.size());
    for (const int v : step_.order) {
      const int first = found_.first_of[at(v)];
      if (first < 0) continue;
      const std::size_t arguments = value(v).arguments.size();
      const std::int64_t sum =
          std::accumulate(inside.begin() + first,
                          inside.begin() + first + static_cast<std::ptrdiff_t>(arguments), std::int64_t{0});
      branched[at(v)] = has_branches(arguments, sum) ? 1 : 0;
    }
    place(branched);
    return std::move(found_);
  }

 private:
  // No quantity: stands for no branch.
  static constexpr int kNotRead = -2;
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const Value& value(int v) const { return step_.values[at(v)]; }

  static bool is_read_elsewhere(const Value& value) { return value.kept >= 0 || value.row_place >= 0; }
  static bool is_there(const Value& value) { return value.restored >= 0 || value.row_result >= 0; }

  std::int64_t work(const Value& value) const {
    if (is_there(value)) return 1;
    switch (value.kind) {
      case ValueKind::kConstant:
        return 0;
      case ValueKind::kIndex:
      case ValueKind::kSlice:
        return kIndexWork;
      case ValueKind::kLoad:
        return kLoadWork;
      case ValueKind::kApply:
        return def(computation_.node(value.op).op).instructions;
      case ValueKind::kChoose:
        return static_cast<std::int64_t>(value.arguments.size());
      case ValueKind::kFold:
        return kMostWorkSelected;
      case ValueKind::kInnerReduce: {
        std::int64_t elements = 1;
        for (const std::int64_t extent : value.extents) elements *= std::min(extent, kMostWorkSelected);
        return kReducedWork * std::min(elements, kMostWorkSelected);
      }
    }
    return 0;
  }

  /// Of two branches, the innermost that holds both.
  int common(int a, int b) const {
    while (a != b) {
      // A branch's number is larger than its parent's: choices are visited from the roots on.
      int& inner = a > b ? a : b;
      inner = found_.all[at(inner)].parent;
    }
    return a;
  }

  /// Value `v` is read in `branch`, by `reader`'s loops' body or beside it.
  void read(int v, int branch, int reader) {
    // What stands before a loop is not in the branches of its body.
    int loop = reader;
    while (loop >= 0 && value(loop).scope != value(v).scope && loop != value(v).scope) {
      loop = value(loop).scope;
      branch = loop >= 0 ? found_.of[at(loop)] : -1;
    }
    if (loop == value(v).scope) branch = -1;  // the loop's own read, behind its body
    int& place = found_.of[at(v)];
    place = place == kNotRead ? branch : common(place, branch);
  }

  /// A row's value is there before its elements.
  int outside_of_elements(const Value& read, int branch) const {
    while (branch >= 0) {
      const Value& choice = value(found_.all[at(branch)].choice);
      if (read.scope == choice.scope && (read.scope >= 0 || read.depth == choice.depth)) break;
      branch = found_.all[at(branch)].parent;
    }
    return branch;
  }

  void place(const std::vector<char>& branched) {
    found_ = {{}, std::vector<int>(step_.values.size(), -1), std::vector<int>(step_.values.size(), kNotRead)};
    for (const Root& root : step_.roots)
      for (const int v : {root.value, root.initial, root.slice})
        if (v >= 0) found_.of[at(v)] = -1;
    for (auto v = step_.order.rbegin(); v != step_.order.rend(); ++v) visit(*v, branched[at(*v)] != 0);
    std::replace(found_.of.begin(), found_.of.end(), kNotRead, -1);
  }

  void visit(int v, bool branched) {
    const Value& reader = value(v);
    int& here = found_.of[at(v)];
    here = here == kNotRead || is_read_elsewhere(reader) ? -1 : outside_of_elements(reader, here);
    const int branch = here;
    if (is_there(reader)) return;
    for (const int index : reader.at.runtime) read(index, branch, v);
    for (const Access& guard : reader.guards)
      // What guards a loop's element is of its body.
      for (const int index : guard.runtime) read(index, branch, v);
    branched = branched && reader.kind == ValueKind::kChoose;
    if (branched) found_.first_of[at(v)] = static_cast<int>(found_.all.size());
    for (std::size_t i = 0; i < reader.arguments.size(); ++i) {
      int place = branch;
      if (branched) {
        place = static_cast<int>(found_.all.size());
        found_.all.push_back({v, static_cast<int>(i), branch});
      }
      read(reader.arguments[i], place, v);
    }
  }

  const Computation& computation_;
  const Step& step_;
  Branches found_;
};

}  // namespace

Branches find_branches(const Computation& computation, const Step& step) {
  return Finder(computation, step).run();
}

bool has_branches(std::size_t arguments, std::int64_t work) {
  return arguments > kMostSelected || work > kMostWorkSelected;
}

bool is_one_for_vectors(const Value& choice, const Layout& layout) {
  return choice.scope < 0 && choice.depth > layout.lane_dim && choice.at.runtime.empty() &&
         std::all_of(choice.guards.begin(), choice.guards.end(),
                     [&](const Access& guard) { return guard.runtime.empty() && layout.holds(guard.map); });
}

}  // namespace stitchwork
