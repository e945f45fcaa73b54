// Kernels launched in thread block clusters, compiled by what knows no clusters.
#pragma once

#include <string>
#include <string_view>

namespace stitchwork {

/// Blocks of a cluster that the source's kernel asks for (SW_CLUSTER of the prelude); 1: it asks for none.
int cluster_of(std::string_view source);

/// PTX of a kernel whose compiler left the directive out, as PTX 7.8 for sm_90 with it. What such a compiler
/// writes for an older architecture, sm_90 takes as it is.
std::string with_cluster(std::string ptx, int blocks);

/// Whether the PTX has a kernel that is launched in clusters.
bool asks_for_clusters(std::string_view ptx);

}  // namespace stitchwork
