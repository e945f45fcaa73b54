#include "experiments/launch_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace stitchwork {

using nlohmann::ordered_json;

ordered_json counters_json(const sim::Counters& counters) {
  ordered_json object = ordered_json::object();
  for (const auto& [counter, value] : sim::counter_list(counters)) object[std::string(counter)] = value;
  return object;
}

ordered_json finding_json(const sim::Finding& f) {
  return {{"kind", sim::name(f.kind)},
          {"kernel", f.kernel},
          {"ptx_line", f.ptx_line},
          {"cuda", f.cuda_location},
          {"block", {f.block.x, f.block.y, f.block.z}},
          {"thread", {f.thread.x, f.thread.y, f.thread.z}},
          {"message", f.message}};
}

std::string to_text(const sim::Finding& f) {
  return fmt::format("{} in {} (PTX line {}{}), block ({},{},{}), thread ({},{},{}): {}", sim::name(f.kind),
                     f.kernel, f.ptx_line, f.cuda_location.empty() ? "" : ", " + f.cuda_location, f.block.x,
                     f.block.y, f.block.z, f.thread.x, f.thread.y, f.thread.z, f.message);
}

}  // namespace stitchwork
