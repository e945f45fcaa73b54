#include "core/base/error.h"

namespace stitchwork {

Error::Error(std::string file, int line, int column, std::string message, std::string hint)
    : file_(std::move(file)),
      line_(line),
      column_(column),
      message_(std::move(message)),
      hint_(std::move(hint)) {
  if (!file_.empty()) {
    what_ = file_;
    if (line_ > 0) what_ += fmt::format(":{}", line_);
    if (line_ > 0 && column_ > 0) what_ += fmt::format(":{}", column_);
    what_ += ": ";
  }
  what_ += message_;
  if (!hint_.empty()) what_ += "; " + hint_;
}

void fail_check(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: internal check failed: {}{}{}", file, line, condition,
                                  message.empty() ? "" : ": ", message));
}

}  // namespace stitchwork
