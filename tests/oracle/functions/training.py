"""Optimizers by hand and whole training steps."""

import jax
import jax.numpy as jnp
from jax import lax, nn

from cases import add, case

SHAPES = ("f32[6,5]", "f32[6,5]", "f32[6,5]", "f32[6,5]")


def adam(w, g, m, v, decay=0.0, step=3):
    v = jnp.abs(v)
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    update = (m / (1 - 0.9 ** step)) / (jnp.sqrt(v / (1 - 0.999 ** step)) + 1e-8) + decay * w
    return w - 1e-3 * update, m, v


add("adam", adam, *SHAPES)
add("adamw", lambda *a: adam(*a, decay=0.01), *SHAPES)
add("adam_traced_step", lambda w, g, m, v, step: adam(w, g, m, v, step=step + 1), *SHAPES, "s32[]")


@case(*SHAPES)
def lamb(w, g, m, v):
    new, m, v = adam(w, g, m, v, 0.01)
    update = w - new
    wn, un = jnp.linalg.norm(w), jnp.linalg.norm(update)
    return w - jnp.where((wn > 0) & (un > 0), wn / un, 1.0) * update * 1e-2, m, v


@case("f32[6,5]", "f32[6,5]", "f32[6]", "f32[5]")
def adafactor(w, g, r, c):
    r = 0.9 * jnp.abs(r) + 0.1 * (g * g + 1e-30).mean(1)
    c = 0.9 * jnp.abs(c) + 0.1 * (g * g + 1e-30).mean(0)
    update = g * lax.rsqrt(r / r.mean())[:, None] * lax.rsqrt(c)[None]
    return w - 1e-2 * update / jnp.maximum(1.0, jnp.sqrt((update ** 2).mean())), r, c


add("momentum_nesterov", lambda w, g, m: (w - 0.1 * (g + 0.9 * (0.9 * m + g)), 0.9 * m + g), *SHAPES[:3])
add("rmsprop", lambda w, g, v: (w - 0.1 * g / (jnp.sqrt(0.9 * jnp.abs(v) + 0.1 * g * g) + 1e-6), 0.9 * v), *SHAPES[:3])
add("lion", lambda w, g, m: (w - 1e-3 * jnp.sign(0.9 * m + 0.1 * g), 0.99 * m + 0.01 * g), *SHAPES[:3])
add("clip_by_global_norm", lambda g, h: [x * jnp.minimum(1, 1 / jnp.sqrt((g ** 2).sum() + (h ** 2).sum())) for x in (g, h)], "f32[6,5]", "f32[9]")
add("ema_of_weights", lambda w, e, n: e + (w - e) * jnp.maximum(0.1, 1 / (n + 1.0)), "f32[9]", "f32[9]", "s32[]")
add("cosine_schedule", lambda n: 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(n, 10) / 10)), "s32[6]")
add("newton_schulz", lambda x: lax.fori_loop(0, 3, lambda i, x: 1.5 * x - 0.5 * x @ x.T @ x, x / jnp.linalg.norm(x)), "f32[5,7]")

MLP = ("f32[8,6]", "s32[8]", "f32[6,10]", "f32[10]", "f32[10,4]")


def loss(x, y, w1, b1, w2, act=jnp.tanh):
    return -jnp.take_along_axis(nn.log_softmax(act(x @ w1 + b1) @ w2), y[:, None], 1).mean()


add("mlp_gradient", jax.grad(loss, argnums=(2, 3, 4)), *MLP)
add("mlp_value_and_gradient", lambda *a: jax.value_and_grad(loss, argnums=2)(*a), *MLP)
add("mlp_checkpoint", jax.grad(jax.checkpoint(loss), argnums=(2, 3, 4)), *MLP)
add("mlp_sgd_loop", lambda x, y, w1, b1, w2: lax.fori_loop(0, 3, lambda i, p: tuple(a - 0.1 * b for a, b in zip(p, jax.grad(loss, (2, 3, 4))(x, y, *p))),
                                                           (w1, b1, w2)), *MLP)
add("mlp_adam_scan", lambda x, y, w1, b1, w2: lax.scan(lambda s, i: (adam(s[0], jax.grad(loss, 2)(x, y, s[0], b1, w2), s[1], s[2]), i), (w1, w1 * 0, w1 * 0),
                                                       jnp.arange(3))[0], *MLP)
add("mlp_hessian_vector", lambda x, y, w1, b1, w2: jax.jvp(lambda w: jax.grad(loss, 2)(x, y, w, b1, w2), (w1,), (w1,))[1], *MLP)
add("hessian", jax.hessian(lambda x: (jnp.sin(x) * x[::-1]).sum()), "f32[6]")
add("jacobian", jax.jacrev(lambda x: jnp.tanh(x) * x.sum()), "f32[6]")
add("jacobian_forward", jax.jacfwd(lambda x: nn.softmax(x)), "f32[6]")
add("per_example_gradient", lambda w, x: jax.vmap(jax.grad(lambda w, x: jnp.tanh(w @ x).sum()), (None, 0))(w, x), "f32[3,4]", "f32[5,4]")
add("maml_step", lambda w, x: jax.grad(lambda w: ((w - 0.1 * jax.grad(lambda w: jnp.tanh(x @ w).sum())(w)) ** 2).sum())(w), "f32[4]", "f32[3,4]")
add("mixed_precision_step", lambda w, x: w - 0.1 * jax.grad(lambda w: (nn.relu(x @ w.astype(jnp.bfloat16)) ** 2).mean().astype(jnp.float32))(w), "f32[6,4]",
    "bf16[8,6]")
add("checkpoint_f16", jax.grad(lambda x, w: jax.checkpoint(lambda x: jnp.tanh(jnp.sin(x @ w) * 1e-6))(x).sum()), "f16[5,6]", "f16[6,3]")
add("checkpoint_dots_saved", jax.grad(lambda x, w: jax.checkpoint(lambda x: nn.gelu(jnp.sin(x) @ w).sum(), policy=jax.checkpoint_policies.dots_saveable)(x)),
    "f32[5,6]", "f32[6,3]")
add("custom_gradient", jax.grad(lambda x: jax.lax.stop_gradient(x).sum() * (x * x).sum()), "f32[7]")


@jax.custom_vjp
def straight_through(x):
    return jnp.round(x)


straight_through.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (g,))
add("straight_through_gradient", jax.grad(lambda x: (straight_through(x * 3) ** 2).sum()), "f32[9]")


@case("f32[6,8]", "f32[8,3]", "f32[3,8,5]")
def mixture_of_experts(x, router, experts):
    weights, chosen = lax.top_k(nn.softmax(x @ router), 2)
    every = jnp.einsum("td,edf->tef", x, experts)
    return (jnp.take_along_axis(every, chosen[:, :, None], 1) * weights[:, :, None]).sum(1)


@case("f32[1,6,6,2]", "f32[3,3,2,2]", "f32[2]", "f32[2]")
def residual_block(x, w, g, b):
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = (y - y.mean((0, 1, 2))) * lax.rsqrt(y.var((0, 1, 2)) + 1e-5) * g + b
    return nn.relu(x + y)


@case("f32[6,4]", "f32[4]")
def dropout_fixed_key(x, b):
    keep = jax.random.bernoulli(jax.random.key(3), 0.8, x.shape)
    return jnp.where(keep, x / 0.8, 0) + b


@case("f32[4,5]", "f32[5,3]")
def linear_state_space(x, a):
    return lax.associative_scan(lambda p, q: p * 0.5 + q, x @ a)
