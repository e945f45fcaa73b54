#include "analysis/planners/astra/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork::astra {
namespace {

/// "a=1,b=2"; of many bindings a digest, so that keys stay short.
std::string text_of(const Bindings& bindings) {
  // A choice, not measured: what fits in a line of a terminal can be read, longer ones cannot.
  constexpr std::size_t kReadable = 64;
  std::string text;
  for (const auto& [name, option] : bindings) text += (text.empty() ? "" : ",") + name + "=" + option;
  return text.size() <= kReadable ? text : "#" + sha256_hex(text).substr(0, 16);
}

/// "b0/s=1/g3=1x4x2{g3.0=cublas}"
std::string mangled(const std::string& context, const TreeNode& node, const std::string& option,
                    const Bindings& below) {
  std::string key = fmt::format("{}/{}={}", context, node.name, option);
  if (node.mode == TreeMode::kFork) key += "{" + text_of(below) + "}";
  return key;
}

std::string inside(const std::string& context, const TreeNode& fork, std::size_t option) {
  return fmt::format("{}/{}={}", context, fork.name, fork.options[option]);
}

/// What a child of a prefix adds to the context of those behind it. Of a long prefix a digest: each of its
/// children would repeat all before it.
std::string behind(const std::string& context, const Bindings& frozen) {
  // A choice, not measured: some lines of a terminal.
  constexpr std::size_t kLongest = 512;
  if (frozen.empty()) return context;
  const std::string text = fmt::format("{}/({})", context, text_of(frozen));
  return text.size() <= kLongest ? text : "#" + sha256_hex(text).substr(0, 16);
}

void set_defaults(const TreeNode& node, Bindings& bindings) {
  if (!node.options.empty()) bindings[node.name] = node.options[0];
  if (node.mode == TreeMode::kFork) return set_defaults(node.children.at(0), bindings);
  for (const TreeNode& child : node.children) set_defaults(child, bindings);
}

bool next_of_variable(const TreeNode& node, const std::string& context, const ProfileIndex& index,
                      Bindings& bindings, double margin) {
  const std::string* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& option : node.options) {
    const auto known = index.find(mangled(context, node, option, {}));
    if (known == index.end()) {
      bindings[node.name] = option;
      return false;
    }
    if (best == nullptr || known->second < least * (1 - margin)) {
      best = &option;
      least = known->second;
    }
  }
  SW_CHECK(best != nullptr, "{} has no options", node.name);
  bindings[node.name] = *best;
  return true;
}

bool next_of_fork(const TreeNode& node, const std::string& context, const ProfileIndex& index,
                  Bindings& bindings, double margin) {
  std::vector<Bindings> at_best(node.options.size());
  const auto take = [&](std::size_t option) {
    bindings[node.name] = node.options[option];
    bindings.insert(at_best[option].begin(), at_best[option].end());
  };
  for (std::size_t o = 0; o < node.options.size(); ++o)
    if (!next(node.children[o], inside(context, node, o), index, at_best[o], margin)) {
      take(o);
      return false;
    }
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t o = 0; o < node.options.size(); ++o) {
    const auto known = index.find(mangled(context, node, node.options[o], at_best[o]));
    if (known == index.end()) {
      take(o);
      return false;
    }
    if (known->second < least * (1 - margin)) {
      best = o;
      least = known->second;
    }
  }
  take(best);
  return true;
}

void collect_keys(const TreeNode& node, const std::string& context, const Bindings& bindings,
                  std::map<std::string, std::string>& found, Bindings& below) {
  switch (node.mode) {
    case TreeMode::kVariable:
      below[node.name] = bindings.at(node.name);
      found[node.name] = mangled(context, node, bindings.at(node.name), {});
      return;
    case TreeMode::kParallel:
      for (const TreeNode& child : node.children) collect_keys(child, context, bindings, found, below);
      return;
    case TreeMode::kPrefix: {
      std::string at = context;
      for (const TreeNode& child : node.children) {
        Bindings mine;
        collect_keys(child, at, bindings, found, mine);
        at = behind(at, mine);
        below.insert(mine.begin(), mine.end());
      }
      return;
    }
    case TreeMode::kFork: {
      const std::string& option = bindings.at(node.name);
      const auto place = std::find(node.options.begin(), node.options.end(), option);
      SW_CHECK(place != node.options.end(), "{} has no option {}", node.name, option);
      const std::size_t o = static_cast<std::size_t>(place - node.options.begin());
      Bindings mine;
      collect_keys(node.children[o], inside(context, node, o), bindings, found, mine);
      found[node.name] = mangled(context, node, option, mine);
      below.insert(mine.begin(), mine.end());
      below[node.name] = option;
      return;
    }
  }
}

/// How far an exploration has come in a part of the tree. The index only grows, so what is settled stays so,
/// and its bindings stay as they are.
struct Progress {
  bool begun = false;
  bool settled = false;
  std::size_t done = 0;            ///< settled children of a prefix
  std::string at;                  ///< of a prefix: the context behind those
  std::vector<Progress> children;  ///< of a parallel node; of a prefix that of the child at hand
};

void unbind(const TreeNode& node, Bindings& bindings) {
  bindings.erase(node.name);
  for (const TreeNode& child : node.children) unbind(child, bindings);
}

bool advance(const TreeNode& tree, const std::string& context, const ProfileIndex& index, Bindings& bindings,
             Progress& progress);

bool advance_prefix(const TreeNode& tree, const std::string& context, const ProfileIndex& index,
                    Bindings& bindings, Progress& progress) {
  if (!progress.begun) {
    progress.at = context;
    progress.children.resize(1);
    for (const TreeNode& child : tree.children) set_defaults(child, bindings);
  }
  for (; progress.done < tree.children.size(); ++progress.done) {
    const TreeNode& child = tree.children[progress.done];
    if (!advance(child, progress.at, index, bindings, progress.children[0])) return false;
    std::map<std::string, std::string> ignored;
    Bindings frozen;
    collect_keys(child, progress.at, bindings, ignored, frozen);
    progress.at = behind(progress.at, frozen);
    progress.children[0] = {};
  }
  return true;
}

/// As `next`, of bindings that are those of the time before, or empty at first.
bool advance(const TreeNode& tree, const std::string& context, const ProfileIndex& index, Bindings& bindings,
             Progress& progress) {
  if (progress.settled) return true;
  bool settled = true;
  switch (tree.mode) {
    case TreeMode::kVariable:
      settled = next(tree, context, index, bindings);
      break;
    case TreeMode::kFork:  // what it binds differs by its option
      unbind(tree, bindings);
      settled = next(tree, context, index, bindings);
      break;
    case TreeMode::kParallel:
      progress.children.resize(tree.children.size());
      for (std::size_t c = 0; c < tree.children.size(); ++c)
        settled = advance(tree.children[c], context, index, bindings, progress.children[c]) && settled;
      break;
    case TreeMode::kPrefix:
      settled = advance_prefix(tree, context, index, bindings, progress);
      break;
  }
  progress.begun = true;
  progress.settled = settled;
  return settled;
}

/// The keys of `keys` that the index may not have: none of what is settled.
void open_keys(const TreeNode& tree, const std::string& context, const Bindings& bindings,
               const Progress& progress, std::map<std::string, std::string>& found) {
  if (progress.settled) return;
  Bindings below;
  switch (tree.mode) {
    case TreeMode::kVariable:
    case TreeMode::kFork:
      collect_keys(tree, context, bindings, found, below);
      return;
    case TreeMode::kParallel:
      for (std::size_t c = 0; c < tree.children.size(); ++c)
        open_keys(tree.children[c], context, bindings, progress.children[c], found);
      return;
    case TreeMode::kPrefix: {
      std::string at = progress.at;
      for (std::size_t c = progress.done; c < tree.children.size(); ++c) {
        Bindings mine;
        collect_keys(tree.children[c], at, bindings, found, mine);
        at = behind(at, mine);
      }
      return;
    }
  }
}

}  // namespace

TreeNode variable(std::string name, std::vector<std::string> options) {
  return {TreeMode::kVariable, std::move(name), std::move(options), {}};
}
TreeNode parallel(std::vector<TreeNode> children) {
  return {TreeMode::kParallel, {}, {}, std::move(children)};
}
TreeNode prefix(std::vector<TreeNode> children) { return {TreeMode::kPrefix, {}, {}, std::move(children)}; }
TreeNode fork(std::string name, std::vector<std::string> options, std::vector<TreeNode> children) {
  SW_CHECK(!options.empty() && options.size() == children.size(), "fork {}: a child an option", name);
  return {TreeMode::kFork, std::move(name), std::move(options), std::move(children)};
}

bool next(const TreeNode& tree, const std::string& context, const ProfileIndex& index, Bindings& bindings,
          double margin) {
  switch (tree.mode) {
    case TreeMode::kVariable:
      return next_of_variable(tree, context, index, bindings, margin);
    case TreeMode::kFork:
      return next_of_fork(tree, context, index, bindings, margin);
    case TreeMode::kParallel: {
      bool settled = true;
      for (const TreeNode& child : tree.children)
        settled = next(child, context, index, bindings, margin) && settled;
      return settled;
    }
    case TreeMode::kPrefix: {
      std::string at = context;
      for (std::size_t c = 0; c < tree.children.size(); ++c) {
        Bindings mine;
        const bool settled = next(tree.children[c], at, index, mine, margin);
        at = behind(at, mine);
        bindings.insert(mine.begin(), mine.end());
        if (settled) continue;
        for (std::size_t later = c + 1; later < tree.children.size(); ++later)
          set_defaults(tree.children[later], bindings);
        return false;
      }
      return true;
    }
  }
  SW_CHECK(false, "mode of a node");
}

Bindings defaults(const TreeNode& tree) {
  Bindings bindings;
  set_defaults(tree, bindings);
  return bindings;
}

std::map<std::string, std::string> keys(const TreeNode& tree, const std::string& context,
                                        const Bindings& bindings) {
  std::map<std::string, std::string> found;
  Bindings below;
  collect_keys(tree, context, bindings, found, below);
  return found;
}

std::size_t run_minibatches(const TreeNode& tree, const std::string& context, ProfileIndex& index,
                            const Measure& measure, std::size_t budget) {
  Progress progress;
  Bindings bindings;
  std::size_t run = 0;
  for (; run < budget && !advance(tree, context, index, bindings, progress); ++run) {
    const std::map<std::string, double> us = measure(bindings);
    std::map<std::string, std::string> found;
    open_keys(tree, context, bindings, progress, found);
    for (const auto& [name, key] : found) index.insert({key, us.at(name)});
  }
  return run;
}

std::vector<Bindings> explore(const TreeNode& tree, const std::string& context, ProfileIndex& index,
                              const Measure& measure, std::size_t budget) {
  std::vector<Bindings> run;
  const auto noted = [&](const Bindings& bindings) {
    run.push_back(bindings);
    return measure(bindings);
  };
  run_minibatches(tree, context, index, noted, budget);
  return run;
}

double trials(const TreeNode& tree) {
  double sum = 0, most = 0;
  for (const TreeNode& child : tree.children) {
    sum += trials(child);
    most = std::max(most, trials(child));
  }
  if (tree.mode == TreeMode::kVariable) return static_cast<double>(tree.options.size());
  return tree.mode == TreeMode::kParallel ? most : sum;
}

double configurations(const TreeNode& tree) { return std::round(std::pow(10, log10_configurations(tree))); }

double log10_configurations(const TreeNode& tree) {
  if (tree.mode == TreeMode::kVariable) return std::log10(static_cast<double>(tree.options.size()));
  double product = 0, most = 0;
  std::vector<double> of;
  for (const TreeNode& child : tree.children) {
    of.push_back(log10_configurations(child));
    product += of.back();
    most = std::max(most, of.back());
  }
  if (tree.mode != TreeMode::kFork) return product;
  double sum = 0;
  for (const double one : of) sum += std::pow(10, one - most);
  return most + std::log10(sum);
}

}  // namespace stitchwork::astra
