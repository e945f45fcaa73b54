// What ops that apply computations pass to them and want back, as XLA's verifier has it.
#include "core/base/error.h"
#include "core/graph/infer_checks.h"
#include "core/graph/infer_families.h"

namespace stitchwork {

using namespace infer;

namespace {

bool is_scalar(const Shape& shape) { return !shape.is_tuple && shape.dims.empty(); }

/// Floats of any width, integers of any width: a reducer may accumulate one in the other.
bool same_kind(DType a, DType b) {
  return a == b || (is_floating(a) && is_floating(b)) || (is_integral(a) && is_integral(b));
}

/// One of the computations that a node applies.
class Callee {
 public:
  Callee(const Graph& graph, const Node& node, std::size_t which)
      : node_(node), callee_(named_computation(graph, node, which)) {}

  const Shape& parameter(std::size_t i) const { return callee_.node(callee_.parameters[i]).shape; }
  const Shape& result() const { return callee_.node(callee_.root).shape; }

  void parameters(std::size_t wanted) const {
    if (callee_.parameters.size() != wanted)
      throw Error(fmt::format("{} applies '{}', which has {} parameters, {} are needed", def(node_.op).name,
                              callee_.name, callee_.parameters.size(), wanted));
  }
  /// Parameter i takes what is passed.
  void takes(std::size_t i, const Shape& passed) const {
    if (!parameter(i).compatible(passed)) refuse_parameter(i, to_text(plain(passed)));
  }
  void takes_scalar(std::size_t i, DType type) const { takes(i, Shape::array(type, {})); }
  /// Parameter i is a scalar of this type, or of another width of its kind.
  void takes_scalar_like(std::size_t i, DType type) const {
    if (!is_scalar(parameter(i)) || !same_kind(parameter(i).dtype, type))
      refuse_parameter(i, to_text(Shape::array(type, {})));
  }
  void gives_scalar(DType type) const {
    if (!is_scalar(result()) || result().dtype != type)
      throw Error(fmt::format("{} applies '{}', which gives {}, {} is needed", def(node_.op).name,
                              callee_.name, to_text(plain(result())), to_text(Shape::array(type, {}))));
  }
  /// Scalars of the types of the first parameters, one or a tuple.
  void gives_parameters(std::size_t count) const {
    const bool tuple = result().is_tuple;
    const std::size_t given = tuple ? result().elements.size() : 1;
    if (given != count)
      throw Error(fmt::format("{} applies '{}', which gives {} values, {} are needed", def(node_.op).name,
                              callee_.name, given, count));
    for (std::size_t i = 0; i < count; ++i) {
      const Shape& part = tuple ? result().elements[i] : result();
      if (!is_scalar(part) || part.dtype != parameter(i).dtype)
        throw Error(fmt::format("{} applies '{}', which gives {} for a parameter {}", def(node_.op).name,
                                callee_.name, to_text(plain(part)), to_text(plain(parameter(i)))));
    }
  }

 private:
  [[noreturn]] void refuse_parameter(std::size_t i, const std::string& passed) const {
    throw Error(fmt::format("{} passes {} as parameter {} of '{}', which is {}", def(node_.op).name, passed,
                            i, callee_.name, to_text(plain(parameter(i)))));
  }

  const Node& node_;
  const Computation& callee_;
};

/// N accumulators, then N elements, gives N accumulators.
void check_reducer(const Callee& callee, Operands operands) {
  const std::size_t inputs = operands.size() / 2;
  callee.parameters(2 * inputs);
  for (std::size_t i = 0; i < inputs; ++i) {
    callee.takes_scalar_like(i, operands[inputs + i]->dtype);
    callee.takes_scalar_like(inputs + i, operands[i]->dtype);
    callee.takes_scalar_like(i, callee.parameter(inputs + i).dtype);
  }
  callee.gives_parameters(inputs);
}

void check_conditional(const Graph& graph, const Node& node, Operands operands) {
  const std::size_t branches = node.attrs.computations.size();
  const Shape& chosen = array(node, operands, 0);
  const bool by_predicate = chosen.dtype == DType::kPred;
  if (!is_scalar(chosen) || (!by_predicate && chosen.dtype != DType::kS32) || (by_predicate && branches != 2))
    throw Error(fmt::format("conditional of {} branches is decided by {}", branches, to_text(plain(chosen))),
                "it is pred[] for two branches, or s32[]");
  if (operands.size() != branches + 1)
    throw Error(fmt::format("conditional of {} branches has {} operands, {} are needed", branches,
                            operands.size(), branches + 1));
  for (std::size_t i = 0; i < branches; ++i) {
    const Callee branch(graph, node, i);
    branch.parameters(1);
    branch.takes(0, *operands[i + 1]);
  }
}

}  // namespace

void check_callees(const Graph& graph, const Node& node, Operands operands) {
  switch (node.op) {
    case Op::kMap: {
      const Callee mapped(graph, node, 0);
      mapped.parameters(operands.size());
      for (std::size_t i = 0; i < operands.size(); ++i)
        mapped.takes_scalar(i, array(node, operands, i).dtype);
      return mapped.gives_scalar(mapped.result().dtype);
    }
    case Op::kReduce:
    case Op::kReduceWindow:
      return check_reducer(Callee(graph, node, 0), operands);
    case Op::kScatter: {
      const Callee combiner(graph, node, 0);
      const std::size_t inputs = operands.size() / 2;
      combiner.parameters(2 * inputs);
      for (std::size_t i = 0; i < 2 * inputs; ++i)
        combiner.takes_scalar(i, array(node, operands, i % inputs).dtype);
      return combiner.gives_parameters(inputs);
    }
    case Op::kSelectAndScatter:
      for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
        const Callee callee(graph, node, which);
        const DType type = array(node, operands, 0).dtype;
        callee.parameters(2);
        callee.takes_scalar(0, type);
        callee.takes_scalar(1, type);
        callee.gives_scalar(which == 0 ? DType::kPred : type);
      }
      return;
    case Op::kSort: {
      const Callee comparator(graph, node, 0);
      comparator.parameters(2 * operands.size());
      for (std::size_t i = 0; i < 2 * operands.size(); ++i)
        comparator.takes_scalar(i, array(node, operands, i / 2).dtype);
      return comparator.gives_scalar(DType::kPred);
    }
    case Op::kAllReduce:
    case Op::kAllReduceStart:
    case Op::kReduceScatter: {
      const Callee reducer(graph, node, 0);
      reducer.parameters(2);
      return reducer.gives_parameters(1);
    }
    case Op::kCall:
    case Op::kFusion:
    case Op::kAsyncStart: {
      const Callee callee(graph, node, 0);
      callee.parameters(operands.size());
      for (std::size_t i = 0; i < operands.size(); ++i) callee.takes(i, *operands[i]);
      return;
    }
    case Op::kWhile:
      for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
        const Callee callee(graph, node, which);
        callee.parameters(1);
        callee.takes(0, *operands[0]);
      }
      return;
    case Op::kConditional:
      return check_conditional(graph, node, operands);
    default:
      return;
  }
}

}  // namespace stitchwork
