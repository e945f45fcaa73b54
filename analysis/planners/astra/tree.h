// What is tried, and what is tried next: adaptive variables in an update tree, and the profile index, which
// is all that an exploration has to remember (Astra, sections 4.4.2 and 4.5 to 4.7).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace stitchwork::astra {

enum class TreeMode : std::uint8_t {
  kVariable,  ///< one of its options
  kParallel,  ///< children do not influence each other: all are tried at once
  kPrefix,    ///< children in turn, those before at their best
  kFork,      ///< one of its options, each with a child of its own: all of each child
};

struct TreeNode {
  TreeMode mode = TreeMode::kVariable;
  std::string name;                  ///< of a variable or fork, unique in the tree
  std::vector<std::string> options;  ///< likewise; the first is the default
  std::vector<TreeNode> children;    ///< of a fork by option
};

TreeNode variable(std::string name, std::vector<std::string> options);
TreeNode parallel(std::vector<TreeNode> children);
TreeNode prefix(std::vector<TreeNode> children);
TreeNode fork(std::string name, std::vector<std::string> options, std::vector<TreeNode> children);

/// Options by name, of the variables and forks that count under the options of the forks above.
using Bindings = std::map<std::string, std::string>;

/// Microseconds by mangled key: a name with its option behind what it depends on; of a fork with what is
/// bound below. A miss means: run it.
using ProfileIndex = std::map<std::string, double>;

/// Whether everything is known; then `bindings` are the best. Else they are the next to run. `margin`: the
/// part of a time by which a later option has to be below it to be better, of times that vary.
bool next(const TreeNode& tree, const std::string& context, const ProfileIndex& index, Bindings& bindings,
          double margin = 0);

/// Every option as it is before anything is known.
Bindings defaults(const TreeNode& tree);

/// By name the key under which a run of these bindings belongs.
std::map<std::string, std::string> keys(const TreeNode& tree, const std::string& context,
                                        const Bindings& bindings);

/// What a run of the bindings takes, by name, us: of a variable or fork the less the better.
using Measure = std::function<std::map<std::string, double>(const Bindings&)>;

/// Runs at most `budget` mini-batches and puts all that they tell into the index. Returns their number. Each
/// costs what is not settled yet, and the measure.
std::size_t run_minibatches(const TreeNode& tree, const std::string& context, ProfileIndex& index,
                            const Measure& measure, std::size_t budget);

/// The same; returns the bindings of each in turn. Where it ends by the budget, going on with the same index
/// does what would have been done.
std::vector<Bindings> explore(const TreeNode& tree, const std::string& context, ProfileIndex& index,
                              const Measure& measure, std::size_t budget);

/// Mini-batches that trying option by option takes: of parallel children the most of any, of a prefix their
/// sum, of a fork the sum over its options.
double trials(const TreeNode& tree);
/// All bindings there are.
double configurations(const TreeNode& tree);
/// Its decimal logarithm, of any size.
double log10_configurations(const TreeNode& tree);

}  // namespace stitchwork::astra
