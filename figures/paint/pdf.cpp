#include "figures/paint/pdf.h"

#include <QBuffer>
#include <QPainter>
#include <QPdfWriter>

namespace stitchwork {
namespace {

/// Overwrites what follows `key` up to `end` with `fill`, so that offsets stay.
void blank(QByteArray& bytes, const char* key, char end, char fill) {
  const auto length = static_cast<qsizetype>(std::char_traits<char>::length(key));
  for (qsizetype at = bytes.indexOf(key); at >= 0; at = bytes.indexOf(key, at + length))
    for (qsizetype i = at + length; i < bytes.size() && bytes[i] != end; ++i) bytes[i] = fill;
}

constexpr const char* kMetadata =
    "<?xpacket begin=\"\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?><x:xmpmeta xmlns:x=\"adobe:ns:meta/\">"
    "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"><rdf:Description rdf:about=\"\" "
    "xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title><rdf:Alt><rdf:li xml:lang=\"x-default\">%1"
    "</rdf:li></rdf:Alt></dc:title><dc:description><rdf:Alt><rdf:li xml:lang=\"x-default\">%2</rdf:li>"
    "</rdf:Alt></dc:description></rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end=\"w\"?>";

}  // namespace

std::string write_pdf(const QPageSize& page, const QString& title, const QString& description,
                      const std::function<void(QPainter&, QPdfWriter&)>& draw) {
  constexpr int kResolution = 1200;
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QPdfWriter pdf(&buffer);
  pdf.setPageSize(page);
  pdf.setPageMargins(QMarginsF(0, 0, 0, 0));
  pdf.setResolution(kResolution);
  pdf.setTitle(title);
  pdf.setCreator(QStringLiteral("stitchwork"));
  pdf.setDocumentXmpMetadata(
      QString::fromLatin1(kMetadata).arg(title.toHtmlEscaped(), description.toHtmlEscaped()).toUtf8());
  QPainter painter(&pdf);
  painter.scale(kResolution / kInch, kResolution / kInch);
  draw(painter, pdf);
  painter.end();
  blank(bytes, "/CreationDate (D:", ')', '0');
  return bytes_of(bytes);
}

}  // namespace stitchwork
