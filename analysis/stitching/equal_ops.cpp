#include "analysis/stitching/equal_ops.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <unordered_map>

namespace stitchwork::astitch {
namespace {

/// Readers from which on a scalar is a hub, and equal pieces from which on they count once. Generated code
/// shares a body from four loops on; twice as many leave room for what mappings tell apart.
/// Derived from kFewestEntries of analysis/schedule/share.cpp, twice.
constexpr std::size_t kHubReaders = 8, kFewestPieces = 8;

using Hash = std::uint64_t;

Hash mix(Hash a, Hash b) {
  // SplitMix64's finaliser over both.
  Hash z = a * 0x9E3779B97F4A7C15ull + b + 0x632BE59BD9B4E019ull;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  return z ^ z >> 31;
}

class EqualOps {
 public:
  explicit EqualOps(const Nodes& nodes)
      : nodes_(nodes), count_(nodes.facts.size()), producers_(count_), readers_(count_), color_(count_, 0) {
    for (NodeId id = 0; id < static_cast<NodeId>(count_); ++id) {
      if (!stitched(id)) continue;
      for (const NodeId producer : producers(nodes, id)) {
        if (!stitched(producer)) continue;
        producers_[index(id)].push_back(producer);
        readers_[index(producer)].push_back(id);
      }
    }
  }

  std::vector<int> run() {
    find_pieces();
    for (NodeId id = 0; id < static_cast<NodeId>(count_); ++id) color_[index(id)] = color_from_operands(id);
    add_readers();
    return number();
  }

 private:
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }
  bool stitched(NodeId id) const { return nodes_[id].member && !nodes_[id].isolated; }
  bool hub(NodeId id) const { return nodes_[id].elements == 1 && readers_[index(id)].size() >= kHubReaders; }

  NodeId find(NodeId id) {
    while (piece_[index(id)] != id) id = piece_[index(id)] = piece_[index(piece_[index(id)])];
    return id;
  }

  void find_pieces() {
    piece_.resize(count_);
    std::iota(piece_.begin(), piece_.end(), 0);
    for (NodeId id = 0; id < static_cast<NodeId>(count_); ++id) {
      for (const NodeId producer : producers_[index(id)])
        if (!hub(producer)) piece_[index(find(id))] = find(producer);
    }
  }

  /// Of what an op computes from, up to what lies outside its piece.
  Hash color_from_operands(NodeId id) const {
    enum : Hash { kConstant, kHub, kOutside, kMap, kOp };
    const Node& node = nodes_.node(id);
    const Hash type = static_cast<Hash>(node.shape.dtype);
    if (node.op == Op::kConstant) return mix(kConstant, constant(node));
    if (nodes_[id].immediate) return color_[index(node.operands[0])];
    if (stitched(id) || nodes_[id].transparent) {
      Hash color = mix(mix(stitched(id) ? kOp : kMap, static_cast<Hash>(node.op)), type);
      if (stitched(id)) color = mix(color, attributes(node));
      for (const NodeId operand : node.operands)
        color = mix(color, stitched(operand) && hub(operand) ? mix(kHub, static_cast<Hash>(operand))
                                                             : color_[index(operand)]);
      return color;
    }
    return mix(kOutside, type);
  }

  static Hash constant(const Node& node) {
    Hash color = static_cast<Hash>(node.shape.dtype);
    if (node.shape.is_tuple || node.attrs.literal == nullptr) return color;
    const std::size_t bytes = static_cast<std::size_t>(byte_size(node.shape.dtype));
    const auto& data = node.attrs.literal->bytes;
    for (std::size_t b = 0; b < std::min(bytes, data.size()); ++b)
      color = mix(color, static_cast<Hash>(data[b]));
    return color;
  }

  Hash attributes(const Node& node) const {
    Hash color = node.attrs.comparison ? 1 + static_cast<Hash>(*node.attrs.comparison) : 0;
    if (nodes_[node.id].reduction) {
      color = mix(color, nodes_[node.id].reduction->row_reduce);
      if (const auto reducer = reducer_of(*nodes_.graph, node))
        color = mix(color, static_cast<Hash>(*reducer));
    }
    return color;
  }

  /// What becomes of an op in its piece tells it apart, too.
  void add_readers() {
    for (NodeId id = static_cast<NodeId>(count_) - 1; id >= 0; --id) {
      if (!stitched(id)) continue;
      Hash read = nodes_[id].buffer_needed;
      if (!hub(id))
        for (const NodeId reader : readers_[index(id)]) read += mix(color_[index(reader)], 0);
      color_[index(id)] = mix(color_[index(id)], read);
    }
  }

  std::vector<int> number() {
    std::unordered_map<NodeId, Hash> sums;
    for (NodeId id = 0; id < static_cast<NodeId>(count_); ++id)
      if (stitched(id)) sums[find(id)] += mix(color_[index(id)], 1);
    std::unordered_map<Hash, std::size_t> pieces;
    for (const auto& [piece, sum] : sums) ++pieces[sum];
    std::vector<int> result(count_, -1);
    std::unordered_map<Hash, int> codes;
    std::unordered_map<Hash, Hash> seen;  // ops of one color in one piece
    for (NodeId id = 0; id < static_cast<NodeId>(count_); ++id) {
      if (!stitched(id)) continue;
      const NodeId piece = find(id);
      const Hash sum = sums.at(piece);
      if (pieces.at(sum) < kFewestPieces) continue;
      const Hash place = mix(sum, color_[index(id)]);
      const Hash occurrence = seen[mix(place, static_cast<Hash>(piece))]++;
      result[index(id)] =
          codes.try_emplace(mix(place, occurrence), static_cast<int>(codes.size())).first->second;
    }
    return result;
  }

  const Nodes& nodes_;
  std::size_t count_;
  std::vector<std::vector<NodeId>> producers_, readers_;  ///< stitched ops, through index maps
  std::vector<NodeId> piece_;                             ///< union-find
  std::vector<Hash> color_;
};

}  // namespace

std::vector<int> equal_ops(const Nodes& nodes) { return EqualOps(nodes).run(); }

void CodeSize::add(int code) {
  if (code < 0) {
    ++alone_;
    return;
  }
  const auto at = std::lower_bound(codes_.begin(), codes_.end(), code);
  if (at == codes_.end() || *at != code) codes_.insert(at, code);
}

void CodeSize::add(const CodeSize& other) {
  alone_ += other.alone_;
  if (other.codes_.size() == 1) {
    add(other.codes_.front());
  } else if (!other.codes_.empty()) {
    std::vector<int> both;
    std::set_union(codes_.begin(), codes_.end(), other.codes_.begin(), other.codes_.end(),
                   std::back_inserter(both));
    codes_ = std::move(both);
  }
}

int CodeSize::with(const CodeSize& other) const {
  int common = 0;
  const bool fewer = codes_.size() < other.codes_.size();
  const std::vector<int>&few = fewer ? codes_ : other.codes_, &many = fewer ? other.codes_ : codes_;
  for (const int code : few) common += std::binary_search(many.begin(), many.end(), code);
  return size() + other.size() - common;
}

GroupCode group_code(const Nodes& nodes, const std::vector<NodeId>& ops, const Mapping& mapping) {
  GroupCode code;
  for (const NodeId op : ops) {
    if (nodes[op].transparent && !nodes[op].member) continue;
    // What is equal to no other op is still equal to itself, where several groups evaluate it.
    code.push_back(nodes[op].code >= 0 ? nodes[op].code : -1 - std::int64_t{op});
  }
  std::sort(code.begin(), code.end());
  const auto [width, unroll] = vectors(mapping);
  code.insert(code.end(), {form_number(mapping), extents(mapping).cols, width, unroll, threads_a_row(mapping),
                           segments(mapping), cluster_blocks(mapping)});
  return code;
}

}  // namespace stitchwork::astitch
