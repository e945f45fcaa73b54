// Choices whose arguments are computed in branches: a thread runs through one of them.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/print/print_values.h"

namespace stitchwork {

std::string ValuePrinter::open_condition(const IndexMap& map, const IndexNames& names) const {
  if (known_.empty()) return condition_text(map, names);
  IndexMap open = map;
  std::erase_if(open.constraints, [&](const Constraint& constraint) { return is_known(constraint); });
  return condition_text(open, names);
}

bool ValuePrinter::is_known(const Constraint& constraint) const {
  return std::find(known_.begin(), known_.end(), constraint) != known_.end();
}

bool ValuePrinter::holds_here(const IndexMap& map) const {
  return std::all_of(map.constraints.begin(), map.constraints.end(),
                     [&](const Constraint& constraint) { return is_known(constraint); });
}

void ValuePrinter::print_choice(int v, const std::string& variable) {
  const Value& choice = step_.values[static_cast<std::size_t>(v)];
  const std::string type(type_of(v));
  if (const auto text = one_expression(v)) {
    out_.line(fmt::format("const {} {} = {};", type, variable, *text));
    return;
  }
  out_.line(fmt::format("{} {};", type, variable));
  // What is the same for all of a vector's elements is asked of its first: compilers then ask once.
  const bool once = in_vectors() && is_one_for_vectors(choice, layout_);
  print_branches(
      v, once ? " - j" : "", [](int) { return true; },
      [&](int branch) {
        print_values(values_in_[static_cast<std::size_t>(branch + 1)]);
        const int argument = choice.arguments[static_cast<std::size_t>(
            branches_.all[static_cast<std::size_t>(branch)].argument)];
        out_.line(fmt::format("{} = {};", variable, name(argument)));
      });
}

std::optional<std::string> ValuePrinter::one_expression(int v) {
  const Value& choice = step_.values[static_cast<std::size_t>(v)];
  const int first = branches_.first_of[static_cast<std::size_t>(v)];
  std::optional<std::string> one;
  for (std::size_t i = 0; i < choice.arguments.size(); ++i) {
    for (const int inside : values_in_[static_cast<std::size_t>(first) + i + 1]) {
      std::string& text = variables_[static_cast<std::size_t>(inside)];
      if (branches_.has(inside)) {
        const auto nested = one_expression(inside);
        if (!nested) return std::nullopt;
        text = *nested;
      } else if (ahead_.contains(inside)) {
        text = load_expression(inside);
      } else {
        return std::nullopt;
      }
    }
    const std::string& text = name(choice.arguments[i]);
    if (one && *one != text) return std::nullopt;
    one = text;
  }
  return one;
}

/// Ranges of one index are searched by halves; other conditions are asked one after the other.
void ValuePrinter::print_branches(int v, const std::string& first_lane, const std::function<bool(int)>& has,
                                  const std::function<void(int)>& print_branch) {
  const Value& choice = step_.values[static_cast<std::size_t>(v)];
  const int first = branches_.first_of[static_cast<std::size_t>(v)];
  const auto arguments = static_cast<int>(choice.arguments.size());
  const auto lane = static_cast<std::size_t>(layout_.lane_dim);
  const bool holds = holds_here(choice.at.map);
  const auto named = [&](const Access& access) {
    IndexNames names = access_names(access);
    if (!first_lane.empty()) names.rename(lane, fmt::format("({}{})", names.dims[lane], first_lane));
    return names;
  };
  const auto print_inside = [&](int argument, bool known) {
    const auto clamped = clamped_;
    const std::vector<Constraint> outside = known_;
    const auto& constraints = choice.guards[static_cast<std::size_t>(argument)].map.constraints;
    // A runtime variable's number says which it is in its own map alone.
    if (known)
      std::copy_if(constraints.begin(), constraints.end(), std::back_inserter(known_),
                   [](const Constraint& constraint) { return !constraint.expr.uses_runtime(); });
    print_branch(first + argument);
    known_ = outside;
    clamped_ = clamped;
  };

  if (choice.extents.empty()) {
    std::vector<std::string> conditions;
    for (const Access& guard : choice.guards) {
      conditions.push_back(&guard == &choice.guards.back() ? "" : open_condition(guard.map, named(guard)));
      if (conditions.back().empty()) break;  // it always holds
    }
    for (std::size_t i = 0; i < conditions.size(); ++i) {
      const bool last = conditions[i].empty();
      const std::string condition = last ? "" : fmt::format("if ({})", conditions[i]);
      out_.open(i == 0 ? condition : fmt::format("else{}{}", last ? "" : " ", condition));
      if (has(first + static_cast<int>(i))) print_inside(static_cast<int>(i), !last || holds);
      out_.close();
    }
    return;
  }
  const std::string index = names_.make(computation_.node(choice.op).name, "v", "_at");
  const std::string text = index_text(choice.offset, choice.at.map, named(choice.at));
  out_.line(fmt::format("const {} {} = {};", kernel_.wide_indices ? "long long" : "int", index, text));
  const auto any = [&](int begin, int end) {
    for (int i = begin; i < end; ++i)
      if (has(first + i)) return true;
    return false;
  };
  const auto search = [&](const auto& self, int begin, int end) -> void {
    if (end - begin == 1) return print_inside(begin, holds);
    const int middle = begin + (end - begin) / 2;
    const bool below = any(begin, middle), above = any(middle, end);
    const std::int64_t bound = choice.extents[static_cast<std::size_t>(middle)];
    if (below) {
      out_.open(fmt::format("if ({} < {})", index, bound));
      self(self, begin, middle);
      out_.close();
    }
    if (above) {
      out_.open(below ? "else" : fmt::format("if ({} >= {})", index, bound));
      self(self, middle, end);
      out_.close();
    }
  };
  search(search, 0, arguments);
}

// ---- loads ahead

namespace {

/// Vectors that are taken, by kind.
using Taken = std::map<std::pair<DType, int>, std::size_t>;

}  // namespace

void ValuePrinter::share_ahead() {
  std::map<std::pair<DType, int>, std::vector<std::size_t>> vectors;  // indices into vectors_, by kind
  const auto share = [&](const auto& self, int branch, Taken taken) -> Taken {
    for (const int v : values_in_[static_cast<std::size_t>(branch + 1)]) {
      const Value& value = step_.values[static_cast<std::size_t>(v)];
      if (!value.ahead) continue;
      const Node& node = computation_.node(value.op);
      if (value.kind == ValueKind::kFold) {
        const DType accumulator =
            is_floating(node.shape.dtype) && byte_size(node.shape.dtype) < 4 ? DType::kF32 : node.shape.dtype;
        ahead_[v] = vectors_.size();
        vectors_.push_back(
            {names_.make(node.name, "v", "_folded"), accumulator, ahead_width(value), false, true});
        continue;
      }
      const std::pair kind{node.shape.dtype, ahead_width(value)};
      std::vector<std::size_t>& of_kind = vectors[kind];
      const std::size_t number = taken[kind]++;
      if (number == of_kind.size()) {
        of_kind.push_back(vectors_.size());
        vectors_.push_back({names_.make(node.name, "v", "_vector"), kind.first, kind.second});
      }
      AheadVector& vector = vectors_[of_kind[number]];
      vector.conditional = vector.conditional || branch >= 0 || !value.at.map.constraints.empty();
      ahead_[v] = of_kind[number];
    }
    for (const int v : values_in_[static_cast<std::size_t>(branch + 1)]) {
      if (!branches_.has(v)) continue;
      const int first = branches_.first_of[static_cast<std::size_t>(v)];
      const auto arguments = static_cast<int>(step_.values[static_cast<std::size_t>(v)].arguments.size());
      Taken most = taken;
      for (int b = first; b < first + arguments; ++b)
        for (const auto& [kind, number] : self(self, b, taken)) most[kind] = std::max(most[kind], number);
      taken = std::move(most);
    }
    return taken;
  };
  share(share, -1, {});
}

bool ValuePrinter::loads_ahead_in(int branch) const {
  const std::vector<int>& values = values_in_[static_cast<std::size_t>(branch + 1)];
  return std::any_of(values.begin(), values.end(), [&](int v) {
    const int first = branches_.first_of[static_cast<std::size_t>(v)];
    if (first < 0) return ahead_.contains(v);
    const auto arguments = static_cast<int>(step_.values[static_cast<std::size_t>(v)].arguments.size());
    for (int b = first; b < first + arguments; ++b)
      if (loads_ahead_in(b)) return true;
    return false;
  });
}

void ValuePrinter::load_branch_ahead(int branch, const std::string& left) {
  std::vector<int> values = values_in_[static_cast<std::size_t>(branch + 1)];
  std::sort(values.begin(), values.end());
  for (const int v : values) {
    if (!ahead_.contains(v)) continue;
    const Value& value = step_.values[static_cast<std::size_t>(v)];
    if (value.kind == ValueKind::kFold) {
      fold_ahead(v);
      continue;
    }
    const IndexNames names = index_names(value.at.map.dims.size());
    const std::string condition = open_condition(value.at.map, names);
    out_.line(fmt::format("{}{}({}, &{}{});", condition.empty() ? "" : fmt::format("if ({}) ", condition),
                          left.empty() ? "sw_load" : "sw_load_part", vector(v), loaded_place(value, names),
                          left.empty() ? "" : ", " + left));
  }
  const auto has = [&](int inside) { return loads_ahead_in(inside); };
  const auto load = [&](int inside) { load_branch_ahead(inside, left); };
  for (const int v : values)
    if (branches_.has(v)) {
      const int first = branches_.first_of[static_cast<std::size_t>(v)];
      const auto arguments = static_cast<int>(step_.values[static_cast<std::size_t>(v)].arguments.size());
      bool any = false;
      for (int b = first; b < first + arguments; ++b) any = any || has(b);
      if (any) print_branches(v, "", has, load);
    }
}

}  // namespace stitchwork
