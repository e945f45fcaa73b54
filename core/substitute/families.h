// The rules by family: `find` and `apply` of each row of table.cpp. What they do and when they hold stands in
// the table.
#pragma once

#include "core/substitute/rule.h"

namespace stitchwork::rewriting {

#define STITCHWORK_RULE(name)                                  \
  std::optional<Match> find_##name(const View&, NodeId place); \
  void apply_##name(Editor&, const Match&)

// rules_identity.cpp
STITCHWORK_RULE(same);
STITCHWORK_RULE(layout_pair);
STITCHWORK_RULE(neutral);
STITCHWORK_RULE(constant);
STITCHWORK_RULE(slice_of_concat);
STITCHWORK_RULE(concat_of_slices);
// rules_layout.cpp
STITCHWORK_RULE(broadcast_down);
STITCHWORK_RULE(through_elementwise);
STITCHWORK_RULE(before_elementwise);
// rules_dot_layout.cpp
STITCHWORK_RULE(layout_into_dot);
STITCHWORK_RULE(transpose_of_dot);
// rules_dot.cpp
STITCHWORK_RULE(dot_merge_free);
STITCHWORK_RULE(dot_merge_batch);
STITCHWORK_RULE(dot_split);
STITCHWORK_RULE(dot_split_sum);
STITCHWORK_RULE(dot_chain);
STITCHWORK_RULE(dot_sum);
// rules_scale.cpp
STITCHWORK_RULE(scale_out_of_dot);
STITCHWORK_RULE(scale_into_dot);
STITCHWORK_RULE(scale_across_dot);
// rules_reduce.cpp
STITCHWORK_RULE(reduce_as_dot);
STITCHWORK_RULE(dot_as_product);
STITCHWORK_RULE(reduce_of_dot);
STITCHWORK_RULE(reduce_pair);
STITCHWORK_RULE(reduce_of_broadcast);
STITCHWORK_RULE(reduce_through_layout);
STITCHWORK_RULE(reduce_split);
std::optional<Match> find_all_reduce_split(const View&, const std::vector<NodeId>& ops);
// rules_convolution.cpp
STITCHWORK_RULE(conv_as_dot);
STITCHWORK_RULE(conv_merge);
STITCHWORK_RULE(conv_scale);
// rules_products.cpp
STITCHWORK_RULE(fuse_products);
std::optional<Match> find_all_fuse_products(const View&, const std::vector<NodeId>& ops);
// rules_beside.cpp
STITCHWORK_RULE(concat_in_place);
std::optional<Match> find_all_concat_in_place(const View&, const std::vector<NodeId>& ops);

#undef STITCHWORK_RULE

}  // namespace stitchwork::rewriting
