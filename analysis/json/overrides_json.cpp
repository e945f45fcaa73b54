#include "analysis/json/overrides_json.h"

#include "analysis/json/json_cursor.h"

namespace stitchwork {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOverrideSchema = "stitchwork.override/1";

Json edit_to_json(const Edit& edit) {
  Json json{{"do", name(edit.kind)}};
  switch (edit.kind) {
    case EditKind::kScheme:
      json["op"] = edit.ops.at(0);
      json["to"] = edit.to;
      break;
    case EditKind::kMerge:
    case EditKind::kForbidMerge:
      json["ops"] = edit.ops;
      break;
    case EditKind::kSplit:
      json["after"] = edit.ops.at(0);
      break;
    case EditKind::kBlock:
      json["kernel_of"] = edit.ops.at(0);
      json["threads"] = edit.n;
      break;
    case EditKind::kSplitFactor:
      json["op"] = edit.ops.at(0);
      json["n"] = edit.n;
      break;
    case EditKind::kResidency:
      json["kernel_of"] = edit.ops.at(0);
      json["blocks_per_sm"] = edit.n;
      break;
    case EditKind::kTemplate:
      json["kernel_of"] = edit.ops.at(0);
      json["text"] = edit.to;
      break;
    case EditKind::kRewrite:
    case EditKind::kForbidRewrite:
      json["at"] = edit.ops.at(0);
      json["rule"] = edit.to;
      break;
  }
  return json;
}

Edit read_edit(const JsonCursor& c) {
  Edit edit;
  edit.kind = c.at("do").one_of(std::array{EditKind::kScheme, EditKind::kMerge, EditKind::kForbidMerge,
                                           EditKind::kSplit, EditKind::kBlock, EditKind::kSplitFactor,
                                           EditKind::kResidency, EditKind::kTemplate, EditKind::kRewrite,
                                           EditKind::kForbidRewrite});
  switch (edit.kind) {
    case EditKind::kScheme:
      edit.ops = {c.at("op").text()};
      edit.to = c.at("to").text();
      break;
    case EditKind::kMerge:
    case EditKind::kForbidMerge: {
      const JsonCursor ops = c.at("ops");
      ops.each([&](const JsonCursor& op) { edit.ops.push_back(op.text()); });
      if (edit.ops.size() != 2) ops.fail(fmt::format("expected two ops, found {}", edit.ops.size()));
      break;
    }
    case EditKind::kSplit:
      edit.ops = {c.at("after").text()};
      break;
    case EditKind::kBlock:
      edit.ops = {c.at("kernel_of").text()};
      edit.n = c.at("threads").integer();
      break;
    case EditKind::kSplitFactor:
      edit.ops = {c.at("op").text()};
      edit.n = c.at("n").integer();
      break;
    case EditKind::kResidency:
      edit.ops = {c.at("kernel_of").text()};
      edit.n = c.at("blocks_per_sm").integer();
      break;
    case EditKind::kTemplate:
      edit.ops = {c.at("kernel_of").text()};
      edit.to = c.at("text").text();
      break;
    case EditKind::kRewrite:
    case EditKind::kForbidRewrite:
      edit.ops = {c.at("at").text()};
      edit.to = c.at("rule").text();
      break;
  }
  return edit;
}

}  // namespace

Json edits_to_json(const std::vector<Edit>& edits) {
  Json list = Json::array();
  for (const Edit& edit : edits) list.push_back(edit_to_json(edit));
  return list;
}

Json overrides_to_json(const std::vector<Edit>& edits) {
  return {{"schema", kOverrideSchema}, {"edits", edits_to_json(edits)}};
}

std::vector<Edit> read_edits(const JsonCursor& list) {
  std::vector<Edit> edits;
  list.each([&](const JsonCursor& edit) { edits.push_back(read_edit(edit)); });
  return edits;
}

std::vector<Edit> overrides_from_json(const std::string& text, const std::string& file) {
  const JsonDocument document(text, file, kOverrideSchema, "see docs/planners/overrides.md",
                              "docs/schema/override.schema.json");
  return read_edits(document.root().at("edits"));
}

}  // namespace stitchwork
