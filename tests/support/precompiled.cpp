// The precompiled headers of tests need a source of their own (tests/CMakeLists.txt).
#include "tests/support/json_instances.h"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
