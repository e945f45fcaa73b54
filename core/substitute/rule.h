// Graph substitutions: one table of rules, each "this part of a graph may be written so". The command
// (`stitchwork rewrite`), tests and documentation loop over it. What each rule does, and when it holds:
// docs/rewriting.md. After Venkatram and Oliaro, "ML computation graph operator fission and fusion", section
// 2.1, and TASO's substitutions (section 2.4).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/substitute/rewritten_graph.h"

namespace stitchwork::rewriting {

class View;
class Editor;
class Derivation;

enum class Exactness : std::uint8_t {
  kMoves,         ///< moves values: bit for bit equal in the reference evaluator, contraction order kept
  kReassociates,  ///< equal in exact arithmetic; floating-point rounding differs
};

/// Where a rule holds: the ops it stands on, the place asked about first. What else `apply` needs it finds
/// again.
struct Match {
  std::vector<NodeId> at;
  bool operator==(const Match&) const = default;
};

struct Rule {
  std::string_view name;
  std::string_view summary;  ///< from -> to
  std::string_view holds;    ///< if
  Exactness exactness;
  /// Always applied (tidy.h): the graph gets smaller, or its chains of layout ops shorter.
  bool tidy;
  /// Whether the rule holds at this op. A match reads nothing that descends from the ops it replaces, so all
  /// matches of one graph are true at once.
  std::optional<Match> (*find)(const View&, NodeId);
  /// Adds what gives the values instead. Null for macros.
  void (*apply)(Editor&, const Match&);
  /// Macros: other rules one by one, each a step of the derivation, at all of these places. Returns at how
  /// many of them every step was taken. Null for the others.
  int (*steps)(Derivation&, const std::string& computation, const std::vector<Place>& at) = nullptr;
  /// Of chosen rules: the match of exactly these ops; nullopt where the rule does not hold at them. Null for
  /// the others.
  std::optional<Match> (*find_all)(const View&, const std::vector<NodeId>& ops) = nullptr;
};

/// All rules that find their places; tidy rules first, in the order in which they are tried.
std::span<const Rule> rules();
/// Rules that hold at many sets of ops, of which a planner names one: `find` finds none of them.
std::span<const Rule> chosen_rules();
/// Of either. Throws Error naming the nearest if there is none of that name.
const Rule& rule_named(std::string_view name);

std::string_view name(Exactness exactness);

}  // namespace stitchwork::rewriting
