// Numbers and text for people: tables of the command line and of reports, messages.
#pragma once

#include <string>

namespace stitchwork {

/// 1234567 -> "1,234,567".
std::string with_commas(long long value);
/// 1536 -> "1.5 KiB".
std::string human_bytes(double bytes);
/// 0.125 -> "12.5 %".
std::string percent(double share);
/// (1, "task") -> "1 task", (2, "task") -> "2 tasks".
std::string counted(long long count, const char* one);
/// Text of a file as a part of a message: control characters, which would break its line, become '?'.
std::string printable(std::string text);
/// As one word of a POSIX shell: "a b" -> "'a b'"; what needs no quotes stays.
std::string shell_word(const std::string& text);

}  // namespace stitchwork
