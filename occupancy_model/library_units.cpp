// The "products" of device files: peaks by element type and what library kernels sustain of them.
#include <map>

#include "occupancy_model/device_reader.h"
#include "occupancy_model/library.h"

namespace stitchwork {

std::optional<ProductUnits> parse_product_units(std::string_view text, const std::string& origin) {
  const nlohmann::json document = parse_device_json(text, origin);
  const auto found = document.find("products");
  if (found == document.end()) return std::nullopt;
  if (!found->is_object()) throw Error(origin, 0, 0, "key \"products\" is no object");
  DeviceReader read(*found, origin);
  ProductUnits units;
  read.number("fp64_tflops", units.fp64_tflops);
  read.number("fma_efficiency", units.fma_efficiency);
  read.optional_number("tensor_fp16_tflops", units.tensor_fp16_tflops);
  read.optional_number("tensor_bf16_tflops", units.tensor_bf16_tflops);
  read.optional_number("tensor_tf32_tflops", units.tensor_tf32_tflops);
  read.optional_number("tensor_fp64_tflops", units.tensor_fp64_tflops);
  read.optional_number("int8_tops", units.int8_tops);
  const double narrow = units.tensor_fp16_tflops + units.tensor_bf16_tflops + units.tensor_tf32_tflops +
                        units.tensor_fp64_tflops + units.int8_tops;
  if (narrow > 0) read.number("tensor_efficiency", units.tensor_efficiency);
  read.refuse_unknown_keys();
  for (const auto& [key, value] : {std::pair{"fp64_tflops", units.fp64_tflops},
                                   {"fma_efficiency", units.fma_efficiency},
                                   {"tensor_efficiency", units.tensor_efficiency}})
    if (value == 0) read.fail(key, "is zero");
  return units;
}

ProductUnits product_units(const Device& device) {
  static const std::map<std::string, ProductUnits> known = [] {
    std::map<std::string, ProductUnits> units;
    for (const DeviceText& text : device_texts())
      if (const auto of_device = parse_product_units(text.json, text.origin))
        units[parse_device(text.json, text.origin).id] = *of_device;
    return units;
  }();
  if (const auto it = known.find(device.id); it != known.end()) return it->second;
  return {.fp64_tflops = device.fp32_tflops};
}

void require_tf32(const Device& device) {
  if (product_units(device).tensor_tf32_tflops > 0) return;
  throw Error(
      fmt::format("{} has no tensor cores for TF32: its products of f32 matrices are computed in fp32",
                  device.name),
      "leave out --tf32 (\"tf32\" of an experiment), or name a device of compute capability 8.0 or later");
}

}  // namespace stitchwork
