#include "gui/model/problem.h"

#include "core/base/error.h"

namespace stitchwork::gui {

QString Problem::text() const {
  QString text = where.isEmpty() ? message : where + ": " + message;
  if (!hint.isEmpty()) text += "; " + hint;
  return text;
}

Problem current_problem(const QString& doing) {
  Problem p;
  p.doing = doing;
  try {
    throw;
  } catch (const Error& e) {
    p.where = QString::fromStdString(e.file());
    if (e.line() > 0) p.where += QString(":%1").arg(e.line());
    if (e.line() > 0 && e.column() > 0) p.where += QString(":%1").arg(e.column());
    p.message = QString::fromStdString(e.message());
    p.hint = QString::fromStdString(e.hint());
    p.line = e.line();
    if (const auto* open = dynamic_cast<const OpenModel*>(&e)) p.questions = open->questions();
  } catch (const std::bad_alloc&) {
    p.message = "not enough memory";
  } catch (const std::exception& e) {
    p.message = QString::fromUtf8(e.what());
    p.hint = "this is a bug of the workbench: please report it with the model";
  }
  return p;
}

}  // namespace stitchwork::gui
