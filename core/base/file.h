// Reading and writing whole files: errors say what and why, writes are all or nothing.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace stitchwork {

/// Throws Error naming the file.
std::string read_file(const std::string& path);
/// A file, decompressed if it is a gzip file. Throws Error naming it; `kinds` says which files are expected,
/// as in ".hlo or .gz". At most 2 GiB, and what memory there is.
std::string read_decompressed(const std::string& path, std::string_view kinds);
/// Through a temporary file and rename, so that nothing half-written stays behind; through links, which stay.
/// What is no file, as a pipe or /dev/stdout, is written to and stays what it is. Throws Error naming the
/// file.
void write_file(const std::string& path, std::string_view text);
/// The same of several parts, one behind another.
void write_file(const std::string& path, std::initializer_list<std::string_view> parts);
/// Throws the Error that write_file would where the path tells it: before long work is done for nothing.
void require_writable(const std::string& path);

}  // namespace stitchwork
