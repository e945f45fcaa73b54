"""Functions and modules that people write, at small shapes, for scripts/bench/functions: each is captured, planned and run under every planner.

JAX ones are rows of `jax_functions()`: name -> (function, arguments); torch ones of `torch_modules()`: name -> (module, arguments).
"""


def jax_functions():
    import functools

    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax, nn

    rng = np.random.default_rng(0)

    def f(*dims, dtype=np.float32):
        return jnp.asarray(rng.standard_normal(dims).astype(dtype))

    def ints(high, *dims):
        return jnp.asarray(rng.integers(0, high, dims).astype(np.int32))

    def c(*dims):
        return f(*dims) + 1j * f(*dims)

    rows = {}

    def row(name, function, *arguments):
        rows[name] = (function, arguments)

    # forward and training
    def mlp(params, x):
        for w, b in params[:-1]:
            x = nn.gelu(x @ w + b)
        return x @ params[-1][0] + params[-1][1]

    params = [(f(12, 20) / 3, f(20)), (f(20, 20) / 4, f(20)), (f(20, 5) / 4, f(5))]

    def cross_entropy(params, x, labels):
        return -jnp.mean(jnp.take_along_axis(nn.log_softmax(mlp(params, x)), labels[:, None], 1))

    def adam(params, m, v, x, labels, t):
        grads = jax.grad(cross_entropy)(params, x, labels)
        m = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, m, grads)
        v = jax.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, v, grads)
        new = jax.tree.map(
            lambda p, a, b: p - 1e-3 * (a / (1 - 0.9**t)) / (jnp.sqrt(b / (1 - 0.999**t)) + 1e-8), params, m, v)
        return new, m, v

    zeros = jax.tree.map(jnp.zeros_like, params)
    row("mlp_forward", mlp, params, f(8, 12))
    row("mlp_training_step", adam, params, zeros, zeros, f(8, 12), ints(5, 8), jnp.float32(3))

    def lion(p, m, x, y):
        g = jax.grad(lambda p: jnp.mean((jnp.tanh(x @ p) - y) ** 2))(p)
        update = jnp.sign(0.9 * m + 0.1 * g)
        return p - 1e-3 * (update + 0.1 * p), 0.99 * m + 0.01 * g

    row("lion_step", lion, f(10, 6), f(10, 6), f(7, 10), f(7, 6))

    def lamb(p, m, v, g):
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        r = m / (jnp.sqrt(v) + 1e-6) + 0.01 * p
        return p - 0.1 * jnp.linalg.norm(p) / (jnp.linalg.norm(r) + 1e-6) * r, m, v

    row("lamb_step", lamb, f(9, 14), f(9, 14), jnp.abs(f(9, 14)), f(9, 14))

    def newton_schulz(g):
        x = g / (jnp.linalg.norm(g) + 1e-7)
        for a, b, c_ in 3 * [(3.4445, -4.7750, 2.0315)]:
            s = x @ x.T
            x = a * x + (b * s + c_ * s @ s) @ x
        return x

    row("muon_orthogonalise", newton_schulz, f(6, 10))

    # attention
    def attention(q, k, v, mask=None):
        s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
        if mask is not None:
            s = jnp.where(mask, s, -1e9)
        return jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(s), v)

    q, k, v = f(2, 4, 9, 8), f(2, 4, 9, 8), f(2, 4, 9, 8)
    causal = jnp.tril(jnp.ones((9, 9), bool))
    row("attention_causal", lambda q, k, v: attention(q, k, v, causal), q, k, v)
    row("attention_causal_gradient", jax.grad(lambda q, k, v: attention(q, k, v, causal).sum(), (0, 1, 2)), q, k, v)

    def grouped(q, k, v):
        return attention(q, jnp.repeat(k, 2, 1), jnp.repeat(v, 2, 1))

    row("attention_grouped_query", grouped, q, k[:, :2], v[:, :2])

    def alibi(q, k, v):
        s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
        at = jnp.arange(9)
        slopes = 2.0 ** -jnp.arange(1, 5)
        s = s - slopes[:, None, None] * jnp.abs(at[:, None] - at[None])
        return jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(jnp.tanh(s / 5) * 5), v)

    row("attention_alibi_softcap", alibi, q, k, v)

    def rotary(x):
        half = x.shape[-1] // 2
        angle = jnp.arange(x.shape[-2])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)

    row("rotary", rotary, q)
    row("rotary_complex", lambda x: lax.complex(*(
        lambda z: (z.real, z.imag))(lax.complex(x[..., ::2], x[..., 1::2]) * jnp.exp(1j * jnp.arange(9.0))[:, None])).real, q)

    def decode(cache, key, position, query):
        cache = lax.dynamic_update_slice(cache, key[None], (position, 0))
        s = cache @ query
        s = jnp.where(jnp.arange(cache.shape[0]) <= position, s, -jnp.inf)
        return nn.softmax(s) @ cache, cache

    row("decode_step", decode, f(16, 8), f(8), jnp.int32(5), f(8))

    def linear_attention(q, k, v):
        q, k = nn.elu(q) + 1, nn.elu(k) + 1
        kv = jnp.cumsum(k[..., :, None] * v[..., None, :], -3)
        norm = jnp.einsum("bhtd,bhtd->bht", q, jnp.cumsum(k, -2))
        return jnp.einsum("bhtd,bhtde->bhte", q, kv) / (norm[..., None] + 1e-6)

    row("attention_linear_causal", linear_attention, q[:1], k[:1], v[:1])

    def flash(q, k, v):
        def step(carry, block):
            m, l, o = carry
            kb, vb = block
            s = q @ kb.T
            new = jnp.maximum(m, s.max(-1))
            p = jnp.exp(s - new[:, None])
            scale = jnp.exp(m - new)
            return (new, l * scale + p.sum(-1), o * scale[:, None] + p @ vb), None

        start = (jnp.full(q.shape[0], -jnp.inf), jnp.zeros(q.shape[0]), jnp.zeros_like(q))
        (m, l, o), _ = lax.scan(step, start, (k.reshape(4, -1, 8), v.reshape(4, -1, 8)))
        return o / l[:, None]

    row("attention_online_softmax_scan", flash, f(7, 8), f(12, 8), f(12, 8))

    # scans
    def gru(h, x, w, u):
        def step(h, x):
            zr = nn.sigmoid(x @ w[:, :16] + h @ u[:, :16])
            z, r = zr[:, :8], zr[:, 8:]
            n = jnp.tanh(x @ w[:, 16:] + (r * h) @ u[:, 16:])
            h = (1 - z) * h + z * n
            return h, h

        return lax.scan(step, h, x)

    gru_arguments = f(3, 8), f(6, 3, 5), f(5, 24) / 2, f(8, 24) / 3
    row("gru_scan", gru, *gru_arguments)
    row("gru_scan_gradient", jax.grad(lambda *a: gru(*a)[1].sum(), (2, 3)), *gru_arguments)

    def lstm(x, w, u):
        def step(state, x):
            h, c_ = state
            i, g, o, fg = jnp.split(x @ w + h @ u, 4, -1)
            c_ = nn.sigmoid(fg) * c_ + nn.sigmoid(i) * jnp.tanh(g)
            h = nn.sigmoid(o) * jnp.tanh(c_)
            return (h, c_), h

        return lax.scan(step, (jnp.zeros((3, 6)), jnp.zeros((3, 6))), x)[1]

    row("lstm_scan", lstm, f(5, 3, 4), f(4, 24) / 2, f(6, 24) / 2)

    def recurrence(a, b):
        return lax.associative_scan(lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1]), (a, b), axis=0)[1]

    gates = nn.sigmoid(f(24, 6)), f(24, 6)
    row("linear_recurrence", recurrence, *gates)
    row("linear_recurrence_gradient", jax.grad(lambda a, b: (recurrence(a, b) ** 2).sum(), (0, 1)), *gates)

    def selective(x, delta, b, c_, a):
        decay = jnp.exp(delta[..., None] * -jnp.exp(a))
        h = recurrence(decay, (delta * x)[..., None] * b[:, None])
        return (h * c_[:, None]).sum(-1)

    row("selective_state_space", selective, f(10, 4), nn.softplus(f(10, 4)), f(10, 3), f(10, 3), f(4, 3))
    row("fori_power_iteration", lambda a, x: lax.fori_loop(
        0, 8, lambda _, x: (a @ x) / jnp.linalg.norm(a @ x), x), f(7, 7), f(7))
    row("while_newton", lambda x: lax.while_loop(
        lambda s: jnp.abs(s * s - x * x).max() > 1e-3, lambda s: (s + x * x / s) / 2, x * x + 1), f(6))
    row("cond_branch", lambda p, x: lax.cond(p > 0, lambda x: jnp.sin(x).sum(0), lambda x: x.max(0), x), jnp.int32(1), f(5, 7))
    row("logcumsumexp", lambda x: lax.associative_scan(jnp.logaddexp, x), f(20))

    # mixtures of experts
    def moe(x, gate, w1, w2):
        weights, chosen = lax.top_k(nn.softmax(x @ gate), 2)
        one_hot = nn.one_hot(chosen, gate.shape[1])
        h = nn.silu(jnp.einsum("td,edf->tef", x, w1))
        y = jnp.einsum("tef,efd->ted", h, w2)
        return jnp.einsum("tk,tke,ted->td", weights, one_hot, y)

    experts = f(10, 6), f(6, 4), f(4, 6, 8) / 2, f(4, 8, 6) / 3
    row("mixture_top2", moe, *experts)
    row("mixture_top2_gradient", jax.grad(lambda *a: moe(*a).sum(), (1, 2, 3)), *experts)

    def capacity(x, gate, w):
        score = nn.softmax(x @ gate)
        expert = jnp.argmax(score, -1)
        hot = nn.one_hot(expert, 4)
        place = (jnp.cumsum(hot, 0) * hot).sum(-1).astype(jnp.int32) - 1
        room = jnp.zeros((4, 3, 6)).at[expert, place].set(x, mode="drop")
        out = jnp.einsum("ecd,edf->ecf", room, w)
        return out.at[expert, place].get(mode="fill", fill_value=0) * score.max(-1)[:, None]

    row("mixture_switch_capacity", capacity, f(10, 6), f(6, 4), f(4, 6, 6))

    # quantised
    def int8_linear(x, w):
        xs, ws = jnp.abs(x).max(-1, keepdims=True) / 127, jnp.abs(w).max(0) / 127
        xq, wq = jnp.round(x / xs).astype(jnp.int8), jnp.round(w / ws).astype(jnp.int8)
        return lax.dot(xq, wq, preferred_element_type=jnp.int32).astype(jnp.float32) * xs * ws

    row("int8_linear", int8_linear, f(5, 12), f(12, 7))
    row("fp8_linear", lambda x, w: (x.astype(jnp.float8_e4m3fn) * jnp.float8_e4m3fn(1)).astype(jnp.float32) @ w.astype(
        jnp.float8_e5m2).astype(jnp.float32), f(5, 12), f(12, 7))
    row("int4_groups", lambda x, q, s: x @ ((q.astype(jnp.int4).astype(jnp.float32)).reshape(3, 4, 7) * s[:, None]).reshape(12, 7),
        f(5, 12), ints(7, 12, 7), f(3, 7))
    row("fake_quantise_gradient", jax.grad(lambda x: (
        x + lax.stop_gradient(jnp.round(jnp.clip(x * 4, -8, 7)) / 4 - x)).sum()), f(6, 9))
    row("bf16_block", lambda x, w: nn.softmax((x @ w).astype(jnp.float32)).astype(jnp.bfloat16),
        f(6, 8).astype(jnp.bfloat16), f(8, 8).astype(jnp.bfloat16))

    # normalisations
    def batch_norm(x, g, b):
        m, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - m) * lax.rsqrt(var + 1e-5) * g + b

    row("batch_norm_gradient", jax.grad(lambda *a: (batch_norm(*a) ** 3).sum(), (0, 1, 2)), f(3, 4, 4, 6), f(6), f(6))
    row("group_norm", lambda x: ((y := x.reshape(2, 5, 3, 4)) - y.mean((1, 3), keepdims=True)) / jnp.sqrt(
        y.var((1, 3), keepdims=True) + 1e-5), f(2, 5, 12))
    row("rms_norm_gradient", jax.grad(lambda x, g: (x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g).sum(), (0, 1)), f(7, 12), f(12))
    row("weight_norm", lambda v, g, x: x @ (g * v / jnp.linalg.norm(v, axis=0)), f(6, 5), f(5), f(4, 6))

    # convolutions
    def conv(x, w, **options):
        return lax.conv_general_dilated(x, w, options.pop("strides", (1, 1)), options.pop("padding", "SAME"),
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)

    row("residual_block", lambda x, a, b: nn.relu(x + conv(nn.relu(conv(x, a)), b)), f(1, 6, 6, 4), f(3, 3, 4, 4), f(3, 3, 4, 4))
    row("residual_block_gradient", jax.grad(lambda x, a, b: nn.relu(
        x + conv(nn.relu(conv(x, a)), b)).sum(), (1, 2)), f(1, 6, 6, 4), f(3, 3, 4, 4), f(3, 3, 4, 4))
    row("depthwise_separable", lambda x, a, b: conv(nn.silu(conv(x, a, feature_group_count=4)), b), f(1, 6, 6, 4), f(3, 3, 1, 4), f(1, 1, 4, 6))
    row("transposed_convolution", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), f(1, 4, 4, 3), f(3, 3, 3, 2))
    row("dilated_causal_convolution", lambda x, w: lax.conv_general_dilated(
        x, w, (1,), [(4, 0)], rhs_dilation=(2,), dimension_numbers=("NWC", "WIO", "NWC")), f(2, 10, 3), f(3, 3, 4))
    row("max_pool_gradient", jax.grad(lambda x: (lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2).sum()), f(1, 6, 6, 3))
    row("average_pool", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9, f(1, 6, 6, 3))
    row("bilinear_resize", lambda x: jax.image.resize(x, (1, 9, 9, 3), "bilinear"), f(1, 6, 6, 3))

    # Fourier transforms and complex numbers
    row("fft_convolution", lambda x, w: jnp.fft.irfft(jnp.fft.rfft(x, 32) * jnp.fft.rfft(w, 32), 32)[..., :16], f(3, 16), f(3, 16))
    row("fft_convolution_gradient", jax.grad(lambda x, w: (jnp.fft.irfft(
        jnp.fft.rfft(x, 32) * jnp.fft.rfft(w, 32), 32)[..., :16] ** 2).sum(), (0, 1)), f(3, 16), f(3, 16))
    row("fnet_mixing", lambda x: jnp.fft.fft2(x).real, f(2, 10, 6))
    row("spectrogram", lambda x: jnp.log1p(jnp.abs(jnp.fft.rfft(x.reshape(5, 12) * jnp.hanning(12))) ** 2), f(60))
    row("fourier_neural_operator", lambda x, w: jnp.fft.irfftn(
        jnp.einsum("bxyi,xyio->bxyo", jnp.fft.rfftn(x, axes=(1, 2)), w), axes=(1, 2)), f(2, 6, 8, 3), c(6, 5, 3, 3))
    row("complex_diagonal_recurrence", lambda a, x: recurrence(
        jnp.exp(-jnp.exp(a.real) + 1j * a.imag) * jnp.ones((8, 5)), x + 0j).real, c(5), f(8, 5))
    row("complex_functions", lambda x, y: [g(x) for g in (jnp.exp, jnp.log, jnp.sqrt, jnp.sin, jnp.cos, jnp.tanh, jnp.tan, jnp.conj, jnp.abs, jnp.angle)]
        + [x * y, x / y, x + y, x - y, x == y, x**2, x**y, jnp.sum(x), x @ y.T], c(4, 6), c(4, 6))
    row("complex_parameters_and_results", lambda z, w: (z.T @ w, jnp.cumsum(z, 0), jnp.prod(z, 1), z.at[1].add(w[0])), c(4, 6), c(4, 6))

    # sorting, choosing, indices
    row("sort_rows", lambda x: jnp.sort(x, -1), f(5, 13))
    row("argsort_pairs", lambda x: (jnp.argsort(x), jnp.take(x, jnp.argsort(x))), f(17))
    row("top_k", lambda x: lax.top_k(x, 3), f(4, 11))
    row("top_p_filter", lambda x: jnp.where(
        jnp.cumsum(nn.softmax(s := -jnp.sort(-x)), -1) < 0.9, s, -jnp.inf), f(3, 12))
    row("median_and_quantile", lambda x: (jnp.median(x, 1), jnp.quantile(x, 0.3, axis=0)), f(5, 9))
    row("cumulative_ops", lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), lax.cummin(x, 0, reverse=True)), f(6, 20))
    row("scatter_add_embedding_gradient", jax.grad(lambda e, i: (e[i] ** 2).sum()), f(9, 6), ints(9, 14))
    row("scatter_max_min", lambda x, i, u: (x.at[i].max(u), x.at[i].min(u), x.at[i].multiply(u)), f(8), ints(8, 5), f(5))
    row("segment_softmax", lambda x, s: (e := jnp.exp(x - jax.ops.segment_max(x, s, 4)[s])) / jax.ops.segment_sum(e, s, 4)[s], f(15), ints(4, 15))
    row("gather_windows", lambda x, i: x[i[:, None] + jnp.arange(3)], f(20), ints(17, 6))
    row("histogram", lambda x: jnp.histogram(x, 8, (-2, 2))[0], f(40))
    row("searchsorted", lambda a, x: jnp.searchsorted(jnp.sort(a), x), f(15), f(7))
    row("graph_convolution", lambda x, s, d, w: jax.ops.segment_sum((x @ w)[s], d, 7) / (1 + jax.ops.segment_sum(jnp.ones(12), d, 7))[:, None],
        f(7, 5), ints(7, 12), ints(7, 12), f(5, 4))

    # losses
    row("contrastive_loss_gradient", jax.grad(lambda a, b: -jnp.diag(nn.log_softmax(
        (a / jnp.linalg.norm(a, axis=-1, keepdims=True)) @ (b / jnp.linalg.norm(b, axis=-1, keepdims=True)).T * 10)).mean(), (0, 1)), f(6, 8), f(6, 8))
    row("huber_and_focal", lambda x, y: (jnp.where(jnp.abs(x - y) < 1, 0.5 * (x - y) ** 2, jnp.abs(x - y) - 0.5).mean(),
                                         (-((1 - nn.sigmoid(x)) ** 2) * nn.log_sigmoid(x)).sum()), f(5, 7), f(5, 7))
    row("kl_of_gaussians", lambda m, s: (-0.5 * (1 + s - m**2 - jnp.exp(s))).sum(-1).mean(), f(6, 9), f(6, 9))

    def ctc_like(logits, labels):
        logp = nn.log_softmax(logits)

        def step(alpha, lp):
            moved = jnp.concatenate([jnp.full(1, -1e30), alpha[:-1]])
            return jnp.logaddexp(alpha, moved) + lp[labels], None

        start = jnp.full(labels.shape, -1e30).at[0].set(logp[0, labels[0]])
        return -lax.scan(step, start, logp[1:])[0][-1]

    row("ctc_like_gradient", jax.grad(ctc_like), f(9, 6), ints(6, 4))
    row("hessian_vector", lambda x, v: jax.jvp(jax.grad(lambda x: (jnp.tanh(x) ** 2 * x).sum()), (x,), (v,))[1], f(11), f(11))
    row("vmapped_quadratic", jax.vmap(lambda a, x: x @ a @ x), f(4, 5, 5), f(4, 5))
    row("dropout_and_normal", lambda x: x * jax.random.bernoulli(jax.random.PRNGKey(0), 0.8, x.shape) + jax.random.normal(jax.random.PRNGKey(1), x.shape), f(4, 9))
    row("special_functions", lambda x: (jax.scipy.special.erf(x), jax.scipy.special.gammaln(jnp.abs(x) + 1), jax.scipy.special.logsumexp(x, 1),
                                        jax.scipy.special.i0(x), jax.scipy.special.digamma(jnp.abs(x) + 1)), f(4, 6))
    row("cholesky_solve", lambda a, b: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a @ a.T + 5 * jnp.eye(6)), True), b), f(6, 6), f(6, 2))
    row("toroidal_stencil", lambda x: functools.reduce(
        lambda x, _: x + 0.1 * (sum(jnp.roll(x, s, a) for s in (-1, 1) for a in (0, 1)) - 4 * x), range(3), x), f(9, 11))
    return rows


def torch_modules():
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Block(nn.Module):
        """Of a transformer: pre-normalised, gated."""

        def __init__(self, width=16, heads=4):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)

        def forward(self, x):
            b, t, w = x.shape
            q, k, v = (y.reshape(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
            a, g = self.up(self.norm2(x)).chunk(2, -1)
            return x + self.down(a * nn.functional.silu(g))

    class Recurrent(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.cell, self.head = kind(5, 7, batch_first=True), nn.Linear(7, 3)

        def forward(self, x):
            return self.head(self.cell(x)[0][:, -1])

    class Gated(nn.Module):
        """A mixture of experts, dense."""

        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(6, 3)
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 6)) for _ in range(3))

        def forward(self, x):
            weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
            dense = torch.zeros_like(self.gate(x)).scatter(-1, chosen, weights)
            return sum(dense[:, i : i + 1] * e(x) for i, e in enumerate(self.experts))

    class Of(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, *x):
            return self.function(*x)

    r = torch.randn
    return {
        "torch_mlp": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3)), (r(5, 8),)),
        "torch_transformer_block": (Block(), (r(2, 6, 16),)),
        "torch_encoder_layer": (nn.TransformerEncoderLayer(16, 2, 24, batch_first=True), (r(2, 5, 16),)),
        "torch_lstm": (Recurrent(nn.LSTM), (r(2, 4, 5),)),
        "torch_gru": (Recurrent(nn.GRU), (r(2, 4, 5),)),
        "torch_convolutions": (nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 4, 3, stride=2),
                                             nn.AdaptiveAvgPool2d(1), nn.Flatten()), (r(2, 3, 10, 10),)),
        "torch_group_norm": (nn.Sequential(nn.GroupNorm(2, 6), nn.SiLU()), (r(2, 6, 7),)),
        "torch_mixture": (Gated(), (r(7, 6),)),
        "torch_embedding_bag": (nn.Sequential(nn.Embedding(11, 6), nn.LayerNorm(6)), (torch.randint(0, 11, (3, 4)),)),
        "torch_cumulative": (Of(lambda x: (x.cumsum(1), x.sort(-1)[0], x.logsumexp(1))), (r(4, 9),)),
        "torch_scatter_gather": (Of(lambda x, i: (x.gather(1, i), x.scatter_add(1, i, x))), (r(4, 9), torch.randint(0, 9, (4, 9)))),
        "torch_losses": (Of(lambda x, y: (nn.functional.smooth_l1_loss(x, y), nn.functional.kl_div(
            x.log_softmax(-1), y.softmax(-1), reduction="batchmean"))), (r(5, 7), r(5, 7))),
        "torch_upsample": (nn.Upsample(scale_factor=2, mode="bilinear"), (r(1, 3, 5, 5),)),
    }
