// Filling parameters from a seed with integer arithmetic, +, -, *, / and sqrt only: IEEE fixes their results,
// so that the bytes are the same on every machine (the C library's log and cos are not).
#include "core/evaluate/inputs.h"

#include <array>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/graph/dtype_dispatch.h"

namespace stitchwork {
namespace {

/// Finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection that passes statistical tests
/// when fed a counter times the golden ratio.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Numbers by index: draw i of a stream is a pure function of (seed, parameter, tuple element, i).
class Stream {
 public:
  Stream(std::uint64_t seed, std::uint64_t parameter, std::uint64_t part)
      : key_(mixed(mixed(mixed(seed) + parameter + 1) + part)) {}
  std::uint64_t draw(std::uint64_t i) const { return mixed(key_ + (i + 1) * 0x9e3779b97f4a7c15u); }

 private:
  std::uint64_t key_;
};

/// Sum of twelve 16-bit uniforms (three draws), centred: variance 12 * (2^32 - 1) / 12 = 2^32 - 1, so
/// dividing by 2^16 gives a standard deviation of 1 (to 1e-10) and values within 6 of the mean.
double standard_normal(const Stream& stream, std::uint64_t i) {
  std::int64_t sum = -6 * 65535;
  for (std::uint64_t k = 0; k < 3; ++k) {
    const std::uint64_t bits = stream.draw(3 * i + k);
    sum += static_cast<std::int64_t>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) +
                                     (bits >> 48));
  }
  return static_cast<double>(sum) * 0x1p-16;
}

double unit_uniform(const Stream& stream, std::uint64_t i) {
  return static_cast<double>(stream.draw(i) >> 11) * 0x1p-53;
}

/// Uniform in [0, range): the high half of the 128-bit product.
std::uint64_t below(std::uint64_t draw, std::uint64_t range) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(draw) * range) >> 64);
}

Literal filled(const Shape& shape, const Distribution& d, const Stream& stream) {
  Literal literal = Literal::zeros(shape);
  const auto n = static_cast<std::uint64_t>(shape.elements_count());
  with_element(shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    auto* out = literal.data<typename S::Stored>();
    const auto put = [&](auto value_of) {
      for (std::uint64_t i = 0; i < n; ++i) out[i] = S::narrow(convert_value<typename S::Value>(value_of(i)));
    };
    switch (d.kind) {
      case Distribution::Kind::kNormal:
        put([&](std::uint64_t i) { return d.mean + d.stddev * standard_normal(stream, i); });
        break;
      case Distribution::Kind::kUniform:
        put([&](std::uint64_t i) { return d.low + (d.high - d.low) * unit_uniform(stream, i); });
        break;
      case Distribution::Kind::kIndex: {
        const auto low = static_cast<std::int64_t>(d.low);
        const auto range = static_cast<std::uint64_t>(static_cast<std::int64_t>(d.high) - low);
        put([&](std::uint64_t i) { return low + static_cast<std::int64_t>(below(stream.draw(i), range)); });
        break;
      }
      case Distribution::Kind::kConstant:
        put([&](std::uint64_t) { return d.value; });
        break;
    }
  });
  return literal;
}

void check_distribution(const Distribution& d, std::string_view parameter) {
  using Kind = Distribution::Kind;
  const bool ok = d.kind == Kind::kNormal    ? d.stddev >= 0
                  : d.kind == Kind::kUniform ? d.low <= d.high
                  // the range must be integers that a double holds exactly
                  : d.kind == Kind::kIndex
                      ? d.low < d.high && std::abs(d.low) <= 0x1p53 && std::abs(d.high) <= 0x1p53
                      : true;
  if (!ok)
    throw Error(fmt::format("the distribution of parameter '{}' is empty", parameter),
                "stddev must not be negative, low must be below high");
}

}  // namespace

InputGenerator::InputGenerator(const Graph& graph, std::uint64_t seed, const InputOverrides& overrides)
    : entry_(graph.entry_computation()), seed_(seed), distributions_(default_distributions(graph)) {
  for (const auto& [key, distribution] : overrides) {
    bool found = false;
    for (std::size_t i = 0; i < entry_.parameters.size(); ++i) {
      const std::string& name = entry_.node(entry_.parameters[i]).name;
      if (key != name && key != fmt::format("{}", i)) continue;
      check_distribution(distribution, name);
      distributions_[i] = distribution;
      found = true;
    }
    if (!found)
      throw Error(graph.source, 0, 0, fmt::format("no parameter is called '{}'", key),
                  fmt::format("'{}' has parameters 0 to {}", entry_.name, entry_.parameters.size() - 1));
  }
}

Literal InputGenerator::operator()(std::size_t i) const {
  const Shape& shape = entry_.node(entry_.parameters[i]).shape;
  if (!shape.is_tuple) return filled(shape, distributions_[i], Stream(seed_, i, 0));
  Literal tuple;
  tuple.shape = Shape::tuple(shape.elements);
  for (std::size_t part = 0; part < shape.elements.size(); ++part)
    tuple.elements.push_back(filled(shape.elements[part], distributions_[i], Stream(seed_, i, part)));
  return tuple;
}

double input_bytes(const Graph& graph) {
  const Computation& entry = graph.entry_computation();
  double bytes = 0;
  for (const NodeId id : entry.parameters) bytes += static_cast<double>(entry.node(id).shape.byte_size());
  return bytes;
}

std::vector<Literal> generate_inputs(const Graph& graph, std::uint64_t seed,
                                     const InputOverrides& overrides) {
  const InputGenerator generator(graph, seed, overrides);
  require_memory(input_bytes(graph), "filling the parameters",
                 "plan, compare and explain take a model of any size; run a smaller one, or give it more");
  std::vector<Literal> inputs;
  for (std::size_t i = 0; i < graph.entry_computation().parameters.size(); ++i)
    inputs.push_back(generator(i));
  return inputs;
}

}  // namespace stitchwork
