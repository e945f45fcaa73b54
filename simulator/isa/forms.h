// The forms of instructions that are spelled out, beside the rows of the instruction table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stitchwork::ptx {

bool is_listed_form(std::string_view opcode);
/// The listed form that has the same modifiers in whatever order; "" if there is none.
std::string_view listed_form(std::string_view opcode);
/// Whether all forms of such an instruction are listed.
bool has_listed_forms(std::string_view base);
std::span<const std::string_view> listed_patterns();
/// Those of instructions that have other forms, too, whose modifiers are looked at where they are lowered.
std::span<const std::string_view> bulk_patterns();
/// The one of these that has the same modifiers in whatever order; "" if there is none.
std::string_view bulk_form(std::string_view opcode);
/// The row of an instruction whose modifiers stand in whatever order, as ptxas takes them; -1: none.
int find_row_in_any_order(std::string_view opcode);
/// Of an instruction that is refused, the first modifier that no form of it has; "" if each is in some.
std::string unknown_modifier(std::string_view opcode);
/// Instructions that are refused by the name of what they are of.
struct MissingFeature {
  std::string_view base, what, hint;
};
/// Null: it is none of them.
const MissingFeature* missing_feature(std::string_view base);

}  // namespace stitchwork::ptx
