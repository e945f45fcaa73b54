#include "runtime/backend.h"

#include "core/base/error.h"

namespace stitchwork {

std::string_view name(Method method) {
  switch (method) {
    case Method::kModelled:
      return "modelled";
    case Method::kSimulated:
      return "simulated";
    case Method::kSampled:
      return "sampled";
    case Method::kMeasured:
      return "measured";
    case Method::kImported:
      return "imported";
  }
  fail_check(__FILE__, __LINE__, "known Method", "");
}

}  // namespace stitchwork
