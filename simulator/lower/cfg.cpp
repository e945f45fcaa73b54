// Dominators, post-dominators and loops of a kernel's basic blocks.
#include <algorithm>
#include <functional>

#include "simulator/lower/ir.h"

namespace stitchwork::ptx {
namespace {

using Edges = std::vector<std::vector<int>>;

/// Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm". -1 for the root and what it cannot reach.
std::vector<int> dominators(const Edges& successors, int root) {
  const int n = static_cast<int>(successors.size());
  std::vector<int> order, number(n, -1);
  std::vector<std::pair<int, std::size_t>> stack{{root, 0}};
  std::vector<bool> seen(n);
  seen[root] = true;
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next < successors[node].size()) {
      const int s = successors[node][next++];
      if (!seen[s]) {
        seen[s] = true;
        stack.push_back({s, 0});
      }
    } else {
      number[node] = static_cast<int>(order.size());
      order.push_back(node);
      stack.pop_back();
    }
  }
  Edges predecessors(n);
  for (int b = 0; b < n; ++b) {
    for (int s : successors[b]) predecessors[s].push_back(b);
  }
  std::vector<int> idom(n, -1);
  idom[root] = root;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const int b = *it;
      if (b == root) continue;
      int best = -1;
      for (int p : predecessors[b]) {
        if (idom[p] < 0) continue;
        if (best < 0) {
          best = p;
          continue;
        }
        int x = p, y = best;
        while (x != y) {
          while (number[x] < number[y]) x = idom[x];
          while (number[y] < number[x]) y = idom[y];
        }
        best = x;
      }
      if (idom[b] != best) {
        idom[b] = best;
        changed = true;
      }
    }
  }
  idom[root] = -1;
  return idom;
}

}  // namespace

std::vector<int> immediate_dominators(const std::vector<IrBlock>& blocks) {
  Edges edges;
  for (const IrBlock& b : blocks) edges.push_back(b.successors);
  return dominators(edges, 0);
}

std::vector<int> immediate_postdominators(const std::vector<IrBlock>& blocks) {
  const int n = static_cast<int>(blocks.size());
  Edges reversed(n + 1);  // node n: the end of the kernel
  for (int b = 0; b < n; ++b) {
    for (int s : blocks[b].successors) reversed[s].push_back(b);
    if (blocks[b].successors.empty()) reversed[n].push_back(b);
  }
  std::vector<int> idom = dominators(reversed, n);
  idom.resize(n);
  for (int& d : idom) d = d == n ? -1 : d;
  return idom;
}

std::vector<bool> blocks_in_loops(const std::vector<IrBlock>& blocks) {
  // Tarjan's strongly connected components, iteratively.
  const int n = static_cast<int>(blocks.size());
  std::vector<int> index(n, -1), low(n), stack;
  std::vector<bool> on_stack(n), result(n);
  int counter = 0;
  for (int start = 0; start < n; ++start) {
    if (index[start] >= 0) continue;
    std::vector<std::pair<int, std::size_t>> work{{start, 0}};
    while (!work.empty()) {
      auto& [b, next] = work.back();
      if (next == 0 && index[b] < 0) {
        index[b] = low[b] = counter++;
        stack.push_back(b);
        on_stack[b] = true;
      }
      if (next < blocks[b].successors.size()) {
        const int s = blocks[b].successors[next++];
        if (s == b) result[b] = true;
        if (index[s] < 0)
          work.push_back({s, 0});
        else if (on_stack[s])
          low[b] = std::min(low[b], index[s]);
        continue;
      }
      const int done = b;
      work.pop_back();
      if (!work.empty()) low[work.back().first] = std::min(low[work.back().first], low[done]);
      if (low[done] != index[done]) continue;
      const bool cycle = stack.back() != done;
      for (int member = -1; member != done;) {
        member = stack.back();
        stack.pop_back();
        on_stack[member] = false;
        if (cycle) result[member] = true;
      }
    }
  }
  return result;
}

}  // namespace stitchwork::ptx
