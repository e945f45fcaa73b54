"""Triton kernels of the suite; references.py is what numpy makes of the same arrays."""
import triton
import triton.language as tl


@triton.jit
def softmax(out, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


@triton.jit
def layer_norm(out, x, w, b, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * n + at, mask=inside, other=0.0)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(inside, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n + 1e-5)
    tl.store(out + row * n + at, d * scale * tl.load(w + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


@triton.jit
def matmul(c, a, b, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    sums = tl.zeros((M, N), dtype=tl.float32)
    for at in range(0, k, K):
        inner = at + tl.arange(0, K)
        sums = tl.dot(tl.load(a + rows[:, None] * k + inner[None, :]), tl.load(b + inner[:, None] * n + columns[None, :]), sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums)


@triton.jit
def matmul_by_descriptors(c, a, b, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    to = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    row = tl.program_id(0) * M
    column = tl.program_id(1) * N
    sums = tl.zeros((M, N), dtype=tl.float32)
    for at in range(0, k, K):
        sums = tl.dot(left.load([row, at]), right.load([at, column]), sums)
    to.store([row, column], sums)


@triton.jit
def attention(out, q, k, v, length, scale, ROWS: tl.constexpr, COLUMNS: tl.constexpr, D: tl.constexpr):
    """FlashAttention, one head a row of the grid: a running maximum and sum of each query."""
    base = tl.program_id(1) * length * D
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, D)
    query = tl.load(q + base + rows[:, None] * D + d[None, :])
    most = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, D), tl.float32)
    for at in range(0, length, COLUMNS):
        columns = at + tl.arange(0, COLUMNS)
        scores = tl.dot(query, tl.load(k + base + columns[None, :] * D + d[:, None])) * scale
        new = tl.maximum(most, tl.max(scores, axis=1))
        e = tl.exp(scores - new[:, None])
        shrink = tl.exp(most - new)
        total = total * shrink + tl.sum(e, axis=1)
        sums = tl.dot(e.to(tl.float16), tl.load(v + base + columns[:, None] * D + d[None, :]), sums * shrink[:, None])
        most = new
    tl.store(out + base + rows[:, None] * D + d[None, :], sums / total[:, None])
