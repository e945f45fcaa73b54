// The attributes of an instruction: which are typed (core/graph/graph.h, Attributes), how they are spelled,
// and in which order HLO prints them. docs/hlo.md has the table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/hlo/hlo_lexer.h"

namespace stitchwork {

/// A computation named by an attribute, before names are resolved. `slot` orders those of one instruction:
/// condition before body, select before scatter, true before false, branches as listed.
struct CalleeName {
  int slot = 0;
  std::string_view name;
  std::size_t position = 0;
};

/// Reads the value of `key` (the cursor is after '=') into `node`; computations go to `callees`.
void read_attribute(HloLexer& lexer, std::string_view key, std::size_t key_position, Node& node,
                    std::vector<CalleeName>& callees);

/// "EQ", "LT", ...: as `direction` spells it.
std::string_view name(Comparison comparison);

/// Attributes that `node` lacks and its op cannot do without: the first one's name, or "".
std::string_view missing_attribute(const Node& node, const std::vector<CalleeName>& callees);

/// Puts `other` into the order in which it is printed.
void order_other(Attributes& attrs);

/// ", dimensions={1}, to_apply=sum, metadata={...}" as HLO orders them. The operand's type decides between
/// conditional's two forms; with neither `graph` nor metadata the text depends on what the op computes only.
std::string attributes_text(const Graph& graph, const Computation& computation, const Node& node);

/// The typed and verbatim attributes without computations and metadata: equal text, equal meaning.
std::string plain_attributes_text(const Node& node);

/// `name` as printed: with % where it would be misread without (a keyword, or a leading digit).
std::string spelled_name(std::string_view name);

}  // namespace stitchwork
