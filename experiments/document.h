// Documents as HTML and Markdown. (PDF: figures/data/renderer.h.)
#pragma once

#include <string>

#include "figures/data/document.h"

namespace stitchwork {

/// One page that needs nothing else: inline SVG and CSS.
std::string document_html(const Document& document);

/// A figure with its caption as a part of a page.
std::string figure_html(const Figure& figure, const std::string& caption);

/// Figures are named with their captions.
std::string document_markdown(const Document& document);

/// Throws Error naming the forms a document has, by its file's ending: .html, .pdf, .md.
void require_document_form(const std::string& file);
/// The document in that form. Throws Error likewise, and for .pdf without a renderer.
std::string document_bytes(const Document& document, const std::string& file);

}  // namespace stitchwork
