#include <cctype>
#include <filesystem>
#include <unordered_map>

#include "analysis/plan/assemble.h"
#include "codegen/kernel.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "gui/page/page_data.h"

namespace stitchwork::gui {
namespace {

std::string as_identifier(std::string text) {
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return text;
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The text with each word that begins with an op's identifier, and each op's own name, as a mark: \1, its
/// number among the names used (of identifiers, +0; of names, "n"), \2.
class NameTemplate {
 public:
  NameTemplate(const Computation& computation, const std::vector<NodeId>& ops, std::string_view kernel)
      : kernel_(kernel) {
    for (const NodeId op : ops) {
      const std::string& name = computation.node(op).name;
      identifiers_.emplace(as_identifier(name), name);
      names_.emplace(name, name);
    }
  }

  std::string run(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      if (!in_word(text[i])) {
        out += text[i++];
        continue;
      }
      std::size_t end = i, dotted = i;
      while (end < text.size() && in_word(text[end])) ++end;
      for (dotted = end; dotted + 1 < text.size() && (text[dotted] == '.' || text[dotted] == '-') &&
                         in_word(text[dotted + 1]);)
        for (++dotted; dotted < text.size() && in_word(text[dotted]);) ++dotted;
      const std::string_view word = text.substr(i, end - i), whole = text.substr(i, dotted - i);
      if (const auto op = names_.find(std::string(whole)); op != names_.end() && dotted > end) {
        out += mark(op->second, 'n');
        i = dotted;
        continue;
      }
      i = end;
      if (word == kernel_) {
        out += "\1k\2";
        continue;
      }
      out += identifier(word);
    }
    return out;
  }

  const std::vector<std::string>& used() const { return used_; }

 private:
  /// The longest beginning that ends before an underscore: reduce_10_acc is reduce.10's.
  std::string identifier(std::string_view word) {
    for (std::size_t length = word.size(); length > 0 && length != std::string_view::npos;
         length = word.rfind('_', length - 1)) {
      if (const auto op = identifiers_.find(std::string(word.substr(0, length))); op != identifiers_.end())
        return mark(op->second, 'i') + std::string(word.substr(length));
    }
    return std::string(word);
  }

  std::string mark(const std::string& name, char form) {
    const auto [at, fresh] = numbers_.emplace(name, used_.size());
    if (fresh) used_.push_back(name);
    return "\1" + std::to_string(at->second) + form + "\2";
  }

  std::string kernel_;
  std::unordered_map<std::string, std::string> identifiers_, names_;
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<std::string> used_;
};

}  // namespace

nlohmann::ordered_json SharedSources::add(const Graph& graph, const KernelPlan& kernel) {
  std::string cuda;
  try {
    cuda = to_cuda(graph, build_schedule(graph, kernel), false);
  } catch (const Error& error) {  // of kernels that can only be planned: its reason is what the page shows
    return {{"problem", error.message()}};
  }
  std::vector<NodeId> ops = kernel.ops;
  const std::vector<NodeId> inputs = kernel_inputs(graph, kernel);
  ops.insert(ops.end(), inputs.begin(), inputs.end());
  NameTemplate names(graph.entry_computation(), ops, kernel.name);
  std::string text = names.run(cuda);
  const auto [at, fresh] = known_.emplace(text, texts_.size());
  if (fresh) texts_.push_back(std::move(text));
  return {{"text", at->second}, {"names", names.used()}};
}

nlohmann::ordered_json SharedSources::add(const PeerPlan& peer, const KernelCode& code) {
  std::string text;
  try {
    text = read_file((std::filesystem::path(peer.dump) / code.module).string());
  } catch (const Error& error) {  // the dump lay elsewhere when it was read
    return {{"problem", error.message()}};
  }
  std::erase_if(text, [](char c) { return c == '\1' || c == '\2'; });
  const auto [at, fresh] = known_.emplace(text, texts_.size());
  if (fresh) texts_.push_back(std::move(text));
  return {{"text", at->second}, {"names", nlohmann::ordered_json::array()}, {"language", "ptx"}};
}

}  // namespace stitchwork::gui
