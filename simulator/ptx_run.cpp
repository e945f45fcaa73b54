#include "simulator/ptx_run.h"

#include <charconv>
#include <cstring>
#include <map>
#include <thread>

#include "core/base/error.h"
#include "core/hlo/npy.h"

namespace stitchwork::sim {
namespace {

constexpr const char* kHint =
    "arguments are i32:5, u32:5, i64:5, u64:5, f32:1.5, f64:1.5, buf:f32:1024:seed=1, buf:f32:1024:zero or "
    "FILE.npy";

template <class T>
Argument scalar_argument(std::string_view text, const std::string& whole) {
  T v{};
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size()) {
    throw Error(fmt::format("argument '{}': '{}' is not a value of that type", whole, text), kHint);
  }
  Argument a;
  a.bytes.resize(sizeof v);
  std::memcpy(a.bytes.data(), &v, sizeof v);
  return a;
}

std::optional<DType> buffer_type(std::string_view name) {
  static const std::map<std::string_view, DType> kTypes = {
      {"f32", DType::kF32}, {"f64", DType::kF64}, {"f16", DType::kF16}, {"bf16", DType::kBF16},
      {"i8", DType::kS8},   {"i16", DType::kS16}, {"i32", DType::kS32}, {"i64", DType::kS64},
      {"u8", DType::kU8},   {"u16", DType::kU16}, {"u32", DType::kU32}, {"u64", DType::kU64}};
  const auto it = kTypes.find(name);
  return it == kTypes.end() ? std::nullopt : std::optional(it->second);
}

/// Number i of SplitMix64, a small generator whose output is the same everywhere.
inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  return z ^ z >> 31;
}
/// The sum of four uniform numbers, scaled to unit variance: close enough to normal, and cheap.
inline double normal(std::uint64_t bits) {
  const auto sum = static_cast<std::int32_t>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) +
                                             (bits >> 48));
  return (static_cast<double>(sum) - 131070.0) * (1.7320508075688772 / 65536.0);
}
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
void fill_normal(float* x, std::uint64_t seed, std::int64_t first, std::int64_t last) {
  for (std::int64_t i = first; i < last; ++i)
    x[i] = static_cast<float>(normal(random_bits(seed, static_cast<std::uint64_t>(i))));
}

void fill_random(Literal& l, std::uint64_t seed) {
  const std::int64_t n = l.shape.elements_count();
  if (l.shape.dtype == DType::kF32) {
    constexpr std::int64_t kWorthAThread = 1 << 17;
    float* x = l.data<float>();
    if (n < kWorthAThread) return fill_normal(x, seed, 0, n);
    std::thread other([&] { fill_normal(x, seed, 0, n / 2); });
    fill_normal(x, seed, n / 2, n);
    other.join();
    return;
  }
  const bool floating = is_floating(l.shape.dtype);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(i));
    if (floating)
      l.set_double(i, normal(bits));
    else
      l.set_int(i, static_cast<std::int64_t>(bits & 0x7f));
  }
}

Literal parse_buffer(std::string_view rest, const std::string& whole) {
  const std::size_t first = rest.find(':');
  const std::size_t second = first == std::string_view::npos ? first : rest.find(':', first + 1);
  if (second == std::string_view::npos) {
    throw Error(fmt::format("argument '{}': a buffer is buf:TYPE:COUNT:seed=N or buf:TYPE:COUNT:zero", whole),
                kHint);
  }
  const auto type = buffer_type(rest.substr(0, first));
  if (!type)
    throw Error(fmt::format("argument '{}': unknown type '{}'", whole, rest.substr(0, first)), kHint);
  const std::string_view count_text = rest.substr(first + 1, second - first - 1),
                         fill = rest.substr(second + 1);
  std::int64_t count = 0;
  const auto r = std::from_chars(count_text.data(), count_text.data() + count_text.size(), count);
  if (r.ec != std::errc() || r.ptr != count_text.data() + count_text.size() || count <= 0 ||
      count > (std::int64_t{1} << 36)) {
    throw Error(fmt::format("argument '{}': '{}' is not a number of elements", whole, count_text), kHint);
  }
  Literal l = Literal::zeros(Shape::array(*type, {count}));
  if (fill == "zero") return l;
  std::uint64_t seed = 0;
  const std::string_view number = fill.starts_with("seed=") ? fill.substr(5) : std::string_view{};
  const auto s = std::from_chars(number.data(), number.data() + number.size(), seed);
  if (number.empty() || s.ec != std::errc() || s.ptr != number.data() + number.size()) {
    throw Error(fmt::format("argument '{}': a buffer is filled by seed=N or zero, not '{}'", whole, fill),
                kHint);
  }
  fill_random(l, seed);
  return l;
}

}  // namespace

ArgumentSpec parse_argument(const std::string& text) {
  ArgumentSpec spec;
  const std::string_view view = text;
  if (view.starts_with("buf:")) {
    spec.buffer = parse_buffer(view.substr(4), text);
  } else if (view.ends_with(".npy")) {
    spec.buffer = read_npy(text);
  } else if (view.starts_with("i32:")) {
    spec.scalar = scalar_argument<std::int32_t>(view.substr(4), text);
  } else if (view.starts_with("u32:")) {
    spec.scalar = scalar_argument<std::uint32_t>(view.substr(4), text);
  } else if (view.starts_with("i64:")) {
    spec.scalar = scalar_argument<std::int64_t>(view.substr(4), text);
  } else if (view.starts_with("u64:")) {
    spec.scalar = scalar_argument<std::uint64_t>(view.substr(4), text);
  } else if (view.starts_with("f32:")) {
    spec.scalar = scalar_argument<float>(view.substr(4), text);
  } else if (view.starts_with("f64:")) {
    spec.scalar = scalar_argument<double>(view.substr(4), text);
  } else {
    throw Error(fmt::format("argument '{}' is not understood", text), kHint);
  }
  return spec;
}

Dim3 parse_dim3(const std::string& text) {
  std::uint32_t v[3] = {1, 1, 1};
  const char* at = text.data();
  const char* end = at + text.size();
  for (int k = 0; k < 3; ++k) {
    const auto r = std::from_chars(at, end, v[k]);
    if (r.ec != std::errc() || v[k] == 0) break;
    if (r.ptr == end) return {v[0], v[1], v[2]};
    if (*r.ptr != ',') break;
    at = r.ptr + 1;
  }
  throw Error(fmt::format("'{}' is not a size", text),
              "write x or x,y,z with positive integers, such as 160,1,1");
}

PtxRun run_ptx(const ptx::Module& module, Launch launch, const std::vector<std::string>& arguments,
               const Device& device, const Options& options) {
  if (launch.kernel.empty()) {
    if (module.kernels().size() != 1) {
      throw Error(module.file(), 0, 0, fmt::format("the file has {} kernels", module.kernels().size()),
                  "name one with --kernel");
    }
    launch.kernel = module.kernels().front().name;
  }
  DeviceMemory memory(options.sanitize.init);
  PtxRun run_result;
  std::vector<DeviceAddress> addresses;
  launch.arguments.clear();
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    ArgumentSpec spec = parse_argument(arguments[k]);
    DeviceAddress address = 0;
    if (spec.buffer) {
      address = memory.adopt(std::move(spec.buffer->bytes), fmt::format("argument {}", k));
      spec.scalar = Argument::pointer(address);
    }
    addresses.push_back(address);
    launch.arguments.push_back(std::move(spec.scalar));
    run_result.buffers.push_back(std::move(spec.buffer));
  }
  run_result.result = run(module, launch, memory, device, options);
  for (std::size_t k = 0; k < addresses.size(); ++k) {
    if (run_result.buffers[k]) run_result.buffers[k]->bytes = memory.take(addresses[k]);
  }
  return run_result;
}

}  // namespace stitchwork::sim
