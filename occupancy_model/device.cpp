#include "occupancy_model/device.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "occupancy_model/device_reader.h"
#include "occupancy_model/embedded_devices.h"

namespace stitchwork {
namespace {

using nlohmann::json;

constexpr std::string_view kSchema = "stitchwork.device/1";

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(path, 0, 0, "cannot be opened", "give the path of a device file");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The newest table that is no newer; of devices older than all tables the oldest.
const Architecture& architecture_of(int cc_major, int cc_minor) {
  const Architecture* found = &architectures().front();
  for (const Architecture& a : architectures())
    if (std::pair(a.cc_major, a.cc_minor) <= std::pair(cc_major, cc_minor)) found = &a;
  return *found;
}

std::vector<Device> load_devices() {
  std::vector<Device> list;
  for (const DeviceText& text : device_texts()) {
    Device device = parse_device(text.json, text.origin);
    std::erase_if(list, [&device](const Device& d) { return d.id == device.id; });
    list.push_back(std::move(device));
  }
  std::ranges::sort(list, {}, &Device::id);
  return list;
}

}  // namespace

std::vector<DeviceText> device_texts() {
  std::vector<DeviceText> texts;
  for (const EmbeddedDevice& embedded : embedded_devices())
    texts.push_back({std::string(embedded.file), std::string(embedded.json)});
  if (const char* folder = std::getenv("STITCHWORK_DEVICES"); folder != nullptr && *folder != '\0') {
    std::error_code failure;
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder, failure))
      if (entry.path().extension() == ".json") paths.push_back(entry.path());
    if (failure)
      throw Error(folder, 0, 0, "cannot list the folder of devices",
                  "STITCHWORK_DEVICES must name a folder of device files");
    std::ranges::sort(paths);
    for (const auto& path : paths) texts.push_back({path.string(), file_text(path.string())});
  }
  return texts;
}

json parse_device_json(std::string_view text, const std::string& origin) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    const auto end = std::min<std::size_t>(error.byte, text.size());
    const auto line = 1 + std::ranges::count(text.substr(0, end), '\n');
    throw Error(origin, static_cast<int>(line), 0, "not valid JSON", "check for a missing comma or quote");
  }
}

Device parse_device(std::string_view text, const std::string& origin) {
  const json document = parse_device_json(text, origin);
  DeviceReader read(document, origin);
  if (!document.is_object() || read.text("schema") != kSchema)
    throw Error(origin, 0, 0, "not a device description",
                fmt::format("it must start with \"schema\": \"{}\"", kSchema));
  Device d;
  d.id = lower(read.text("id"));
  d.aliases = read.texts("aliases");
  d.name = read.text("name");
  read.number("cc_major", d.cc_major);
  read.number("cc_minor", d.cc_minor);
  read.number("sms", d.sms);
  if (d.cc_major >= 9) {  // clusters of up to 8 blocks run on every such device
    d.gpcs = 1;
    d.max_cluster_blocks = kPortableClusterBlocks;
  }
  read.optional_number("gpcs", d.gpcs);
  read.optional_number("max_cluster_blocks", d.max_cluster_blocks);
  read.number("clock_ghz", d.clock_ghz);
  read.number("shared_bytes_per_sm", d.shared_bytes_per_sm);
  read.number("shared_bytes_per_block_default", d.shared_bytes_per_block_default);
  read.number("shared_bytes_per_block_optin", d.shared_bytes_per_block_optin);
  read.number("shared_bytes_reserved_per_block", d.shared_bytes_reserved_per_block);
  read.number("shared_allocation_bytes", d.shared_allocation_bytes);
  read.number("max_warps_per_sm", d.max_warps_per_sm);
  read.number("max_blocks_per_sm", d.max_blocks_per_sm);
  read.number("max_threads_per_block", d.max_threads_per_block);
  read.number("registers_per_sm", d.registers_per_sm);
  read.number("register_allocation", d.register_allocation);
  read.number("max_registers_per_thread", d.max_registers_per_thread);
  read.number("sm_partitions", d.sm_partitions);
  read.number("fp32_lanes_per_sm", d.fp32_lanes_per_sm);
  read.number("l2_bytes", d.l2_bytes);
  read.number("dram_gb_s", d.dram_gb_s);
  read.number("l2_gb_s", d.l2_gb_s);
  read.number("fp32_tflops", d.fp32_tflops);
  read.number("dram_efficiency", d.dram_efficiency);
  read.number("dram_latency_ns", d.dram_latency_ns);
  read.number("max_inflight_bytes_per_sm", d.max_inflight_bytes_per_sm);
  read.number("launch_us", d.launch_us);
  read.number("launch_gap_us", d.launch_gap_us);
  read.number("grid_barrier_us", d.grid_barrier_us);
  read.number("grid_barrier_us_per_block", d.grid_barrier_us_per_block);
  d.sm = architecture_of(d.cc_major, d.cc_minor);
  if (read.contains("products")) read.at("products");  // library_units.cpp reads these
  read.refuse_unknown_keys();
  for (const auto& [key, value] : {std::pair{"sms", d.sms},
                                   {"max_warps_per_sm", d.max_warps_per_sm},
                                   {"max_blocks_per_sm", d.max_blocks_per_sm},
                                   {"shared_allocation_bytes", d.shared_allocation_bytes},
                                   {"register_allocation", d.register_allocation},
                                   {"sm_partitions", d.sm_partitions},
                                   {"fp32_lanes_per_sm", d.fp32_lanes_per_sm}})
    if (value == 0) read.fail(key, "is zero");
  if (d.max_cluster_blocks > 0 && (d.gpcs < 1 || d.gpcs > d.sms))
    read.fail("gpcs", "is no number of groups of SMs");
  for (const auto& [key, value] : {std::pair{"clock_ghz", d.clock_ghz},
                                   {"dram_gb_s", d.dram_gb_s},
                                   {"l2_gb_s", d.l2_gb_s},
                                   {"fp32_tflops", d.fp32_tflops},
                                   {"dram_efficiency", d.dram_efficiency},
                                   {"dram_latency_ns", d.dram_latency_ns}})
    if (value == 0) read.fail(key, "is zero");
  return d;
}

Device read_device(const std::string& path) { return parse_device(file_text(path), path); }

const std::vector<Device>& devices() {
  static const std::vector<Device> list = load_devices();
  return list;
}

const Device& device(std::string_view id) {
  const std::string wanted = lower(id);
  std::string known;
  for (const Device& d : devices()) {
    if (d.id == wanted || std::ranges::any_of(d.aliases, [&](const auto& a) { return lower(a) == wanted; }))
      return d;
    known += (known.empty() ? "" : ", ") + d.id;
  }
  throw Error(fmt::format("unknown device \"{}\"", id), "known devices: " + known);
}

}  // namespace stitchwork
