// A training job's state over the mini-batches of an exploration: what one makes of its parameters is what
// the next one is given (Astra, section 4.2: each mini-batch that explores is progress of the training).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/literal.h"
#include "core/passes/training_state.h"
#include "experiments/exploration_history.h"
#include "experiments/model.h"

namespace stitchwork {

class Training {
 public:
  /// Parameters that are no state are drawn anew for each mini-batch, from `seed` and its number; the state
  /// begins as `seed` draws it. The model outlives this. Throws Error where `state` is empty, or a result is
  /// not of its parameter's shape.
  Training(const Model& model, std::uint64_t seed, std::vector<FedBack> state);

  /// All parameters of mini-batch `number`, 0 the first.
  std::vector<Literal> inputs(std::size_t number) const;
  /// Takes what the mini-batch has made.
  void step(const std::vector<Literal>& outputs);
  /// Takes the state of another model of the same job, by the parameters' names. Throws Error where it has
  /// none of them of that shape.
  void take(const Training& other);
  /// The first result that is one float and no state.
  std::optional<double> loss(const std::vector<Literal>& outputs) const;

  /// Values by number of the parameter.
  using State = std::vector<std::pair<std::size_t, Literal>>;
  const State& state() const { return values_; }
  /// In the order of state(), as a history has kept them. Throws Error where they do not fit.
  void restore(const StateBytes& bytes);

  /// "variables.a <- result 1, variables.b <- result 2"
  std::string text() const;

 private:
  const Model& model_;
  std::uint64_t seed_;
  std::vector<FedBack> fed_back_;
  State values_;
};

/// "1=variables.a": the result of that number is the next mini-batch's parameter of that name or number.
/// Throws Error with what is wrong with it.
FedBack parse_fed_back(const Model& model, const std::string& text);

}  // namespace stitchwork
