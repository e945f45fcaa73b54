// Attention and what belongs to it.
#include <array>
#include <cmath>
#include <limits>

#include "core/onnx/common.h"
#include "core/onnx/convolution.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// [B, S, H * D] as [B, H, S, D].
Value split_heads(NodeContext& c, const Value& x, std::int64_t heads) {
  c.check(heads >= 1 && x.dim(2) % heads == 0, fmt::format("{} in {} heads", to_text(x.shape), heads));
  return c.b.transpose(c.b.reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

Value merge_heads(Builder& b, const Value& x) {
  return b.reshape(b.transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

/// Every head `times` times, one after the other.
Value repeat_heads(Builder& b, const Value& x, std::int64_t times) {
  if (times == 1) return x;
  const Value spread = b.broadcast_in(x, {x.dim(0), x.dim(1), times, x.dim(2), x.dim(3)}, {0, 1, 3, 4});
  return b.reshape(spread, {x.dim(0), x.dim(1) * times, x.dim(2), x.dim(3)});
}

/// What is added to the scores: 0 where a key takes part, -inf where it does not, or the mask's numbers.
struct Bias {
  std::optional<Value> value;
  bool may_exclude_all = false;  ///< a query may be left without keys
};

void add_allowed(Builder& b, Bias& bias, const Value& allowed, DType type) {
  const Value part = b.select(allowed, Builder::scalar(type, 0), Builder::scalar(type, -kInfinity));
  bias.value = bias.value ? b.add(*bias.value, part) : part;
}

/// `queries` x `keys`; masks by position count keys from the query's own, `offset` keys precede the first
/// query: past ones, or those of a cache outside (one number a batch row).
Bias attention_bias(NodeContext& c, std::int64_t queries, std::int64_t keys, std::int64_t past, DType type) {
  Builder& b = c.b;
  Bias bias;
  if (c.has(3)) {
    Value mask = c.in(3);
    c.check(mask.rank() >= 1 && mask.dims().back() <= keys,
            fmt::format("mask {} for {} keys", to_text(mask.shape), keys));
    std::vector<PadSpec> padding(mask.dims().size());
    padding.back().high = keys - mask.dims().back();
    const bool boolean = mask.dtype() == DType::kPred;
    mask =
        b.pad(mask, boolean ? Builder::scalar_int(DType::kPred, 0) : Builder::lowest(mask.dtype()), padding);
    if (boolean) {
      add_allowed(b, bias, mask, type);
    } else {
      bias.value = b.convert(mask, type);
    }
    bias.may_exclude_all = true;
  }
  const bool causal = c.flag("is_causal", false);
  const std::int64_t left = c.integer("left_window_size", -1), right = c.integer("right_window_size", -1);
  c.check_range("a window size", {left, right}, -1);
  const bool outside = c.has(6);  // nonpad_kv_seqlen
  Value offset = Builder::integer(past);
  if (outside) {
    c.check(c.in(6).rank() == 1, "nonpad_kv_seqlen must have rank 1");
    const Value valid = b.reshape(b.convert(c.in(6), DType::kS64), {c.in(6).dim(0), 1, 1, 1});
    if (past == 0) offset = b.sub(valid, Builder::integer(queries));
    add_allowed(b, bias, b.compare(Comparison::kLt, b.iota(DType::kS64, {1, 1, 1, keys}, 3), valid), type);
    bias.may_exclude_all = true;
  }
  if (!causal && left < 0 && right < 0) return bias;
  const Dims grid{queries, keys};
  const Value own = b.add(b.iota(DType::kS64, grid, 0), offset), key = b.iota(DType::kS64, grid, 1);
  if (causal) add_allowed(b, bias, b.compare(Comparison::kLe, key, own), type);
  if (left >= 0)
    add_allowed(b, bias, b.compare(Comparison::kGe, key, b.sub(own, Builder::integer(left))), type);
  if (right >= 0)
    add_allowed(b, bias, b.compare(Comparison::kLe, key, b.add(own, Builder::integer(right))), type);
  bias.may_exclude_all = bias.may_exclude_all || left >= 0 || right >= 0;
  return bias;
}

/// Softmax along the last dimension. Where nothing at all is admitted, zeros.
Value masked_softmax(Builder& b, const Value& scores, const Bias& bias) {
  const Dims last{scores.rank() - 1};
  if (!bias.may_exclude_all) return softmax(b, scores, last);
  const Value zero = Builder::scalar(scores.dtype(), 0);
  const Value largest = b.reduce(Op::kMaximum, scores, last, true);
  const Value shift = b.select(b.compare(Comparison::kEq, largest, -kInfinity), zero, largest);
  const Value e = b.unary(Op::kExp, b.sub(scores, shift));
  const Value sum = b.reduce(Op::kAdd, e, last, true);
  const Value probabilities =
      b.div(e, b.select(b.compare(Comparison::kEq, sum, 0), Builder::scalar(sum.dtype(), 1), sum));
  const Value most = b.reduce(Op::kMaximum, *bias.value, {bias.value->rank() - 1}, true);
  return b.select(b.compare(Comparison::kEq, most, -kInfinity), zero, probabilities);
}

Values lower_attention(NodeContext& c) {
  Builder& b = c.b;
  const bool packed = c.in(0).rank() == 3;
  Value q = c.in(0), k = c.in(1), v = c.in(2);
  const DType type = q.dtype();
  c.check(q.rank() == k.rank() && k.rank() == v.rank() && (packed || q.rank() == 4),
          "Q, K and V must have rank 3, or all 4");
  if (packed) {
    const std::int64_t kv_heads = c.integer("kv_num_heads");
    q = split_heads(c, q, c.integer("q_num_heads"));
    k = split_heads(c, k, kv_heads);
    v = split_heads(c, v, kv_heads);
  } else {
    c.ignore("q_num_heads");
    c.ignore("kv_num_heads");
  }
  c.check(c.has(4) == c.has(5), "past_key and past_value come together");
  std::int64_t past = 0;
  if (c.has(4)) {
    past = c.in(4).rank() == 4 ? c.in(4).dim(2) : 0;
    k = b.concatenate({c.in(4), k}, 2);
    v = b.concatenate({c.in(5), v}, 2);
  }
  const Values present{k, v};
  const std::int64_t queries = q.dim(2), keys = k.dim(2);
  c.check(k.dim(1) >= 1 && q.dim(1) % k.dim(1) == 0 && v.dim(1) == k.dim(1),
          fmt::format("{} query heads for {} and {} of keys and values", q.dim(1), k.dim(1), v.dim(1)));
  const double scale = c.number("scale", 1 / std::sqrt(static_cast<double>(q.dim(3))));
  const Bias bias = attention_bias(c, queries, keys, past, type);
  const std::int64_t repeats = q.dim(1) / k.dim(1);
  k = repeat_heads(b, k, repeats);
  v = repeat_heads(b, v, repeats);

  DotDims dims{{0, 1}, {0, 1}, {3}, {3}};
  // Both factors take the root of the scale, as the operator's text has it.
  const Value raw = b.dot(b.mul(q, std::sqrt(scale)), b.mul(k, std::sqrt(scale)), dims);
  const double softcap = c.number("softcap", 0);
  Value capped = raw;
  if (softcap != 0) capped = b.mul(b.unary(Op::kTanh, b.div(raw, softcap)), softcap);
  const Value scores = bias.value ? b.add(capped, *bias.value) : capped;
  const DType precise = c.dtype("softmax_precision", type);
  const Value probabilities = masked_softmax(b, b.convert(scores, precise), bias);
  const DType wide = byte_size(precise) > byte_size(v.dtype()) ? precise : v.dtype();
  dims = {{0, 1}, {0, 1}, {3}, {2}};
  Value y = b.convert(b.dot(b.convert(probabilities, wide), b.convert(v, wide), dims), type);
  if (packed) y = merge_heads(b, y);

  const std::int64_t mode = c.integer("qk_matmul_output_mode", 0);
  c.check_range("qk_matmul_output_mode", {mode}, 0, 3);
  const std::array<Value, 4> stages{raw, capped, scores, b.convert(probabilities, type)};
  return {y, present[0], present[1], stages[static_cast<std::size_t>(mode)]};
}

/// What ONNX Runtime's attentions share: heads of queries, keys and values, scores that masks lower by
/// mask_filter_value, and an addend.
Value contrib_attention(NodeContext& c, Value q, Value k, Value v, int mask, int addend) {
  Builder& b = c.b;
  const std::int64_t heads = c.integer("num_heads");
  q = split_heads(c, q, heads), k = split_heads(c, k, heads), v = split_heads(c, v, heads);
  const std::int64_t batch = q.dim(0), queries = q.dim(2), keys = k.dim(2);
  const double given = c.number("scale", 0), filter = c.number("mask_filter_value", -10000);
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(q.dim(3)));
  Value scores = b.mul(b.dot(q, k, {{0, 1}, {0, 1}, {3}, {3}}), scale);
  const auto lower_where = [&](const Value& excluded) {
    scores = b.add(scores, b.select(excluded, Builder::scalar(scores.dtype(), filter), zero(scores)));
  };
  if (c.has(mask)) {
    const Value& m = c.in(mask);
    if (m.dims() == Dims{batch}) {  // how many of the keys are there
      const Value places = b.iota(m.dtype(), {1, 1, 1, keys}, 3);
      lower_where(b.compare(Comparison::kGe, places, b.reshape(m, {batch, 1, 1, 1})));
    } else {
      c.check(m.dims() == Dims{batch, keys},
              fmt::format("a mask of {} is not supported, [batch] and [batch, keys] are", to_text(m.shape)));
      const Value one = b.reshape(m, {batch, 1, 1, keys});
      lower_where(b.compare(Comparison::kEq, one, zero(one)));
    }
  }
  if (c.flag("unidirectional", false)) {
    const Value own = b.iota(DType::kS64, {queries, keys}, 0), key = b.iota(DType::kS64, {queries, keys}, 1);
    lower_where(b.compare(Comparison::kGt, key, b.add(own, Builder::integer(keys - queries))));
  }
  if (c.has(addend)) scores = b.add(scores, c.in(addend));
  return merge_heads(b, b.dot(softmax(b, scores, {3}), v, {{0, 1}, {0, 1}, {3}, {2}}));
}

/// ONNX Runtime's Attention: one product gives queries, keys and values.
Values lower_contrib_attention(NodeContext& c) {
  Builder& b = c.b;
  c.check(c.in(0).rank() == 3 && c.in(1).rank() == 2, "the input must have rank 3, the weights 2");
  Value all = matmul(b, c.in(0), c.in(1));
  if (c.has(2)) all = b.add(all, c.in(2));
  const std::int64_t width = all.dim(2);
  const Dims sizes = c.integers("qkv_hidden_sizes", {width / 3, width / 3, width - 2 * (width / 3)});
  c.check(sizes.size() == 3 && sizes[0] == sizes[1] && sizes[0] >= 1 && sizes[2] >= 1 &&
              sizes[0] + sizes[1] + sizes[2] == width,
          fmt::format("{} columns for queries, keys and values", width));
  return {contrib_attention(c, b.slice(all, 2, 0, sizes[0]), b.slice(all, 2, sizes[0], 2 * sizes[0]),
                            b.slice(all, 2, 2 * sizes[0], width), 3, 5)};
}

/// ONNX Runtime's MultiHeadAttention: queries, keys and values apart, with a bias each in one vector.
Values lower_multi_head_attention(NodeContext& c) {
  Builder& b = c.b;
  Values parts{c.in(0), c.in(1), c.in(2)};
  std::int64_t at = 0;
  for (Value& part : parts) {
    c.check(part.rank() == 3, "query, key and value must have rank 3");
    const std::int64_t width = part.dim(2);
    if (c.has(3)) part = b.add(part, b.slice(c.in(3), 0, at, at + width));
    at += width;
  }
  return {contrib_attention(c, parts[0], parts[1], parts[2], 4, 5)};
}

/// Scores and probabilities may be changed by graphs of their own.
Values lower_flex_attention(NodeContext& c) {
  Builder& b = c.b;
  const Value &q = c.in(0), &keys = c.in(1), &values = c.in(2);
  c.check(q.rank() == 4 && keys.rank() == 4 && values.rank() == 4, "Q, K and V must have rank 4");
  c.check(keys.dim(1) >= 1 && q.dim(1) % keys.dim(1) == 0,
          fmt::format("{} query heads for {}", q.dim(1), keys.dim(1)));
  const DType type = q.dtype();
  const double scale = std::sqrt(c.number("scale", 1 / std::sqrt(static_cast<double>(q.dim(3)))));
  const DType precise = c.dtype("softmax_precision", byte_size(type) < 4 ? DType::kF32 : type);
  const Value k = repeat_heads(b, keys, q.dim(1) / keys.dim(1)),
              v = repeat_heads(b, values, q.dim(1) / keys.dim(1));
  DotDims dims{{0, 1}, {0, 1}, {3}, {3}};
  Value scores = b.convert(b.dot(b.mul(q, scale), b.mul(k, scale), dims), precise);
  const auto modified = [&](const char* name, const Value& x) {
    if (!c.given(name)) return x;
    const Values results = c.run(c.graph(name), {x});
    c.check(results.size() == 1 && results[0].shape == x.shape,
            fmt::format("{} must give one tensor of its input's shape", name));
    return results[0];
  };
  scores = modified("score_mod", scores);
  const Value probabilities = modified("prob_mod", softmax(b, scores, {3}));
  dims = {{0, 1}, {0, 1}, {3}, {2}};
  return {b.convert(b.dot(probabilities, b.convert(v, precise), dims), type)};
}

/// x [B, H, S, D] or [B, S, H * D] rotated by angles of its positions, in its first rotary_embedding_dim
/// elements.
Values lower_rotary_embedding(NodeContext& c) {
  Builder& b = c.b;
  const Value& given = c.in(0);
  const std::int64_t heads = c.integer("num_heads", 0), part = c.integer("rotary_embedding_dim", 0);
  const bool packed = given.rank() == 3, interleaved = c.flag("interleaved", false);
  c.check(packed ? heads >= 1 && given.dim(2) % heads == 0 : given.rank() == 4,
          fmt::format("{} in {} heads", to_text(given.shape), heads));
  const Value x =
      packed ? b.reshape(given, {given.dim(0), given.dim(1), heads, given.dim(2) / heads}) : given;
  const std::int64_t size = part == 0 ? x.dim(3) : part, half = size / 2;
  c.check(size % 2 == 0 && size <= x.dim(3) && size >= 0,
          fmt::format("{} of {} elements cannot be rotated", size, x.dim(3)));
  const auto angles = [&](int i) {
    Value cache = c.in(i);
    c.check(cache.rank() >= 1 && cache.dims().back() == half,
            fmt::format("cache {} for {} angles", to_text(cache.shape), half));
    if (c.has(3)) {
      const Value& positions = c.in(3);
      c.check(cache.rank() == 2 && positions.rank() == 2, "with position_ids the caches must have rank 2");
      GatherDims dims;
      dims.offset_dims = {2};
      dims.collapsed_slice_dims = dims.start_index_map = {0};
      dims.index_vector_dim = 2;
      dims.slice_sizes = {1, half};
      cache = b.gather(cache, wrapped(b, positions, cache.dim(0)), dims);
    }
    c.check(cache.rank() == 3, "caches must have rank 3, or position_ids be given");
    return b.reshape(cache, packed ? Dims{cache.dim(0), cache.dim(1), 1, half}
                                   : Dims{cache.dim(0), 1, cache.dim(1), half});
  };
  const Value cosine = angles(1), sine = angles(2);
  const Value rotated = b.slice(x, 3, 0, size), rest = b.slice(x, 3, size, x.dim(3));
  const Value x1 = interleaved ? b.slice(rotated, 3, 0, size, 2) : b.slice(rotated, 3, 0, half);
  const Value x2 = interleaved ? b.slice(rotated, 3, std::min<std::int64_t>(1, size), size, 2)
                               : b.slice(rotated, 3, half, size);
  const Value real = b.sub(b.mul(cosine, x1), b.mul(sine, x2)),
              imaginary = b.add(b.mul(sine, x1), b.mul(cosine, x2));
  const Value turned = interleaved ? b.reshape(stack(b, {real, imaginary}, 4), rotated.dims())
                                   : b.concatenate({real, imaginary}, 3);
  const Value y = size == x.dim(3) ? turned : b.concatenate({turned, rest}, 3);
  return {b.reshape(y, given.dims())};
}

/// A state [B, H, dk, dv] that every token decays, corrects and writes, and queries read; in float32.
Values lower_linear_attention(NodeContext& c) {
  Builder& b = c.b;
  const Value& query = c.in(0);
  const std::int64_t q_heads = c.integer("q_num_heads"), heads = c.integer("kv_num_heads");
  const std::string rule = c.text("update_rule", "gated_delta");
  c.check(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta",
          fmt::format("update_rule '{}' is unknown", rule));
  c.ignore("chunk_size");  // a hint
  const bool gated = rule.starts_with("gated"), delta = rule.ends_with("delta");
  c.check(gated == c.has(4) && delta == c.has(5), fmt::format("update_rule '{}' needs {}decay and {}beta",
                                                              rule, gated ? "" : "no ", delta ? "" : "no "));
  c.check(query.rank() == 3 && c.in(1).rank() == 3 && c.in(2).rank() == 3,
          "query, key and value must have rank 3");
  c.check(heads >= 1 && q_heads >= 1 && q_heads % heads == 0,
          fmt::format("{} query heads for {}", q_heads, heads));
  const std::int64_t batch = query.dim(0), steps = query.dim(1);
  // Sequences with time in front: [T, B, H, D].
  const auto sequence = [&](const Value& x, std::int64_t count) {
    c.check(x.rank() == 3 && x.dim(2) % count == 0, fmt::format("{} in {} heads", to_text(x.shape), count));
    const Value split = b.reshape(x, {x.dim(0), x.dim(1), count, x.dim(2) / count});
    return b.convert(b.transpose(split, {1, 0, 2, 3}), DType::kF32);
  };
  Values sequences{sequence(query, q_heads), sequence(c.in(1), heads), sequence(c.in(2), heads)};
  const std::int64_t dk = sequences[1].dim(3), dv = sequences[2].dim(3);
  c.check(sequences[0].dim(3) == dk, "query and key differ in the size of their heads");
  if (gated) sequences.push_back(sequence(c.in(4), heads));
  if (delta) c.check(c.in(5).rank() == 3, "beta must have rank 3");
  if (delta) sequences.push_back(sequence(c.in(5), c.in(5).dims().back() == 1 ? 1 : heads));
  const DType state_type = c.has(3) ? c.in(3).dtype() : query.dtype();
  const Dims state_dims{batch, heads, dk, dv};
  const Value state =
      c.has(3) ? b.convert(c.in(3), DType::kF32) : b.full(Builder::scalar(DType::kF32, 0), state_dims);
  c.check(state.dims() == state_dims, fmt::format("past_state is {}", to_text(state.shape)));
  const double given = c.number("scale", 0),
               scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(dk));
  const DotDims read{{0, 1}, {0, 1}, {2}, {2}};
  const Step step = [&](const Values& states, const Values& now) -> Recurrence {
    Value s = states[0], value = now[2];
    const Value &q = now[0], &k = now[1];
    if (gated) {
      const Value decay = b.unary(Op::kExp, now[3]);
      s = b.mul(s, b.reshape(decay, joined(decay.dims(), {1})));
    }
    if (delta) value = b.mul(b.sub(value, b.dot(s, k, read)), now.back());
    s = b.add(s, b.mul(b.reshape(k, {batch, heads, dk, 1}), b.reshape(value, {batch, heads, 1, dv})));
    const Value grouped = b.reshape(q, {batch, heads, q_heads / heads, dk});
    const Value y = b.dot(grouped, s, {{0, 1}, {0, 1}, {3}, {2}});
    return {{s}, {b.mul(b.reshape(y, {batch, q_heads, dv}), scale)}};
  };
  c.check(steps >= 1, "the sequence is empty");
  const Recurrence result = recur(b, steps, {state}, sequences, step);
  const Value y = b.reshape(b.transpose(result.outputs[0], {1, 0, 2, 3}), {batch, steps, q_heads * dv});
  return {b.convert(y, query.dtype()), b.convert(result.state[0], state_type)};
}

/// A depthwise convolution that looks back only; the last k - 1 elements are the state of the next call.
Values lower_causal_convolution(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &weight = c.in(1);
  c.check(x.rank() == 3 && weight.rank() == 3 && weight.dim(1) == 1 && weight.dim(0) == x.dim(1) &&
              weight.dim(2) >= 1,
          fmt::format("kernel {} for {}", to_text(weight.shape), to_text(x.shape)));
  const std::string activation = c.text("activation", "none");
  c.check(activation == "none" || activation == "silu" || activation == "swish",
          fmt::format("activation '{}' is unknown", activation));
  const std::int64_t size = weight.dim(2);
  const Dims state_dims{x.dim(0), x.dim(1), size - 1};
  const Value past = c.has(3) ? c.in(3) : b.full(Builder::scalar(x.dtype(), 0), state_dims);
  c.check(past.dims() == state_dims, fmt::format("past_state is {}", to_text(past.shape)));
  const Value all = b.concatenate({past, x}, 2);
  ConvolutionSpec spec;
  spec.window.resize(1);
  spec.window[0].size = size;
  spec.groups = x.dim(1);
  spec.labels = channels_first_labels(1);
  Value y = b.convolution(all, weight, spec);
  if (c.has(2)) y = b.add(y, b.reshape(c.in(2), {x.dim(1), 1}));
  if (activation != "none") y = b.convert(swish(b, b.convert(y, DType::kF32), 1), x.dtype());
  return {y, b.slice(all, 2, all.dim(2) - (size - 1), all.dim(2))};
}

constexpr std::array kAttentionRows = {
    OperatorRow{"Attention", 23, lower_attention},
    OperatorRow{"CausalConvWithState", 27, lower_causal_convolution},
    OperatorRow{"FlexAttention", 1, lower_flex_attention, "ai.onnx.preview"},
    OperatorRow{"LinearAttention", 27, lower_linear_attention},
    OperatorRow{"RotaryEmbedding", 23, lower_rotary_embedding},
    OperatorRow{"Attention", 1, lower_contrib_attention, kContrib},
    OperatorRow{"MultiHeadAttention", 1, lower_multi_head_attention, kContrib},
};

}  // namespace

std::span<const OperatorRow> attention_operators() { return kAttentionRows; }

}  // namespace stitchwork::onnx_reader
