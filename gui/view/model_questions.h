// Asks for what an ONNX model leaves open: sizes of dimensions, values of inputs that decide shapes.
#pragma once

#include <QDialog>
#include <QString>
#include <map>
#include <utility>
#include <vector>

#include "core/onnx/onnx.h"
#include "core/onnx/open_model.h"

class QLineEdit;
class QPushButton;
class QSettings;

namespace stitchwork::gui {

/// By kind and name of the question; as typed.
using Answers = std::map<std::pair<OnnxQuestion::Kind, std::string>, QString>;

class ModelQuestions : public QDialog {
  Q_OBJECT
 public:
  /// A row a question, filled from `known`, else with what the reader suggests. `note`: what was wrong with
  /// the answers before; empty: nothing.
  ModelQuestions(const QString& file, const std::vector<OnnxQuestion>& questions, const Answers& known,
                 const QString& note, QWidget* parent);
  Answers answers() const;
  OnnxOptions options() const;

 private:
  void check();
  QLineEdit* add_row(const OnnxQuestion& question, const Answers& known);

  std::vector<std::pair<OnnxQuestion, QLineEdit*>> rows_;
  QPushButton* open_;
};

/// What was answered for this file before.
Answers remembered_answers(QSettings& settings, const QString& file);
void remember_answers(QSettings& settings, const QString& file, const Answers& answers);

}  // namespace stitchwork::gui
