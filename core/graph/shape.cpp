#include "core/graph/shape.h"

#include <fmt/format.h>

#include <algorithm>

namespace stitchwork {

std::int64_t Shape::elements_count() const {
  if (is_tuple) return 0;
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  return count;
}

std::int64_t Shape::byte_size() const {
  if (!is_tuple) return elements_count() * stitchwork::byte_size(dtype);
  std::int64_t bytes = 0;
  for (const Shape& element : elements) bytes += element.byte_size();
  return bytes;
}

bool Shape::has_default_layout() const {
  if (is_tuple) return std::ranges::all_of(elements, &Shape::has_default_layout);
  for (std::size_t i = 0; i < minor_to_major.size(); ++i) {
    if (minor_to_major[i] != static_cast<std::int64_t>(minor_to_major.size() - 1 - i)) return false;
  }
  return true;
}

bool Shape::compatible(const Shape& other) const {
  if (is_tuple != other.is_tuple) return false;
  if (!is_tuple) return dtype == other.dtype && dims == other.dims;
  return std::ranges::equal(elements, other.elements,
                            [](const Shape& a, const Shape& b) { return a.compatible(b); });
}

std::vector<std::int64_t> physical_order(const Shape& shape) {
  std::vector<std::int64_t> order(shape.minor_to_major.rbegin(), shape.minor_to_major.rend());
  if (order.empty())
    for (int d = 0; d < shape.rank(); ++d) order.push_back(d);
  return order;
}

namespace {

void print(const Shape& shape, bool with_layout, std::string& out) {
  if (shape.is_tuple) {
    out += '(';
    for (std::size_t i = 0; i < shape.elements.size(); ++i) {
      if (i > 0) out += ", ";
      // HLO marks every fifth element so that long tuples stay readable.
      if (i > 0 && i % 5 == 0) fmt::format_to(std::back_inserter(out), "/*index={}*/", i);
      print(shape.elements[i], with_layout, out);
    }
    out += ')';
    return;
  }
  fmt::format_to(std::back_inserter(out), "{}[{}]", name(shape.dtype), fmt::join(shape.dims, ","));
  const bool layout = with_layout ? !shape.dims.empty() : !shape.has_default_layout();
  if (!layout) return;
  out += '{';
  for (int i = 0; i < shape.rank(); ++i) {
    if (i > 0) out += ',';
    fmt::format_to(std::back_inserter(out), "{}",
                   shape.minor_to_major.empty() ? shape.rank() - 1 - i
                                                : shape.minor_to_major[static_cast<std::size_t>(i)]);
  }
  out += '}';
}

}  // namespace

std::string to_text(const Shape& shape, bool with_layout) {
  std::string out;
  print(shape, with_layout, out);
  return out;
}

}  // namespace stitchwork
