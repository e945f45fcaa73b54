#include "analysis/planners/astra/fitting.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/at.h"

namespace stitchwork::astra {
namespace {

// A choice, not measured: of a group over all time steps every member is shared, and only the ends of a few
// can be what keeps others out.
constexpr std::size_t kMostMoved = 8;
// A choice, not measured: so many attempts a class keep the search in proportion to the pins themselves.
constexpr int kMostAttempts = 32;

struct MemberPlace {
  Axis axis;
  int place;
};

/// Members of the class one of whose arrays fulfils `shared`, the first few.
template <typename Shared>
std::vector<MemberPlace> shared_members(const FittedClass& fitted, Shared shared) {
  std::vector<MemberPlace> result;
  if (fitted.groups.empty()) return result;
  for (const Axis axis : {kM, kN, kK}) {
    const int extent = fitted.groups[0].group.extent[axis];
    for (int place = 0; extent > 1 && place < extent && result.size() < kMostMoved; ++place) {
      const bool any = std::any_of(fitted.groups.begin(), fitted.groups.end(), [&](const PlacedGroup& group) {
        const std::vector<int> arrays = arrays_at(group, axis, place);
        return std::any_of(arrays.begin(), arrays.end(), shared);
      });
      if (any) result.push_back({axis, place});
    }
  }
  return result;
}

/// Moves of a shared member to either end.
template <typename Shared>
std::vector<MemberMove> moves(const FittedClass& fitted, Shared shared) {
  std::vector<MemberPlace> members = shared_members(fitted, shared);
  // Of long axes the ends, too, whoever else holds them.
  for (const Axis axis : {kM, kN, kK})
    if (const int extent = fitted.groups.empty() ? 1 : fitted.groups[0].group.extent[axis]; extent > 2) {
      members.push_back({axis, 0});
      members.push_back({axis, extent - 1});
    }
  std::vector<MemberMove> result;
  for (const MemberPlace& member : members)
    for (const bool to_front : {true, false}) {
      const int end = to_front ? 0 : fitted.groups[0].group.extent[member.axis] - 1;
      if (member.place != end) result.push_back({member.axis, member.place, to_front});
    }
  return result;
}

bool pin_class(Pins& pins, const FittedClass& fitted) {
  const std::size_t mark = pins.mark();
  for (const PlacedGroup& group : fitted.groups) {
    if (pin(pins, group)) continue;
    pins.undo(mark);
    return false;
  }
  return true;
}

std::set<int> arrays_of(const FittedClass& fitted) {
  std::set<int> result;
  for (const PlacedGroup& group : fitted.groups)
    for (const int array : arrays_of(group)) result.insert(array);
  return result;
}

/// Whether a class fits, in this order or with a shared member at either end.
bool fit_one(Pins& pins, FittedClass& wanted) {
  if (pin_class(pins, wanted)) return true;
  const auto placed = [&](int array) { return pins.together(array).size() > 1; };
  for (const MemberMove& move : moves(wanted, placed))
    if (FittedClass variant = moved(wanted, move); pin_class(pins, variant)) {
      wanted = std::move(variant);
      return true;
    }
  return false;
}

/// Whether the classes of `which` up to `last`, which does not fit behind the others, fit with another order
/// of one of them; `marks` are where each began, and then `last` as well.
bool refit(Pins& pins, std::vector<FittedClass>& classes, const std::vector<int>& which, std::size_t last,
           std::vector<std::size_t>& marks) {
  FittedClass& wanted = classes[at(which[last])];
  const auto placed = [&](int array) { return pins.together(array).size() > 1; };
  const std::set<int> arrays = arrays_of(wanted);
  const auto also_wanted = [&](int array) { return arrays.contains(array); };
  const std::vector<MemberMove> own = moves(wanted, placed);
  int attempts = 0;
  Pins others = pins;
  for (std::size_t p = last; p-- > 0;)
    for (const MemberMove& move : moves(classes[at(which[p])], also_wanted)) {
      if (++attempts > kMostAttempts) return false;
      FittedClass variant = moved(classes[at(which[p])], move);
      others.undo(marks[p]);
      std::vector<std::size_t> again(marks.begin(), marks.begin() + static_cast<std::ptrdiff_t>(p));
      bool ok = true;
      for (std::size_t c = p; ok && c < last; ++c) {
        again.push_back(others.mark());
        ok = pin_class(others, c == p ? variant : classes[at(which[c])]);
      }
      if (!ok) continue;
      again.push_back(others.mark());
      bool fits = pin_class(others, wanted);
      for (std::size_t m = 0; !fits && m < own.size(); ++m)
        if (FittedClass order = moved(wanted, own[m]); pin_class(others, order)) {
          wanted = std::move(order);
          fits = true;
        }
      if (!fits) continue;
      classes[at(which[p])] = std::move(variant);
      pins = std::move(others);
      marks = std::move(again);
      return true;
    }
  return false;
}

FittedClass without(const FittedClass& fitted, const MemberPlace& member) {
  FittedClass result;
  for (const PlacedGroup& group : fitted.groups)
    result.groups.push_back(without(group, member.axis, member.place));
  return result;
}

/// A class that gives up a member so that all of `which` fit; and where.
struct GivenUp {
  int of = -1;
  MemberPlace member{};
  int array = -1;
};

GivenUp find_offending(const std::vector<Pinnable>& arrays, const std::vector<FittedClass>& classes,
                       const std::vector<int>& which) {
  const FittedClass& failing = classes[at(which.back())];
  const std::vector<int> before(which.begin(), which.end() - 1);
  Pins pins(arrays);
  for (const int c : before) pin_class(pins, classes[at(c)]);
  Pins pins_again(arrays);
  const auto placed = [&](int array) { return pins.together(array).size() > 1; };
  for (const MemberPlace& member : shared_members(failing, placed)) {
    const std::size_t mark = pins.mark();
    const bool fits_without = pin_class(pins, without(failing, member));
    pins.undo(mark);
    if (!fits_without) continue;
    std::set<int> offending;
    for (const PlacedGroup& group : failing.groups)
      for (const int array : arrays_at(group, member.axis, member.place))
        if (placed(array)) offending.insert(array);
    const auto is_offending = [&](int array) { return offending.contains(array); };
    std::vector<int> holders = which;
    std::stable_sort(holders.begin(), holders.end(),
                     [&](int a, int b) { return classes[at(a)].members() > classes[at(b)].members(); });
    for (const int holder : holders)
      for (const MemberPlace& held : shared_members(classes[at(holder)], is_offending)) {
        std::vector<FittedClass> tried = classes;
        tried[at(holder)] = without(classes[at(holder)], held);
        if (tried[at(holder)].members() < 2) continue;
        pins_again.undo(0);
        if (std::all_of(which.begin(), which.end(), [&](int c) { return fit_one(pins_again, tried[at(c)]); }))
          return {holder, held, *offending.begin()};
      }
  }
  return {};
}

}  // namespace

FittedClass moved(const FittedClass& fitted, const MemberMove& move) {
  FittedClass result;
  for (const PlacedGroup& group : fitted.groups) {
    std::vector<int> order;
    for (int p = 0; p < group.group.extent[move.axis]; ++p)
      if (p != move.place) order.push_back(p);
    order.insert(move.to_front ? order.begin() : order.end(), move.place);
    result.groups.push_back(reordered(group, move.axis, order));
  }
  return result;
}

std::optional<std::size_t> fit(Pins& pins, std::vector<FittedClass>& classes, const std::vector<int>& which) {
  std::vector<std::size_t> marks;
  for (std::size_t c = 0; c < which.size(); ++c) {
    const std::size_t mark = pins.mark();
    if (fit_one(pins, classes[at(which[c])]))
      marks.push_back(mark);
    else if (!refit(pins, classes, which, c, marks))
      return c;
  }
  return std::nullopt;
}

std::vector<int> give_up_offending(const Computation& computation, const std::vector<Pinnable>& arrays,
                                   std::vector<FittedClass>& classes, Recorder& recorder) {
  std::vector<int> fitting;
  std::set<int> conflicting;
  for (;;) {
    fitting.clear();
    for (std::size_t c = 0; c < classes.size(); ++c)
      if (!conflicting.contains(static_cast<int>(c))) fitting.push_back(static_cast<int>(c));
    Pins pins(arrays);
    const auto failed = fit(pins, classes, fitting);
    if (!failed) return fitting;
    const int failing = fitting[*failed];
    const GivenUp given = find_offending(
        arrays, classes, {fitting.begin(), fitting.begin() + static_cast<std::ptrdiff_t>(*failed) + 1});
    if (given.of < 0) {
      conflicting.insert(failing);
      continue;
    }
    const FittedClass& loser = classes[at(given.of)];
    recorder.add("astra.allocation", computation.node(loser.groups[0].group.to(0, 0).op).name,
                 computation.node(classes[at(failing)].groups[0].group.to(0, 0).op).name, [&] {
                   const NodeId op = arrays[at(given.array)].op;
                   return Verdict::no(
                       "astra.offending-tensor",
                       fmt::format("{} cannot lie in both; the groups of {} products make it apart",
                                   computation.node(op).name, loser.members()));
                 });
    classes[at(given.of)] = without(loser, given.member);
  }
}

}  // namespace stitchwork::astra
