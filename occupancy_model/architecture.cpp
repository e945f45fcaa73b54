// The tables of what an SM of each architecture does a clock (occupancy_model/devices/architectures/).
#include <array>
#include <utility>

#include "occupancy_model/device.h"
#include "occupancy_model/device_reader.h"
#include "occupancy_model/embedded_devices.h"

namespace stitchwork {
namespace {

using Value = std::pair<std::string_view, double Architecture::*>;
constexpr std::array kValues{Value{"schedulers", &Architecture::schedulers},
                             Value{"dependent_issue_clocks", &Architecture::dependent_issue_clocks},
                             Value{"fp64_lanes", &Architecture::fp64_lanes},
                             Value{"half2_lanes", &Architecture::half2_lanes},
                             Value{"int32_lanes", &Architecture::int32_lanes},
                             Value{"mufu_lanes", &Architecture::mufu_lanes},
                             Value{"ldst_lanes", &Architecture::ldst_lanes},
                             Value{"l1_bytes_per_clock", &Architecture::l1_bytes_per_clock},
                             Value{"shared_bytes_per_clock", &Architecture::shared_bytes_per_clock},
                             Value{"l2_bytes_per_clock", &Architecture::l2_bytes_per_clock},
                             Value{"dram_bytes_per_clock", &Architecture::dram_bytes_per_clock},
                             Value{"l2_atomic_factor", &Architecture::l2_atomic_factor},
                             Value{"same_address_atomic_clocks", &Architecture::same_address_atomic_clocks},
                             Value{"l1_latency_clocks", &Architecture::l1_latency_clocks},
                             Value{"l2_latency_clocks", &Architecture::l2_latency_clocks},
                             Value{"dram_latency_clocks", &Architecture::dram_latency_clocks}};

std::vector<Architecture> load_architectures() {
  std::vector<Architecture> list;
  for (const EmbeddedDevice& file : embedded_architectures())
    list.push_back(parse_architecture(file.json, std::string(file.file)));
  std::ranges::sort(list, {}, [](const Architecture& a) { return std::pair(a.cc_major, a.cc_minor); });
  return list;
}

}  // namespace

Architecture parse_architecture(std::string_view text, const std::string& origin) {
  const nlohmann::json document = parse_device_json(text, origin);
  DeviceReader read(document, origin);
  if (!document.is_object() || read.text("schema") != "stitchwork.architecture/1")
    throw Error(origin, 0, 0, "not a table of an architecture",
                R"(it must start with "schema": "stitchwork.architecture/1")");
  Architecture a;
  a.name = read.text("name");
  a.cc_major = read.count("cc_major");
  a.cc_minor = read.count("cc_minor");
  for (const auto& [key, value] : kValues) {
    read.number(key, a.*value);
    if (a.*value == 0) read.fail(key, "is zero");
  }
  read.refuse_unknown_keys();
  return a;
}

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> list = load_architectures();
  return list;
}

}  // namespace stitchwork
