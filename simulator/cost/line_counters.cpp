#include "simulator/cost/line_counters.h"

#include <map>
#include <utility>

namespace stitchwork::sim {

std::vector<LineCounters> line_counters(const LaunchContext& context,
                                        const std::vector<BasicBlockCount>& blocks,
                                        const std::vector<MemoryCounts>& memory) {
  std::map<int, LineCounters> lines;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const BasicBlockCount& ran = blocks[b];
    if (ran.warps == 0) continue;
    for (const ptx::LineWeights& weights : context.program->lines[b]) {
      LineCounters& line = lines[weights.at.line];
      line.inst_executed += ran.warps;
      line.thread_inst_executed += ran.threads;
      line.issue_slots += ran.warps * weights.issue;
      line.inst_ldst += ran.warps * weights.ldst;
      if (line.line != 0) continue;
      line.line = weights.at.line;
      if (weights.at.location < 0) continue;
      const ptx::Location& at = context.module->locations[static_cast<std::size_t>(weights.at.location)];
      const auto file = context.module->source_files.find(at.file);
      if (file != context.module->source_files.end()) line.source_file = file->second;
      line.source_line = at.line;
    }
  }
  for (std::size_t id = 0; id < memory.size(); ++id) {
    const MemoryCounts& did = memory[id];
    const auto found = lines.find(context.program->positions[id].line);
    if (found == lines.end()) continue;  // never executed
    LineCounters& line = found->second;
    line.gld_transactions += did.gld_transactions;
    line.gst_transactions += did.gst_transactions;
    line.l2_atomic_sectors += did.atomic_sectors;
    line.shared_wavefronts += did.shared_wavefronts;
    line.shared_bank_conflicts += did.shared_conflicts;
  }
  std::vector<LineCounters> ascending;
  for (auto& [at, line] : lines) ascending.push_back(std::move(line));
  return ascending;
}

}  // namespace stitchwork::sim
