// Finding models: a path, or the name of a dataset.
#pragma once

#include <string>
#include <vector>

#include "core/graph.h"
#include "core/inputs.h"
#include "core/onnx/onnx.h"

namespace stitchwork {

/// One entry of datasets/ (its JSON beside the HLO text; datasets/README.md).
struct Dataset {
  std::string name, title, description, source, dtype, licence;
  std::string path;  ///< of the HLO text
  std::string json_path;
  bool large = false;  ///< tests only plan it
};

/// Sorted by name. The folder: STITCHWORK_DATASETS, else datasets/ beside the program, else the source
/// tree's.
std::vector<Dataset> datasets();

/// A model ready to plan.
struct Model {
  Graph graph;            ///< canonical (core/passes.h); `source` is what the user called it
  InputOverrides inputs;  ///< by parameter name, patterns resolved
};

/// `name` is a path (.hlo, .txt, .onnx, each also .gz) or a dataset's name; `options` are for ONNX models.
/// Throws Error naming close dataset names if neither.
Model load_model(const std::string& name, const OnnxOptions& options = {});

}  // namespace stitchwork
