// PTX of kernels that ask for more than their compiler knows: thread block clusters, asynchronous copies.
#pragma once

#include <string>
#include <string_view>

namespace stitchwork {

/// Blocks of a cluster that the source's kernel asks for (SW_CLUSTER of the prelude); 1: it asks for none.
int cluster_of(std::string_view source);

/// PTX of a kernel of `source` whose compiler writes it for an architecture without what the prelude's inline
/// assembly uses, and no directive for clusters: with that directive where the source asks for clusters, and
/// as the PTX version and target that have all of it. What a compiler writes for an older architecture, a
/// newer one takes as it is.
std::string with_target(std::string ptx, std::string_view source);

/// The least architecture that has what the PTX uses of these (90 with clusters); 0: any has.
int least_architecture(std::string_view ptx);

}  // namespace stitchwork
