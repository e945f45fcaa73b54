#include "simulator/ptx_run.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <span>
#include <thread>

#include "core/base/error.h"
#include "core/hlo/npy.h"
#include "simulator/ptx_program.h"

namespace stitchwork::sim {
namespace {

constexpr const char* kHint =
    "arguments are i32:5, u64:5, f32:1.5 and the like (i, u of 8 to 64 bits, f16, bf16, f32, f64), "
    "buf:f32:1024:seed=1, buf:f32:1024:zero or FILE.npy";

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

/// Narrow floats are rounded from f32.
Argument narrow_float(std::string_view text, const std::string& whole, std::uint16_t (*round)(float)) {
  const Argument wide = scalar_argument<float>(text, whole);
  float value = 0;
  std::memcpy(&value, wide.bytes.data(), sizeof value);
  const std::uint16_t bits = round(value);
  const auto bytes = std::as_bytes(std::span(&bits, 1));
  return {{bytes.begin(), bytes.end()}};
}

Argument scalar_of(DType type, std::string_view text, const std::string& whole) {
  switch (type) {
    case DType::kS8:
      return scalar_argument<std::int8_t>(text, whole);
    case DType::kS16:
      return scalar_argument<std::int16_t>(text, whole);
    case DType::kS32:
      return scalar_argument<std::int32_t>(text, whole);
    case DType::kS64:
      return scalar_argument<std::int64_t>(text, whole);
    case DType::kU8:
      return scalar_argument<std::uint8_t>(text, whole);
    case DType::kU16:
      return scalar_argument<std::uint16_t>(text, whole);
    case DType::kU32:
      return scalar_argument<std::uint32_t>(text, whole);
    case DType::kU64:
      return scalar_argument<std::uint64_t>(text, whole);
    case DType::kF16:
      return narrow_float(text, whole, f32_to_f16);
    case DType::kBF16:
      return narrow_float(text, whole, f32_to_bf16);
    case DType::kF64:
      return scalar_argument<double>(text, whole);
    default:
      return scalar_argument<float>(text, whole);
  }
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

std::optional<DType> buffer_type(std::string_view name) {
  static const std::map<std::string_view, DType> kTypes = {
      {"f32", DType::kF32}, {"f64", DType::kF64}, {"f16", DType::kF16}, {"bf16", DType::kBF16},
      {"i8", DType::kS8},   {"i16", DType::kS16}, {"i32", DType::kS32}, {"i64", DType::kS64},
      {"u8", DType::kU8},   {"u16", DType::kU16}, {"u32", DType::kU32}, {"u64", DType::kU64}};
  const auto it = kTypes.find(name);
  return it == kTypes.end() ? std::nullopt : std::optional(it->second);
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

void fill_uniform(Literal& l, std::uint64_t seed, double low, double high) {
  const std::int64_t n = l.shape.elements_count();
  const bool floating = is_floating(l.shape.dtype);
  for (std::int64_t i = 0; i < n; ++i) {
    // 53 bits: a double's, in [0, 1)
    const double unit = static_cast<double>(random_bits(seed, static_cast<std::uint64_t>(i)) >> 11) * 0x1p-53;
    const double value = low + (high - low) * unit;
    if (floating)
      l.set_double(i, value);
    else
      l.set_int(i, static_cast<std::int64_t>(std::floor(value)));
  }
}

ArgumentSpec parse_argument(const std::string& text) {
  ArgumentSpec spec;
  const std::string_view view = text;
  if (view.starts_with("buf:")) {
    spec.buffer = parse_buffer(view.substr(4), text);
    return spec;
  }
  if (view.ends_with(".npy")) {
    spec.buffer = read_npy(text);
    return spec;
  }
  const std::size_t colon = view.find(':');
  const auto type = colon == std::string_view::npos ? std::nullopt : buffer_type(view.substr(0, colon));
  if (!type) throw Error(fmt::format("argument '{}' is not understood", text), kHint);
  spec.scalar = scalar_of(*type, view.substr(colon + 1), text);
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
  PtxProgram program;
  std::vector<std::optional<std::size_t>> buffers;  // by argument
  KernelStep step{.module = &module,
                  .launch = std::move(launch),
                  .arguments = {},
                  .registers = options.registers_per_thread};
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    ArgumentSpec spec = parse_argument(arguments[k]);
    buffers.push_back(spec.buffer ? std::optional(program.buffers.size()) : std::nullopt);
    step.arguments.push_back(spec.buffer ? ProgramArgument::pointer({program.buffers.size(), 0})
                                         : ProgramArgument::scalar(spec.scalar));
    if (spec.buffer) program.buffers.push_back({fmt::format("argument {}", k), std::move(*spec.buffer)});
  }
  program.steps.push_back({step.launch.kernel, std::move(step)});
  ProgramResult ran = run_program(program, device, options);
  PtxRun result;
  result.result = std::move(ran.steps.front().launch);
  for (const auto& buffer : buffers)
    result.buffers.push_back(buffer ? std::optional(std::move(ran.buffers[*buffer])) : std::nullopt);
  return result;
}

}  // namespace stitchwork::sim
