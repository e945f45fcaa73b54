#pragma once

#include <nlohmann/json.hpp>

// Code for both kinds of documents is generated once for all tests (precompiled.cpp), not once a source.
extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
