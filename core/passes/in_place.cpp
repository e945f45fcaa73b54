#include "core/passes/in_place.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace stitchwork {
namespace {

/// Of a body whose state is one tuple.
class StateArrays {
 public:
  explicit StateArrays(const Computation& body) : body_(body), users_(body.users()) {}

  bool is_updated(const Node& node) const {
    if (node.op != Op::kDynamicUpdateSlice || node.id == body_.root) return false;
    const Node &root = body_.node(body_.root), &array = body_.node(node.operands.at(0));
    if (root.op != Op::kTuple || users(node.id) != std::vector{root.id}) return false;
    if (users(array.id) != std::vector{node.id} || std::ranges::count(node.operands, array.id) != 1)
      return false;
    return std::ranges::count(root.operands, node.id) == 1 && is_alone(array) &&
           root.operands.at(static_cast<std::size_t>(array.attrs.tuple_index)) == node.id;
  }

 private:
  const std::vector<NodeId>& users(NodeId id) const { return users_[static_cast<std::size_t>(id)]; }

  /// The only name of an element of the state.
  bool is_alone(const Node& array) const {
    if (array.op != Op::kGetTupleElement || array.operands.at(0) != body_.parameters.at(0)) return false;
    return std::ranges::all_of(users(body_.parameters[0]), [&](NodeId user) {
      const Node& other = body_.node(user);
      return other.op == Op::kGetTupleElement &&
             (user == array.id || other.attrs.tuple_index != array.attrs.tuple_index || users(user).empty());
    });
  }

  const Computation& body_;
  std::vector<std::vector<NodeId>> users_;
};

}  // namespace

void update_in_place(Computation& body) {
  if (body.parameters.size() != 1) return;
  std::vector<NodeId> updates;
  const StateArrays state(body);
  for (const Node& node : body.nodes)
    if (state.is_updated(node)) updates.push_back(node.id);
  for (const NodeId id : updates) {
    Node& node = body.nodes[static_cast<std::size_t>(id)];
    node.op = Op::kUpdateInPlace;
    node.attrs.updated =
        std::make_shared<UpdatedArray>(UpdatedArray{node.operands[0], std::move(node.shape)});
    node.operands.erase(node.operands.begin());
    node.shape = body.node(node.operands[0]).shape;
  }
}

}  // namespace stitchwork
