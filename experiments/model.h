// Finding models: a path, or the name of a dataset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/evaluate/inputs.h"
#include "core/graph/graph.h"
#include "core/onnx/onnx.h"
#include "core/passes/op_trace.h"

namespace stitchwork {

/// One entry of datasets/ (its JSON beside the HLO text; datasets/README.md).
struct Dataset {
  std::string name, title, description, source, dtype, licence;
  std::string kind;           ///< class of workload: micro, layer, inference, decoding, training, optimizer
  std::string paper;          ///< whose workload it is, with its place there; empty: no paper's
  std::string substitution;   ///< how it differs from the paper's own model where that is not public
  std::string framework;      ///< that wrote the text; empty: written by hand
  std::string configuration;  ///< sizes and hyper-parameters, a JSON object
  int ops = 0;                ///< instructions of the text, before any pass
  std::int64_t parameter_bytes = 0;
  std::string path;  ///< of the HLO text
  std::string json_path;
  bool large = false;  ///< tests only plan it
};

/// Sorted by name; of data_folder("datasets") (core/base/data.h).
std::vector<Dataset> datasets();

/// The dataset of that name. Throws Error naming a close one if there is none.
Dataset find_dataset(const std::string& name);

/// A model ready to plan.
struct Model {
  Graph graph;            ///< canonical (core/passes/passes.h); `source` is what the user called it
  InputOverrides inputs;  ///< by parameter name, patterns resolved
  /// Custom calls that change no output and are left out (core/passes/passes.h left_out_effects).
  std::vector<std::string> left_out;
};

/// Where the model is that a saved plan names: as it is named, or the same way from the plan's folder. Throws
/// Error naming the plan where it is neither there nor a dataset.
std::string model_of_plan(const std::string& model, const std::string& plan_file);

/// `name` is a path (.hlo, .txt, .onnx, each also .gz) or a dataset's name; `options` are for ONNX models.
/// Throws Error naming close dataset names if neither.
/// `trace`: takes what became of the ops of the file; `as_read`: the module before any pass.
Model load_model(const std::string& name, const OnnxOptions& options = {}, OpTrace* trace = nullptr,
                 Graph* as_read = nullptr);

}  // namespace stitchwork
