"""Triton kernels of the suite; references.py is what numpy makes of the same arrays."""
import triton
import triton.language as tl
from triton.language.extra import libdevice


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


@triton.jit
def cumulative(out, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0)
    tl.store(out + row * n + at, tl.cumsum(v, axis=0), mask=at < n)


@triton.jit
def sorted_rows(out, x, n: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, n)
    tl.store(out + row * n + at, tl.sort(tl.load(x + row * n + at)))


@triton.jit
def dropout(out, x, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, v / (1 - p), 0.0), mask=at < n)


@triton.jit
def extremes(out, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-1e30)
    top, where = tl.max(v, axis=0, return_indices=True)
    least = tl.argmin(tl.where(at < n, v, 1e30), axis=0)
    tl.store(out + row * 3, top)
    tl.store(out + row * 3 + 1, where.to(tl.float32))
    tl.store(out + row * 3 + 2, least.to(tl.float32))


@triton.jit
def combine(a, va, b, vb):
    return a * b, vb + b * va


@triton.jit
def recurrence(out, a, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    decay = tl.sigmoid(tl.load(a + row * n + at, mask=at < n, other=0.0))
    v = tl.load(x + row * n + at, mask=at < n, other=0.0)
    _, h = tl.associative_scan((decay, v), 0, combine)
    tl.store(out + row * n + at, h, mask=at < n)


@triton.jit
def shapes(out, x, N: tl.constexpr):
    at = tl.arange(0, N)
    rows = tl.arange(0, N)[:, None]
    t = tl.load(x + rows * N + at[None, :])
    u = tl.trans(t)
    p = tl.interleave(u, t)
    q = tl.flip(tl.reshape(p, (N * 2, N)), 1)
    tl.store(out + tl.arange(0, N * 2)[:, None] * N + at[None, :], q)


@triton.jit
def functions(out, x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n)
    b = tl.load(y + at, mask=at < n)
    v = libdevice.erf(a) + libdevice.atan2(a, b) + libdevice.pow(tl.abs(a), b) + tl.sin(a) + tl.exp2(b) + libdevice.log1p(tl.abs(b)) + libdevice.tanh(a) + tl.rsqrt(tl.abs(b) + 1)
    tl.store(out + at, v, mask=at < n)


@triton.jit
def half_products(c, a, b, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    # Persistent, pipelined, with a fused epilogue.
    for tile in tl.range(tl.program_id(0), (m // M) * (n // N), tl.num_programs(0), flatten=True):
        rows = (tile // (n // N)) * M + tl.arange(0, M)
        columns = (tile % (n // N)) * N + tl.arange(0, N)
        sums = tl.zeros((M, N), dtype=tl.float32)
        for at in tl.range(0, k, K, num_stages=3):
            inner = at + tl.arange(0, K)
            sums = tl.dot(tl.load(a + rows[:, None] * k + inner[None, :]), tl.load(b + inner[:, None] * n + columns[None, :]), sums)
        tl.store(c + rows[:, None] * n + columns[None, :], (sums * tl.sigmoid(sums)).to(tl.float16))


@triton.jit
def float_products(c, a, b, n: tl.constexpr, P: tl.constexpr):
    at = tl.arange(0, n)
    place = at[:, None] * n + at[None, :]
    tl.store(c + place, tl.dot(tl.load(a + place), tl.load(b + place), input_precision=P))


@triton.jit
def small_floats(c, a, b, n: tl.constexpr):
    at = tl.arange(0, n)
    place = at[:, None] * n + at[None, :]
    tl.store(c + place, tl.dot(tl.load(a + place).to(tl.float8e5), tl.load(b + place).to(tl.float8e5)))


@triton.jit
def byte_products(c, a, b, n: tl.constexpr):
    at = tl.arange(0, n)
    place = at[:, None] * n + at[None, :]
    tl.store(c + place, tl.dot((tl.load(a + place) * 20).to(tl.int8), (tl.load(b + place) * 20).to(tl.int8)).to(tl.float32))


@triton.jit
def welford(out, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n // BLOCK):
        v = tl.load(x + row * n + k * BLOCK + tl.arange(0, BLOCK))
        d = v - mean
        mean += d / (k + 1)
        m2 += d * (v - mean)
    count = n // BLOCK
    total = tl.sum(mean, axis=0) / BLOCK
    tl.store(out + row, tl.sum(m2 + (mean - total) * (mean - total) * count, axis=0) / n)
