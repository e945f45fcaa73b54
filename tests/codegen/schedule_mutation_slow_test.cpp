// Whether verify is as strict with a schedule as a run: of deliberate faults in schedules, it refuses each
// that the sanitizers or the judge of results would find.
#include <gmock/gmock.h>

#include <functional>
#include <iostream>
#include <map>
#include <random>

#include "analysis/schedule/check.h"
#include "codegen/table.h"
#include "tests/codegen/mutated.h"

namespace stitchwork {
namespace TEST_FILE {

/// What an edit can be made of: the same schedule's copies, each with one change. `change` is called with
/// every place in turn and returns whether it has changed that one; it is asked again until no copy changes.
class Copies {
 public:
  explicit Copies(const Schedule& right) : right_(right) {}

  /// A copy for each (step, i) of which `change` says it has changed something.
  void of_steps(const std::function<bool(Schedule&, TaskLoop&, Step&, std::size_t)>& change) {
    for (std::size_t p = 0; p < right_.phases.size(); ++p)
      for (std::size_t l = 0; l < right_.phases[p].loops.size(); ++l)
        for (std::size_t s = 0; s < right_.phases[p].loops[l].steps.size(); ++s)
          for (std::size_t i = 0; i < places(right_.phases[p].loops[l].steps[s]); ++i) {
            Schedule copy = right_;
            TaskLoop& loop = copy.phases[p].loops[l];
            if (change(copy, loop, loop.steps[s], i)) all.push_back(std::move(copy));
          }
  }

  std::vector<Schedule> all;

 private:
  std::size_t places(const Step& step) const {
    return std::max({step.values.size(), step.roots.size(), right_.buffers.size(), std::size_t{1}});
  }
  const Schedule& right_;
};

bool in_shared(const Buffer& b) { return b.space == MemorySpace::kShared && b.elements > 0; }

/// The next buffer of the same memory, type and size, or -1.
int like(const Schedule& s, int buffer) {
  if (buffer < 0) return -1;
  const Buffer& b = s.buffers[static_cast<std::size_t>(buffer)];
  for (std::size_t k = 1; k < s.buffers.size(); ++k) {
    const std::size_t other = (static_cast<std::size_t>(buffer) + k) % s.buffers.size();
    const Buffer& o = s.buffers[other];
    if (o.space == b.space && o.shape.dtype == b.shape.dtype && o.elements >= b.elements &&
        o.tile == b.tile && o.across == b.across && o.partials == b.partials)
      return static_cast<int>(other);
  }
  return -1;
}

struct Edit {
  const char* name;
  std::function<void(const Schedule&, Copies&)> make;
};

const Edit kEdits[] = {
    {"a barrier of a block is dropped",
     [](const Schedule& right, Copies& copies) {
       for (std::size_t p = 0; p < right.phases.size(); ++p)
         for (std::size_t l = 0; l < right.phases[p].loops.size(); ++l)
           for (int stage = 1; stage <= right.phases[p].loops[l].steps.back().stage; ++stage) {
             Schedule copy = right;
             for (Step& step : copy.phases[p].loops[l].steps)
               if (step.stage >= stage) --step.stage;
             copies.all.push_back(std::move(copy));
           }
     }},
    {"a grid barrier is dropped",
     [](const Schedule& right, Copies& copies) {
       for (std::size_t p = 1; p < right.phases.size(); ++p) {
         Schedule copy = right;
         std::vector<TaskLoop>& into = copy.phases[p - 1].loops;
         into.insert(into.end(), copy.phases[p].loops.begin(), copy.phases[p].loops.end());
         copy.phases.erase(copy.phases.begin() + static_cast<std::ptrdiff_t>(p));
         --copy.launch.grid_barriers;
         copies.all.push_back(std::move(copy));
       }
     }},
    {"a slot is moved onto another",
     [](const Schedule& right, Copies& copies) {
       for (std::size_t a = 0; a < right.buffers.size(); ++a)
         for (std::size_t b = 0; b < right.buffers.size(); ++b) {
           if (a == b || !in_shared(right.buffers[a]) || !in_shared(right.buffers[b])) continue;
           Schedule copy = right;
           copy.buffers[a].offset = right.buffers[b].offset;
           copies.all.push_back(std::move(copy));
         }
     }},
    {"the workspace is moved onto a slot",
     [](const Schedule& right, Copies& copies) {
       for (const Buffer& b : right.buffers) {
         if (!in_shared(b) || right.workspace_bytes == 0) continue;
         Schedule copy = right;
         copy.workspace_offset = b.offset;
         copies.all.push_back(std::move(copy));
       }
     }},
    {"a slot is moved behind the end of shared memory",
     [](const Schedule& right, Copies& copies) {
       for (std::size_t b = 0; b < right.buffers.size(); ++b) {
         if (!in_shared(right.buffers[b])) continue;
         Schedule copy = right;
         copy.buffers[b].offset = copy.launch.shared_bytes;
         copies.all.push_back(std::move(copy));
       }
     }},
    {"a read is routed to another buffer",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule& s, TaskLoop&, Step& step, std::size_t v) {
         if (v >= step.values.size()) return false;
         const int other = like(s, step.values[v].buffer);
         if (other < 0) return false;
         step.values[v].buffer = other;
         return true;
       });
     }},
    {"a result is routed to another buffer",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule& s, TaskLoop&, Step& step, std::size_t r) {
         if (r >= step.roots.size() || step.roots[r].targets.empty()) return false;
         const int other = like(s, step.roots[r].targets[0].buffer);
         if (other < 0) return false;
         step.roots[r].targets[0].buffer = other;
         return true;
       });
     }},
    {"a result is not stored",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule&, TaskLoop&, Step& step, std::size_t r) {
         if (r >= step.roots.size() || step.roots[r].targets.empty()) return false;
         step.roots[r].targets.pop_back();
         return true;
       });
     }},
    {"a step is left out",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule&, TaskLoop& loop, Step& step, std::size_t i) {
         if (i > 0 || loop.steps.size() < 2) return false;
         loop.steps.erase(loop.steps.begin() + (&step - loop.steps.data()));
         return true;
       });
     }},
    {"a step comes before what it waits for",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule&, TaskLoop& loop, Step& step, std::size_t i) {
         const auto at = static_cast<std::size_t>(&step - loop.steps.data());
         if (i > 0 || at == 0) return false;
         std::swap(loop.steps[at - 1], loop.steps[at]);
         std::swap(loop.steps[at - 1].stage, loop.steps[at].stage);
         return true;
       });
     }},
    {"a depth is raised",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule&, TaskLoop& loop, Step& step, std::size_t i) {
         if (i > 0 || &step != loop.steps.data() || loop.stages == 0) return false;
         ++loop.stages;
         return true;
       });
     }},
    {"a tile is filled with its own task's steps",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule&, TaskLoop&, Step& step, std::size_t i) {
         if (i > 0 || step.filling == Filling::kInTask) return false;
         step.filling = Filling::kInTask;
         return true;
       });
     }},
    {"a tile is filled once",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule&, TaskLoop&, Step& step, std::size_t i) {
         if (i > 0 || step.filling != Filling::kAhead) return false;
         step.filling = Filling::kOnce;
         return true;
       });
     }},
    {"a value is not kept",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule&, TaskLoop&, Step& step, std::size_t v) {
         if (v >= step.values.size() || step.values[v].kept < 0) return false;
         step.values[v].kept = -1;
         return true;
       });
     }},
    {"another kept value is taken up",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule& s, TaskLoop&, Step& step, std::size_t v) {
         if (v >= step.values.size() || step.values[v].restored < 0) return false;
         const auto from = static_cast<std::size_t>(step.values[v].restored);
         for (std::size_t k = 1; k < s.kept.size(); ++k) {
           const std::size_t other = (from + k) % s.kept.size();
           if (s.kept[other].dtype != s.kept[from].dtype || s.kept[other].elements != s.kept[from].elements)
             continue;
           step.values[v].restored = static_cast<int>(other);
           return true;
         }
         return false;
       });
     }},
    {"a row's result is not left in registers",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule&, TaskLoop&, Step& step, std::size_t r) {
         if (r >= step.roots.size() || step.roots[r].row_result < 0) return false;
         step.roots[r].row_result = -1;
         return true;
       });
     }},
    {"another row's result is read",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule&, TaskLoop& loop, Step& step, std::size_t v) {
         if (v >= step.values.size() || step.values[v].row_result < 0) return false;
         const auto from = static_cast<std::size_t>(step.values[v].row_result);
         for (std::size_t k = 1; k < loop.row_results.size(); ++k) {
           const std::size_t other = (from + k) % loop.row_results.size();
           if (loop.row_results[other].dtype != loop.row_results[from].dtype) continue;
           step.values[v].row_result = static_cast<int>(other);
           return true;
         }
         return false;
       });
     }},
    {"a task is left out",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule&, TaskLoop& loop, Step& step, std::size_t i) {
         if (i > 0 || &step != loop.steps.data() || loop.deal.tasks < 2) return false;
         --loop.deal.tasks;
         for (LoopEntry& entry : loop.entries)
           entry.deal.tasks = std::max<std::int64_t>(1, entry.deal.tasks - 1);
         return true;
       });
     }},
    {"blocks beyond the grid take tasks",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule&, TaskLoop& loop, Step& step, std::size_t i) {
         if (i > 0 || &step != loop.steps.data()) return false;
         ++loop.deal.first_block;
         for (LoopEntry& entry : loop.entries) ++entry.deal.first_block;
         return true;
       });
     }},
    {"what one thread of a row computes is read by all",
     [](const Schedule&, Copies& copies) {
       copies.of_steps([](Schedule&, TaskLoop&, Step& step, std::size_t i) {
         if (i > 0 || !step.by_all) return false;
         step.by_all = false;
         return true;
       });
     }},
};

/// Makes every edit of the kernel at each of its places. Those that schedule_problems accepts are run, up to
/// a few of an edit: no run may find a fault. Returns how many of each edit are refused.
std::map<std::string, std::size_t> expect_as_strict(const testing::Made& made, std::size_t kernel,
                                                    std::uint32_t seed) {
  const Schedule right = build_schedule(made.graph, made.executable.plan.kernels.at(kernel));
  EXPECT_THAT(schedule_problems(made.graph, right), ::testing::IsEmpty());
  Judge judge(made.graph, made.inputs);
  const auto caught = [&](const Schedule& changed) -> std::string {
    try {
      Executable executable = made.executable;
      CompiledKernel& compiled = executable.kernels[kernel];
      compiled = compile_kernel(to_cuda(made.graph, changed, true), "k", changed.launch, made.target,
                                testing::fault_options());
      compiled.arguments = kernel_arguments(changed);
      compiled.table = kernel_table(changed);
      return testing::verdict(made, executable, judge);
    } catch (const std::exception& error) {
      return error.what();
    }
  };
  EXPECT_EQ(caught(right), "") << "without a fault";
  std::mt19937 random(seed);
  constexpr int kRuns = 8;
  std::map<std::string, std::size_t> refused;
  for (const Edit& edit : kEdits) {
    Copies copies(right);
    edit.make(right, copies);
    std::shuffle(copies.all.begin(), copies.all.end(), random);
    int runs = 0;
    for (const Schedule& changed : copies.all) {
      if (!schedule_problems(made.graph, changed).empty()) {
        ++refused[edit.name];
        continue;
      }
      if (runs++ >= kRuns) break;
      EXPECT_EQ(caught(changed), "") << "'" << edit.name << "' is not refused:\n"
                                     << to_text(made.graph, changed);
    }
  }
  return refused;
}

TEST(ScheduleMutation, WhatARunFindsVerifyRefuses) {
  SKIP_WITHOUT_COMPILER();
  std::map<std::string, std::size_t> refused;
  const auto edit_all = [&](const testing::Made& made, std::uint32_t seed) {
    for (std::size_t k = 0; k < made.executable.kernels.size(); ++k) {
      SCOPED_TRACE(fmt::format("kernel {}", k));
      for (const auto& [edit, times] : expect_as_strict(made, k, seed)) refused[edit] += times;
    }
  };
  std::uint32_t number = 0;
  for (const testing::Subject& subject : testing::mutation_subjects()) {
    SCOPED_TRACE(subject.name);
    edit_all(testing::made(subject), number++);
  }
  const testing::FuzzRange range = testing::fuzz_range(0, 12);
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Device target = testing::share_of(seed % 2 == 0 ? "v100" : "h200", 4);
    testing::Made made{testing::graph_of(testing::random_hlo(seed)), target, {}, {}};
    const char* planner = seed % 3 == 0 ? "xla" : "astitch";
    made.executable =
        compile(made.graph, target, make_plan(made.graph, target, planner), testing::fault_options());
    made.inputs = generate_inputs(made.graph, seed);
    edit_all(made, seed);
  }
  for (const Edit& edit : kEdits) {
    std::cout << fmt::format("{}: refused {} times\n", edit.name, refused[edit.name]);
    EXPECT_GT(refused[edit.name], 0u) << edit.name;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
