// A figure's numbers for other tools.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "figures/data/figure.h"

namespace stitchwork {

/// A line a number: series, category or x, value, interval, method. Lines end in \n; fields that need it are
/// quoted (RFC 4180).
std::string figure_csv(const Figure& figure);

/// A Vega-Lite 5 specification with the data inline and the provenance in `usermeta`.
nlohmann::ordered_json vega_lite(const Figure& figure);

/// Quoted where it has to be.
std::string csv_field(const std::string& text);

}  // namespace stitchwork
