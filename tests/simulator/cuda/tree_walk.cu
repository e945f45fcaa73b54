// Looks keys up in a binary tree: every lane walks a path of its own length, with a stack for range counts.
#include "prelude.h"

struct Node {
  int key, left, right;
};
static __device__ __noinline__ int find(const Node* nodes, int key) {
  int at = 0, depth = 0;
  while (at >= 0) {
    const int k = nodes[at].key;
    if (k == key) return depth;
    at = key < k ? nodes[at].left : nodes[at].right;
    ++depth;
  }
  return -depth;
}
extern "C" __global__ void tree_walk(const Node* nodes, const int* keys, int* depths, int* counts, int n, int width) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  depths[i] = find(nodes, keys[i]);
  int stack[32], top = 0, count = 0;
  stack[top++] = 0;
  while (top > 0) {
    const Node node = nodes[stack[--top]];
    if (node.key >= keys[i] && node.key < keys[i] + width) ++count;
    if (node.left >= 0 && node.key > keys[i]) stack[top++] = node.left;
    if (node.right >= 0 && node.key < keys[i] + width) stack[top++] = node.right;
  }
  counts[i] = count;
}
