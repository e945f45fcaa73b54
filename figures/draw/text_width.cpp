#include "figures/draw/text_width.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace stitchwork {
namespace {

/// Advance widths of DejaVu Sans 2.37 (its table hmtx), in its units of 2048 an em: U+0020 to U+007E, U+00A0
/// to U+00FF, some others.
constexpr double kUnits = 2048;
constexpr std::array<std::uint16_t, 95> kAscii = {
    651,  821,  942,  1716, 1303, 1946, 1597, 563,  799,  799,  1024, 1716, 651,  739,  651,  690,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690,  690,  1716, 1716, 1716, 1087,
    2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604,  604,  1343, 1141, 1767, 1532, 1612,
    1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799,  690,  799,  1716, 1024,
    1024, 1255, 1300, 1126, 1300, 1260, 721,  1300, 1298, 569,  569,  1186, 569,  1995, 1298, 1253,
    1300, 1300, 842,  1067, 803,  1298, 1212, 1675, 1212, 1212, 1075, 1303, 690,  1303, 1716};
constexpr std::array<std::uint16_t, 96> kLatin = {
    651,  821,  1303, 1303, 1303, 1303, 690,  1024, 1024, 2048, 965,  1253, 1716, 739,  2048, 1024,
    1024, 1716, 821,  821,  1024, 1303, 1303, 651,  1024, 821,  965,  1253, 1985, 1985, 1985, 1087,
    1401, 1401, 1401, 1401, 1401, 1401, 1995, 1430, 1294, 1294, 1294, 1294, 604,  604,  604,  604,
    1587, 1532, 1612, 1612, 1612, 1612, 1612, 1716, 1612, 1499, 1499, 1499, 1499, 1251, 1239, 1290,
    1255, 1255, 1255, 1255, 1255, 1255, 2011, 1126, 1260, 1260, 1260, 1260, 569,  569,  569,  569,
    1253, 1298, 1253, 1253, 1253, 1253, 1253, 1716, 1253, 1298, 1298, 1298, 1298, 1212, 1300, 1212};
constexpr std::array<std::pair<std::uint32_t, std::uint16_t>, 18> kOthers = {{
    {0x3A3, 1294},
    {0x3BB, 1212},
    {0x3BC, 1303},
    {0x3C3, 1298},
    {0x2013, 1024},
    {0x2014, 2048},
    {0x2022, 1208},
    {0x2026, 2048},
    {0x2030, 2748},
    {0x2190, 1716},
    {0x2192, 1716},
    {0x2212, 1716},
    {0x221A, 1305},
    {0x221E, 1706},
    {0x2260, 1716},
    {0x2264, 1716},
    {0x2265, 1716},
    {0x2713, 1716},
}};
/// Of all else: an operator's, which most symbols have.
constexpr std::uint16_t kUnknown = 1716;

std::uint16_t advance(std::uint32_t letter) {
  constexpr std::uint32_t kFirst = 0x20, kFirstLatin = 0xA0;
  if (letter >= kFirst && letter < kFirst + kAscii.size()) return kAscii[letter - kFirst];
  if (letter >= kFirstLatin && letter < kFirstLatin + kLatin.size()) return kLatin[letter - kFirstLatin];
  const auto other = std::ranges::find(kOthers, letter, &std::pair<std::uint32_t, std::uint16_t>::first);
  return other == kOthers.end() ? kUnknown : other->second;
}

}  // namespace

double text_width(std::string_view utf8, double points) {
  double units = 0;
  for (std::size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t letter = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t k = 1; k < length && i + k < utf8.size(); ++k)
      letter = letter << 6 | (static_cast<unsigned char>(utf8[i + k]) & 0x3FU);
    units += advance(letter);
    i += length;
  }
  return units / kUnits * points;
}

double text_height(double points) { return points * 1.2; }

}  // namespace stitchwork
