// Einsum: sums of products over labelled dimensions, as products of pairs.
#include "core/onnx/einsum.h"

#include <algorithm>
#include <map>

#include "core/onnx/common.h"

namespace stitchwork::onnx_reader {
namespace {

/// A letter, or 1000 + the place from the right of a dimension that "..." stands for.
using Labels = std::vector<int>;
constexpr int kEllipsis = 1000;

struct Term {
  Value value;
  Labels labels;
};

bool holds(const Labels& labels, int label) { return std::ranges::count(labels, label) != 0; }

std::int64_t place(const Labels& labels, int label) {
  return std::ranges::find(labels, label) - labels.begin();
}

/// Labels of a term of `rank` dimensions (-1: of the result, whose "..." has `ellipsis` dimensions).
Labels parse(std::string_view text, int rank, int ellipsis, const std::string& equation) {
  const auto dots = text.find("...");
  const int named = static_cast<int>(text.size()) - (dots == std::string_view::npos ? 0 : 3);
  const int covered = dots == std::string_view::npos ? 0 : rank < 0 ? ellipsis : rank - named;
  Labels labels;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == dots) {
      for (int k = covered; k-- > 0;) labels.push_back(kEllipsis + k);
      i += 2;
      continue;
    }
    const char letter = text[i];
    if ((letter < 'a' || letter > 'z') && (letter < 'A' || letter > 'Z'))
      throw Error(fmt::format("equation '{}': '{}' is no label", equation, letter));
    labels.push_back(letter);
  }
  if (rank >= 0 && (covered < 0 || static_cast<int>(labels.size()) != rank))
    throw Error(fmt::format("equation '{}': '{}' does not fit an input of rank {}", equation, text, rank));
  return labels;
}

/// Elements whose equal labels have equal indices.
Term diagonal(Builder& b, Term term) {
  for (std::size_t i = 0; i < term.labels.size(); ++i)
    for (std::size_t j = i + 1; j < term.labels.size(); ++j) {
      if (term.labels[i] != term.labels[j]) continue;
      const Dims dims = term.value.dims();
      if (dims[i] != dims[j]) throw Error("a label that occurs twice in a term has two sizes");
      const Value same = b.compare(Comparison::kEq, b.iota(DType::kS64, dims, static_cast<std::int64_t>(i)),
                                   b.iota(DType::kS64, dims, static_cast<std::int64_t>(j)));
      const Value zero = Builder::scalar_int(term.value.dtype(), 0);
      term.value = b.reduce(Op::kAdd, b.select(same, term.value, zero), {static_cast<std::int64_t>(j)});
      term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(j));
      --j;
    }
  return term;
}

/// Sums over labels that neither `kept` nor `other` has.
Term summed(Builder& b, Term term, const Labels& kept, const Labels& other) {
  Dims dims;
  Labels left;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    const bool stays = holds(kept, term.labels[i]) || holds(other, term.labels[i]);
    if (stays) left.push_back(term.labels[i]);
    if (!stays) dims.push_back(static_cast<std::int64_t>(i));
  }
  return {b.reduce(Op::kAdd, term.value, dims), left};
}

/// Without dimensions of 1 that the other term has larger.
Term without_ones(Builder& b, Term term, const Term& other) {
  Dims dims;
  Labels labels;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    const std::int64_t extent = term.value.dims()[i];
    if (extent == 1 && holds(other.labels, term.labels[i]) &&
        other.value.dim(place(other.labels, term.labels[i])) != 1)
      continue;
    dims.push_back(extent);
    labels.push_back(term.labels[i]);
  }
  return {b.reshape(term.value, dims), labels};
}

/// The product; labels of both that `kept` lacks are summed over.
Term product_of(Builder& b, Term x, Term y, const Labels& kept) {
  x = summed(b, std::move(x), kept, y.labels);
  y = summed(b, std::move(y), kept, x.labels);
  const Term before = x;
  x = without_ones(b, std::move(x), y);
  y = without_ones(b, std::move(y), before);
  DotDims dims;
  Labels result;
  for (const int label : x.labels) {
    if (!holds(y.labels, label)) continue;
    const bool batch = holds(kept, label);
    (batch ? dims.lhs_batch : dims.lhs_contracting).push_back(place(x.labels, label));
    (batch ? dims.rhs_batch : dims.rhs_contracting).push_back(place(y.labels, label));
    if (batch) result.push_back(label);
  }
  for (const Term* term : {&x, &y})
    for (const int label : term->labels)
      if (!(holds(x.labels, label) && holds(y.labels, label))) result.push_back(label);
  if (!dims.lhs_contracting.empty()) return {b.dot(x.value, y.value, dims), result};
  // Nothing is summed: an element-wise product.
  Dims shape;
  for (const int label : result) {
    const Term& owner = holds(x.labels, label) ? x : y;
    shape.push_back(owner.value.dim(place(owner.labels, label)));
  }
  const auto spread = [&](const Term& term) {
    Dims where;
    for (const int label : term.labels) where.push_back(place(result, label));
    return b.broadcast_in(term.value, shape, where);
  };
  return {b.mul(spread(x), spread(y)), result};
}

/// Without "->": the labels that occur once, in alphabetical order behind those of "...".
Labels implicit_result(const std::vector<Term>& terms, int ellipsis) {
  std::map<int, int> counts;
  for (const Term& term : terms)
    for (const int label : term.labels) ++counts[label];
  Labels result;
  for (int k = ellipsis; k-- > 0;) result.push_back(kEllipsis + k);
  for (const auto& [label, count] : counts)
    if (label < kEllipsis && count == 1) result.push_back(label);
  return result;
}

}  // namespace

Value einsum(Builder& b, std::string equation, const std::vector<Value>& inputs) {
  std::erase(equation, ' ');
  const auto arrow = equation.find("->");
  std::string_view left = std::string_view(equation).substr(0, arrow);
  std::vector<Term> terms;
  int ellipsis = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto comma = left.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == inputs.size()))
      throw Error(fmt::format("equation '{}' does not have {} terms", equation, inputs.size()));
    terms.push_back({inputs[i], parse(left.substr(0, comma), inputs[i].rank(), 0, equation)});
    for (const int label : terms.back().labels) ellipsis = std::max(ellipsis, label - kEllipsis + 1);
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
  }
  if (terms.empty()) throw Error("it has no inputs");
  const Labels result = arrow == std::string::npos
                            ? implicit_result(terms, ellipsis)
                            : parse(std::string_view(equation).substr(arrow + 2), -1, ellipsis, equation);
  for (std::size_t i = 0; i < result.size(); ++i)
    if (std::ranges::count(result, result[i]) > 1 ||
        std::ranges::none_of(terms, [&](const Term& t) { return holds(t.labels, result[i]); }))
      throw Error(
          fmt::format("equation '{}': a label of the result occurs twice there, or in no input", equation));
  for (Term& term : terms) term = diagonal(b, std::move(term));
  Term total = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    Labels kept = result;
    for (std::size_t j = i + 1; j < terms.size(); ++j)
      kept.insert(kept.end(), terms[j].labels.begin(), terms[j].labels.end());
    total = product_of(b, std::move(total), terms[i], kept);
  }
  total = summed(b, std::move(total), result, {});
  Dims permutation;
  for (const int label : result) permutation.push_back(place(total.labels, label));
  return b.transpose(total.value, permutation);
}

}  // namespace stitchwork::onnx_reader
