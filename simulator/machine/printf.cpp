// What kernels say: vprintf and __assertfail.
#include <cstdio>
#include <cstring>

#include "core/base/error.h"
#include "simulator/machine/block.h"

namespace stitchwork::sim {
namespace {

constexpr std::size_t kMaxString = 1 << 16;
/// As the CUDA runtime's default buffer; what is beyond it is dropped, and a last line says so.
constexpr std::size_t kMaxPrinted = 1 << 20;

/// The text at a device address up to its NUL.
std::string read_string(const LaunchContext& context, std::uint64_t address) {
  const Allocation* a = context.memory->impl().find(address);
  if (a == nullptr) return fmt::format("<{:#x}>", address);
  std::string text;
  for (std::uint64_t at = address & ((std::uint64_t{1} << kAllocationShift) - 1);
       at < a->bytes.size() && a->bytes[at] != std::byte{0} && text.size() < kMaxString; ++at)
    text += static_cast<char>(a->bytes[at]);
  return text;
}

/// The values of one call, laid out one after the other with their natural alignment.
class Values {
 public:
  Values(Strand& s, const Inst* i, std::uint64_t address, int warp, int lane)
      : s_(s), i_(i), address_(address), warp_(warp), lane_(lane) {}

  template <class T>
  T next() {
    address_ = (address_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T v{};
    const BlockRun& b = *s_.block;
    const std::uint64_t offset = address_ & ((std::uint64_t{1} << kAllocationShift) - 1);
    if (address_ >> kAllocationShift == kLocalWindow && offset + sizeof(T) <= b.local_bytes) {
      const auto thread = static_cast<std::uint64_t>((s_.gang * kGangWarps + warp_) * 32 + lane_);
      std::memcpy(&v, b.local + thread * b.local_bytes + offset, sizeof v);
    } else {
      AddressCache cache;
      find_allocation(s_, i_, cache, address_, sizeof(T), false, warp_, lane_);
      std::memcpy(&v, cache.host + (address_ - cache.lo), sizeof v);
    }
    address_ += sizeof(T);
    return v;
  }

 private:
  Strand& s_;
  const Inst* i_;
  std::uint64_t address_;
  int warp_, lane_;
};

template <class... T>
std::string formatted(const std::string& conversion, T... v) {
  const int n = std::snprintf(nullptr, 0, conversion.c_str(), v...);
  std::string text(static_cast<std::size_t>(std::max(n, 0)) + 1, '\0');
  std::snprintf(text.data(), text.size(), conversion.c_str(), v...);
  text.pop_back();
  return text;
}

/// "%-8.3lf" taken apart: what stands before the length modifier, and the conversion.
struct Conversion {
  std::string start;
  int stars = 0;
  bool wide = false;  ///< l, ll, z, j, t
  char letter = 0;
};
Conversion parse_conversion(const std::string& format, std::size_t& at) {
  Conversion c;
  c.start = "%";
  for (; at < format.size(); ++at) {
    const char x = format[at];
    if (std::strchr("-+ #0123456789.", x) != nullptr) {
      c.start += x;
    } else if (x == '*') {
      c.start += x;
      ++c.stars;
    } else if (std::strchr("hlLjzt", x) != nullptr) {
      c.wide |= x != 'h';
    } else {
      c.letter = x;
      ++at;
      return c;
    }
  }
  return c;
}

}  // namespace

void raise_assertion(Strand& s, const Inst* i, std::uint64_t message, std::uint64_t file, std::uint32_t line,
                     int warp, int lane) {
  const LaunchContext& context = *s.block->launch;
  raise_finding(s, i, FindingKind::kTrap,
                fmt::format("assertion failed: {} ({}:{})", read_string(context, message),
                            read_string(context, file), line)
                    .c_str(),
                warp, lane);
}

std::uint32_t print_formatted(Strand& s, const Inst* i, std::uint64_t format_address, std::uint64_t address,
                              int warp, int lane) {
  const LaunchContext& context = *s.block->launch;
  const std::string format = read_string(context, format_address);
  Values values(s, i, address, warp, lane);
  std::string text;
  std::uint32_t count = 0;
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      text += format[at++];
      continue;
    }
    ++at;
    Conversion c = parse_conversion(format, at);
    if (c.letter == '%') {
      text += '%';
      continue;
    }
    for (; c.stars > 0; --c.stars)
      c.start.replace(c.start.find('*'), 1, std::to_string(values.next<std::int32_t>()));
    ++count;
    switch (c.letter) {
      case 'd':
      case 'i':
        text += c.wide ? formatted(c.start + "lld", values.next<long long>())
                       : formatted(c.start + "d", values.next<int>());
        break;
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        text += c.wide ? formatted(c.start + "ll" + c.letter, values.next<unsigned long long>())
                       : formatted(c.start + c.letter, values.next<unsigned>());
        break;
      case 'c':
        text += formatted(c.start + "c", values.next<int>());
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        text += formatted(c.start + c.letter, values.next<double>());
        break;
      case 's':
        text += formatted(c.start + "s", read_string(context, values.next<std::uint64_t>()).c_str());
        break;
      case 'p':
        text += fmt::format("{:#x}", values.next<std::uint64_t>());
        break;
      default:
        raise_finding(s, i, FindingKind::kTrap, fmt::format("printf of '%{}'", c.letter).c_str(), warp, lane);
    }
  }
  std::string& printed = *context.printed;
  constexpr std::string_view kDropped = "... more was printed\n";
  if (printed.size() + text.size() <= kMaxPrinted)
    printed += text;
  else if (!printed.ends_with(kDropped))
    printed += kDropped;
  return count;
}

}  // namespace stitchwork::sim
