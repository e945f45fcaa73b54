// Something that went wrong, as panels show it: where, what, what to do about it.
#pragma once

#include <QString>
#include <exception>
#include <vector>

#include "core/onnx/open_model.h"

namespace stitchwork::gui {

struct Problem {
  QString doing;  ///< "opening bert.hlo"
  QString where;  ///< "model.hlo:12:3", or empty
  QString message;
  QString hint;
  int line = 0;  ///< in the file, or 0
  /// Of a model that only reads once these are settled; `where` is its file.
  std::vector<OnnxQuestion> questions;

  /// What the command line would print, to be copied.
  QString text() const;
};

/// Of the exception under way; call it in a catch block.
Problem current_problem(const QString& doing);

}  // namespace stitchwork::gui
