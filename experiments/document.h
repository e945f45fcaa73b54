// Documents as HTML and Markdown. (PDF: figures/data/renderer.h.)
#pragma once

#include <string>

#include "figures/data/document.h"

namespace stitchwork {

/// One page that needs nothing else: inline SVG and CSS. Without a renderer a line stands for each figure,
/// whose data the tables have.
std::string document_html(const Document& document);

/// Figures are named with their captions.
std::string document_markdown(const Document& document);

}  // namespace stitchwork
