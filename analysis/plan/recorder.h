// Collects a planner's decisions; formats nothing when nobody asked.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/verdict.h"

namespace stitchwork {

/// The step of decisions about the forms of a kernel that were tried: `subject` is an op of the kernel,
/// `object` what the form does not leave to the rules ("512 threads, no tiles"), the reason what it is worth.
inline constexpr std::string_view kFormStep = "form";

class Recorder {
 public:
  explicit Recorder(bool enabled) : enabled_(enabled) {}
  bool enabled() const { return enabled_; }

  /// `verdict` is a callable, only called when recording.
  template <typename MakeVerdict>
  void add(std::string_view step, const std::string& subject, const std::string& object,
           MakeVerdict&& verdict) {
    if (enabled_) decisions_.push_back({std::string(step), subject, object, verdict()});
  }
  void append(std::vector<Decision> decisions) {
    for (Decision& decision : decisions) decisions_.push_back(std::move(decision));
  }
  std::vector<Decision> take() { return std::move(decisions_); }

 private:
  bool enabled_;
  std::vector<Decision> decisions_;
};

}  // namespace stitchwork
