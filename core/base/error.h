// Failures of the outside world (bad files, bad options) and broken internal invariants.
//
// Three kinds, never mixed: a *refusal* is a value (core/base/verdict.h), *bad input* is an `Error`, a *bug*
// is a failed SW_CHECK.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace stitchwork {

/// Bad input of any kind: where it is, what is wrong, what to do about it. Printed by the command line as one
/// line `file:line:column: message; hint`, or as {"error": {...}} under --json; the exit code is 1.
/// `line` and `column` count from 1; 0 means "does not apply".
class Error : public std::exception {
 public:
  explicit Error(std::string message, std::string hint = {})
      : Error({}, 0, 0, std::move(message), std::move(hint)) {}
  Error(std::string file, int line, int column, std::string message, std::string hint = {});

  const std::string& file() const { return file_; }
  int line() const { return line_; }
  int column() const { return column_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string file_;
  int line_ = 0;
  int column_ = 0;
  std::string message_;
  std::string hint_;
  std::string what_;
};

/// A broken invariant: our bug, not the user's. `what()` carries source location and the failed condition.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const char* file, int line, const char* condition, const std::string& message);

}  // namespace stitchwork

/// Always-on internal check: SW_CHECK(cond) or SW_CHECK(cond, "format {}", args...).
#define SW_CHECK(cond, ...)                                                                          \
  do {                                                                                               \
    if (!(cond)) [[unlikely]]                                                                        \
      ::stitchwork::fail_check(__FILE__, __LINE__, #cond, ::stitchwork::check_message(__VA_ARGS__)); \
  } while (false)

namespace stitchwork {
inline std::string check_message() { return {}; }
template <typename... Args>
std::string check_message(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}
}  // namespace stitchwork
