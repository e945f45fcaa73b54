// PDF without dates and random identifiers.
#pragma once

#include <QByteArray>
#include <QPageSize>
#include <QString>
#include <functional>
#include <string>

class QPainter;
class QPdfWriter;

namespace stitchwork {

inline constexpr double kInch = 72;  ///< points

inline std::string bytes_of(const QByteArray& bytes) {
  return {bytes.constData(), static_cast<std::size_t>(bytes.size())};
}

/// `draw` gets a painter whose unit is a point; newPage() of the writer starts the next page.
std::string write_pdf(const QPageSize& page, const QString& title, const QString& description,
                      const std::function<void(QPainter&, QPdfWriter&)>& draw);

}  // namespace stitchwork
