#include "experiments/launch_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/format.h"

namespace stitchwork {

using nlohmann::ordered_json;

ordered_json counters_json(const sim::Counters& counters) {
  ordered_json object = ordered_json::object();
  for (const auto& [counter, value] : sim::counter_list(counters)) object[std::string(counter)] = value;
  return object;
}

ordered_json sanitizers_json(const sim::Sanitizers& asked, const sim::SanitizerCounts& counts) {
  ordered_json object = {{"mem", {{"accesses_checked", counts.mem_accesses}}},
                         {"sync", {{"barriers_checked", counts.sync_barriers}}}};
  if (asked.race) object["race"] = {{"accesses_checked", counts.race_accesses}};
  if (asked.init) object["init"] = {{"accesses_checked", counts.init_accesses}};
  return object;
}

std::string to_text(const sim::Sanitizers& asked, const sim::SanitizerCounts& counts) {
  std::string text = fmt::format("sanitizers: mem {} accesses", with_commas(counts.mem_accesses));
  if (asked.race) text += fmt::format(", race {} accesses", with_commas(counts.race_accesses));
  if (asked.init) text += fmt::format(", init {} reads", with_commas(counts.init_accesses));
  return text + fmt::format(", sync {} barriers", with_commas(counts.sync_barriers));
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
