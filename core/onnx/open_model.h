// Models that cannot be read before more is said about them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace stitchwork {

/// Something a model leaves open that OnnxOptions can settle.
struct OnnxQuestion {
  enum class Kind : std::uint8_t { kDimension, kValue } kind = Kind::kDimension;
  std::string name;        ///< the key of OnnxOptions::dims or ::values
  std::string of;          ///< of a dimension the inputs that have it, "x[1], mask[0]"; of a value its type
  std::string suggestion;  ///< what one may begin with; empty: nothing better than any other
  bool operator==(const OnnxQuestion&) const = default;
};

/// A model that cannot be read before OnnxOptions say more. All open dimensions are asked for at once, the
/// value of an input where the first node needs it: settling that may lead to the next question.
class OpenModel : public Error {
 public:
  OpenModel(const Error& error, std::vector<OnnxQuestion> questions)
      : Error(error), questions_(std::move(questions)) {}

  const std::vector<OnnxQuestion>& questions() const { return questions_; }

 private:
  std::vector<OnnxQuestion> questions_;
};

}  // namespace stitchwork
