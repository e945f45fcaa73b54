"""Loops, branches and their nests; training steps that skip updates; reverse mode of scans."""

import jax
import jax.numpy as jnp
from jax import lax, nn

from cases import add, case

add("fori", lambda x: lax.fori_loop(0, 5, lambda i, c: c * 1.5 + i, x), "f32[9]")
add("fori_cond", lambda x: lax.fori_loop(0, 3, lambda i, c: lax.cond(i > 1, lambda c: c * i, lambda c: c - 1, c), x), "f32[9]")
add("fori_no_trips", lambda x: lax.fori_loop(4, 4, lambda i, c: c + 1, x), "f32[9]")
add("fori_swapped", lambda x, y: lax.fori_loop(0, 5, lambda i, c: (c[1], c[0] + i), (x, y)), "f32[9]", "f32[9]")
add("fori_duplicated", lambda x: lax.fori_loop(0, 4, lambda i, c: (c[0] + c[1], c[0]), (x, x)), "f32[9]")
add("fori_rotated", lambda x, y, z: lax.fori_loop(0, 7, lambda i, c: (c[1], c[2], c[0]), (x, y, z)), "f32[4]", "f32[4]", "f32[4]")
add("fori_constant_state", lambda x: lax.fori_loop(0, 4, lambda i, c: (c[0] + c[1], jnp.full(9, 2.0)), (x, jnp.zeros(9))), "f32[9]")
add("fori_dead_state", lambda x, y: lax.fori_loop(0, 4, lambda i, c: (c[0] * 2, c[1]), (x, y))[0], "f32[9]", "f32[9]")
add("fori_outer_value", lambda x, y: lax.fori_loop(0, 4, lambda i, c: c * y + x, x), "f32[9]", "f32[9]")
add("fori_nested", lambda x: lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(0, i + 1, lambda j, d: d + c * j, c), x), "f32[9]")
add("fori_nested_shared", lambda x: lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(0, 2, lambda j, d: (d[1], d[0]), (c[1], c[0] + 1)), (x, x * 2)), "f32[9]")
add("fori_index_update", lambda x: lax.fori_loop(0, 6, lambda i, c: c.at[i].set(c[i - 1] + c[(i + 2) % 6]), x), "f32[6]")
add("while_data", lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, jnp.abs(x)), "f32[9]")
add("while_counts", lambda x: lax.while_loop(lambda c: (c[0] != 1) & (c[1] < 50), lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1),
                                             (x + 27, 0)), "s32[]")
add("while_false_at_once", lambda x: lax.while_loop(lambda c: c[1] < 0, lambda c: (c[0] * 0, c[1]), (x, 3)), "f32[9]")
add("while_newton", lambda x: lax.while_loop(lambda c: jnp.abs(c[0] ** 2 - c[1]).max() > 1e-3, lambda c: (0.5 * (c[0] + c[1] / c[0]), c[1]),
                                             (jnp.ones_like(x), jnp.abs(x) + 0.5)), "f32[5]")
add("while_two_outputs", lambda x: lax.while_loop(lambda c: c[2] < 3, lambda c: (c[1], c[0] + c[1], c[2] + 1), (x, x + 1, 0)), "f32[5]")
add("cond_scalar", lambda p, x: lax.cond(p, lambda x: jnp.sin(x), lambda x: x - 1, x), "pred[]", "f32[9]")
add("cond_same_operand_twice", lambda p, x: lax.cond(p, lambda a, b: (a, b), lambda a, b: (b + 1, a), x, x), "pred[]", "f32[9]")
add("cond_constant_branches", lambda p, x: lax.cond(p, lambda x: jnp.zeros(9), lambda x: x, x), "pred[]", "f32[9]")
add("cond_nested", lambda p, x: lax.cond(p, lambda x: lax.cond(x.sum() > 0, jnp.exp, jnp.log1p, jnp.abs(x)), lambda x: x, x), "pred[]", "f32[9]")
add("cond_gradient", lambda p, x: jax.grad(lambda x: lax.cond(p, lambda x: (x ** 3).sum(), lambda x: x.sum(), x))(x), "pred[]", "f32[9]")
add("cond_no_outputs_used", lambda p, x: (lax.cond(p, lambda x: (x, x * 2), lambda x: (x * 3, x), x)[0],), "pred[]", "f32[9]")
add("switch", lambda i, x: lax.switch(i, [jnp.sin, lambda x: x * 2, lambda x: -x], x), "s32[]", "f32[9]")
add("switch_clamped", lambda x: (lax.switch(9, [jnp.sin, lambda x: x * 2], x), lax.switch(-3, [jnp.sin, lambda x: x * 2], x)), "f32[9]")
add("switch_in_loop", lambda x: lax.fori_loop(0, 6, lambda i, c: lax.switch(i % 3, [lambda c: c + 1, lambda c: c * 2, lambda c: c], c), x), "f32[9]")
add("vmap_cond", lambda p, x: jax.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))(p, x), "pred[5]", "f32[5,3]")
add("vmap_while", lambda n, x: jax.vmap(lambda n, x: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (0, x)))(n * 3, x), "s32[5]", "f32[5,3]")
add("scan_ema", lambda x: lax.scan(lambda c, v: (0.9 * c + 0.1 * v, c), jnp.zeros(3), x), "f32[11,3]")
add("scan_reverse", lambda x: lax.scan(lambda c, v: (c + v, c * v), jnp.zeros(3), x, reverse=True), "f32[11,3]")
add("scan_unrolled", lambda x: lax.scan(lambda c, v: (c * 0.5 + v, c), jnp.zeros(3), x, unroll=3), "f32[11,3]")
add("scan_no_steps", lambda x: lax.scan(lambda c, v: (c + v, c), jnp.ones(3), x), "f32[0,3]")
add("scan_gradient", jax.grad(lambda x: lax.scan(lambda c, v: (jnp.tanh(c + v), c), jnp.zeros(3), x)[0].sum()), "f32[7,3]")
add("scan_of_scan", lambda x: lax.scan(lambda c, r: lax.scan(lambda d, v: (d + jnp.sin(v), d), c, r), jnp.zeros(()), x), "f32[4,5]")
add("scan_cond_gradient", jax.grad(lambda x: lax.scan(lambda c, v: lax.cond(v.sum() > 0, lambda c: (c * v, c), lambda c: (c + v, v), c), jnp.ones(3), x)[0].sum()),
    "f32[7,3]")
add("scan_checkpoint_gradient", jax.grad(lambda x: lax.scan(jax.checkpoint(lambda c, v: (jnp.sin(c) * v, c)), jnp.ones(3), x)[0].sum()), "f32[7,3]")
add("associative_in_loop", lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.cumsum(c) / 2, x), "f32[9]")
add("fori_gradient", jax.grad(lambda x: lax.fori_loop(0, 4, lambda i, c: jnp.sin(c) * x, x).sum()), "f32[9]")
add("custom_root_bisect", lambda x: lax.fori_loop(0, 20, lambda i, c: (jnp.where((c[0] + c[1]) ** 3 / 8 < x, (c[0] + c[1]) / 2, c[0]),
                                                                       jnp.where((c[0] + c[1]) ** 3 / 8 < x, c[1], (c[0] + c[1]) / 2)),
                                                  (jnp.full_like(x, -3), jnp.full_like(x, 3))), "f32[9]")


def recurrent(cell, width):
    def run(x, w, u):
        return lax.scan(lambda h, v: cell(h, v, w, u), jnp.zeros((x.shape[1], width)), x)
    return run


def gru(h, v, w, u):
    z, r, n = jnp.split(v @ w, 3, -1)
    hz, hr, hn = jnp.split(h @ u, 3, -1)
    z, r = nn.sigmoid(z + hz), nn.sigmoid(r + hr)
    h = (1 - z) * jnp.tanh(n + r * hn) + z * h
    return h, h


add("gru", recurrent(gru, 4), "f32[5,2,3]", "f32[3,12]", "f32[4,12]")
add("gru_gradient", jax.grad(lambda *a: (recurrent(gru, 4)(*a)[1] ** 2).sum(), argnums=(0, 1, 2)), "f32[5,2,3]", "f32[3,12]", "f32[4,12]")


@case("f32[6,2,3]", "f32[3,16]", "f32[4,16]")
def lstm(x, w, u):
    def cell(state, v):
        h, c = state
        i, f, g, o = jnp.split(v @ w + h @ u, 4, -1)
        c = nn.sigmoid(f + 1) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    return lax.scan(cell, (jnp.zeros((2, 4)), jnp.zeros((2, 4))), x)


@case("f32[8,4]", "f32[8]", "f32[4]")
def train_skip_not_finite(x, y, w):
    """Three steps; an update whose gradients are not finite is skipped."""
    def step(i, state):
        w, skipped = state
        g = jax.grad(lambda w: ((x @ w - y) ** 2).mean() / jnp.where(i == 1, 0.0, 1.0))(w)
        return lax.cond(jnp.isfinite(g).all(), lambda w: (w - 0.1 * g, skipped), lambda w: (w, skipped + 1), w)
    return lax.fori_loop(0, 3, step, (w, 0))


@case("f32[8,4]", "f32[8]", "f32[4]")
def train_loss_scale(x, y, w):
    """Dynamic loss scaling in f16: halve the scale where gradients overflow, double it after two good steps."""
    def step(state, _):
        w, scale, good = state
        loss = lambda w: (((x.astype(jnp.float16) @ w.astype(jnp.float16)) - y.astype(jnp.float16)) ** 2).mean().astype(jnp.float32) * scale
        g = jax.grad(loss)(w) / scale
        ok = jnp.isfinite(g).all()
        w = jnp.where(ok, w - 0.01 * g, w)
        good = jnp.where(ok, good + 1, 0)
        scale = jnp.where(ok, jnp.where(good % 2 == 0, scale * 2, scale), scale / 2)
        return (w, scale, good), scale
    return lax.scan(step, (w, jnp.float32(2.0 ** 15), 0), None, length=5)


@case("f32[5,5]", "f32[5]")
def power_iteration(a, v):
    return lax.fori_loop(0, 12, lambda i, v: (a @ a.T @ v) / jnp.linalg.norm(a @ a.T @ v), v)


@case("f32[5,5]")
def cholesky_by_hand(a):
    a = a @ a.T + 5 * jnp.eye(5)
    def column(j, l):
        rest = a[:, j] - l @ l[j]
        return l.at[:, j].set(jnp.where(jnp.arange(5) >= j, rest / jnp.sqrt(rest[j]), 0))
    return lax.fori_loop(0, 5, column, jnp.zeros((5, 5)))


@case("f32[4,4]", "f32[4]")
def gauss_elimination(a, b):
    m = jnp.concatenate([a + 4 * jnp.eye(4), b[:, None]], 1)
    def eliminate(i, m):
        m = m.at[i].divide(m[i, i])
        return m - jnp.where(jnp.arange(4) == i, 0, m[:, i])[:, None] * m[i][None]
    return lax.fori_loop(0, 4, eliminate, m)[:, 4]


@case("f32[5,5]", "f32[5]")
def conjugate_gradient(a, b):
    a = a @ a.T + 2 * jnp.eye(5)
    def step(state):
        x, r, p, k = state
        alpha = (r @ r) / (p @ (a @ p))
        new = r - alpha * (a @ p)
        return x + alpha * p, new, new + (new @ new) / (r @ r) * p, k + 1
    x, _, _, k = lax.while_loop(lambda s: (s[1] @ s[1] > 1e-4) & (s[3] < 5), step, (jnp.zeros(5), b, b, 0))
    return x, k > 0


@case("f32[6,6]")
def jacobi_sweeps(a):
    return lax.fori_loop(0, 8, lambda i, u: jnp.pad((u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4, 1) * 0.9 + a * 0.1, a)


@case("s32[]", "s32[12]")
def sieve(n, x):
    return lax.fori_loop(2, 5, lambda i, s: jnp.where((jnp.arange(30) > i) & (jnp.arange(30) % i == 0), 0, s), jnp.ones(30, jnp.int32)) + n


@case("s32[8]")
def bubble_sort(x):
    def swap(j, a):
        low, high = jnp.minimum(a[j], a[j + 1]), jnp.maximum(a[j], a[j + 1])
        return a.at[j].set(low).at[j + 1].set(high)
    return lax.fori_loop(0, 8, lambda i, a: lax.fori_loop(0, 7, swap, a), x * 7 % 5 - jnp.arange(8))


@case("f32[9]")
def debug_print(x):
    jax.debug.print("sum {}", x.sum())
    return x * 2


@case("f32[4,6]", "s32[4]")
def beam_search(logits, start):
    """Greedy decoding of five tokens from a table."""
    def step(state, i):
        token, score = state
        row = nn.log_softmax(logits[token] + i)
        best = jnp.argmax(row, -1)
        return (best % 4, score + jnp.take_along_axis(row, best[:, None], 1)[:, 0]), best
    return lax.scan(step, (start, jnp.zeros(4)), jnp.arange(5.0))
