"""Attention, products, convolution and pooling."""

import jax
import jax.numpy as jnp
from jax import lax, nn

from cases import add, case


def attention(q, k, v, causal=False):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(jnp.array(q.shape[-1], q.dtype))
    if causal:
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
    return jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(scores), v)


for kind in ("f32", "f16", "bf16"):
    shapes = [f"{kind}[2,2,9,8]"] * 3
    add(f"attention_{kind}", attention, *shapes)
    add(f"attention_causal_{kind}", lambda q, k, v: attention(q, k, v, causal=True), *shapes)
    add(f"attention_gradient_{kind}", jax.grad(lambda q, k, v: attention(q, k, v).sum(), argnums=(0, 1, 2)), *shapes)
add("attention_library", lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True), *["f32[2,9,2,8]"] * 3)


@case("f32[2,16,8]", "f32[16,4]")
def rotary_embedding(x, angle):
    a, b = x[..., ::2], x[..., 1::2]
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([a * c - b * s, a * s + b * c], -1).reshape(x.shape)


@case("f32[2,7,16]", "f32[16,48]", "f32[16,16]", "f32[16,32]", "f32[32,16]")
def transformer_block(x, wqkv, wo, w1, w2):
    def norm(y):
        return (y - y.mean(-1, keepdims=True)) * lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
    q, k, v = (t.reshape(2, 7, 2, 8).transpose(0, 2, 1, 3) for t in jnp.split(norm(x) @ wqkv, 3, -1))
    x = x + attention(q, k, v, causal=True).transpose(0, 2, 1, 3).reshape(x.shape) @ wo
    return x + nn.gelu(norm(x) @ w1) @ w2


add("transformer_block_gradient", jax.grad(lambda *a: (transformer_block(*a) ** 2).mean(), argnums=(0, 1, 2, 3, 4)),
    "f32[2,7,16]", "f32[16,48]", "f32[16,16]", "f32[16,32]", "f32[32,16]")


@case("f32[1,2,12,4]", "f32[1,2,12,4]", "f32[1,2,12,4]")
def flash_attention(q, k, v):
    """Online softmax over blocks of keys."""
    def block(state, kv):
        top, total, out = state
        kb, vb = kv
        s = jnp.einsum("bhqd,bhkd->bhqk", q, kb)
        new = jnp.maximum(top, s.max(-1))
        p = jnp.exp(s - new[..., None])
        scale = jnp.exp(top - new)
        return (new, total * scale + p.sum(-1), out * scale[..., None] + jnp.einsum("bhqk,bhkd->bhqd", p, vb)), None
    blocks = [jnp.moveaxis(t.reshape(1, 2, 3, 4, 4), 2, 0) for t in (k, v)]
    first = (jnp.full(q.shape[:-1], -jnp.inf), jnp.zeros(q.shape[:-1]), jnp.zeros(q.shape))
    (_, total, out), _ = lax.scan(block, first, tuple(blocks))
    return out / total[..., None]


for kind in ("f32", "f16", "bf16", "f64"):
    add(f"matmul_bias_{kind}", lambda x, w, b: nn.relu(x @ w + b), f"{kind}[9,17]", f"{kind}[17,5]", f"{kind}[5]")
add("matmul_integers", lambda x, w: x @ w, "s32[6,9]", "s32[9,4]")
add("matmul_mixed", lambda x, w: lax.dot(x, w, preferred_element_type=jnp.float32), "bf16[6,9]", "bf16[9,4]")
add("matmul_batched_transposed", lambda x, w: jnp.einsum("abc,adc->bda", x, w), "f32[3,4,5]", "f32[3,6,5]")
add("outer_and_trace", lambda x, y: (jnp.outer(x, y), jnp.trace(jnp.outer(x, x)), jnp.vdot(x, x)), "f32[7]", "f32[5]")
add("kron", jnp.kron, "f32[3,4]", "f32[2,5]")
add("tensordot_no_contraction", lambda x, y: jnp.tensordot(x, y, axes=0), "f32[3,2]", "f32[2,2]")
add("matmul_empty_contraction", lambda x, y: x @ y, "f32[3,0]", "f32[0,2]")

NHWC = ("NHWC", "HWIO", "NHWC")
add("conv_same", lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC), "f32[2,7,6,3]", "f32[3,3,3,4]")
add("conv_strided_valid", lambda x, w: lax.conv_general_dilated(x, w, (2, 3), "VALID", dimension_numbers=NHWC), "f32[1,9,10,2]", "f32[3,2,2,4]")
add("conv_dilated", lambda x, w: lax.conv_general_dilated(x, w, (1, 1), [(2, 1), (0, 3)], (1, 2), (2, 1), dimension_numbers=NHWC), "f32[1,7,6,2]", "f32[3,2,2,3]")
add("conv_depthwise", lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=4), "f32[1,6,6,4]", "f32[3,3,1,8]")
add("conv_1d_causal", lambda x, w: lax.conv_general_dilated(x, w, (1,), [(2, 0)], dimension_numbers=("NCH", "OIH", "NCH")), "f32[2,3,11]", "f32[4,3,3]")
add("conv_3d", lambda x, w: lax.conv(x, w, (1, 1, 1), "SAME"), "f32[1,2,4,5,3]", "f32[3,2,2,2,2]")
add("conv_transposed", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NHWC), "f32[1,4,5,2]", "f32[3,3,2,3]")
add("conv_gradient", jax.grad(lambda x, w: (lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=NHWC) ** 2).sum(), argnums=(0, 1)),
    "f32[2,7,6,3]", "f32[3,3,3,4]")
add("conv_f16", lambda x, w: nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC)), "f16[1,5,5,3]", "f16[3,3,3,2]")


def pool(x, init, op, size=3, stride=2, padding="SAME"):
    return lax.reduce_window(x, init, op, (1, size, size, 1), (1, stride, stride, 1), padding)


add("max_pool", lambda x: pool(x, -jnp.inf, lax.max), "f32[2,7,8,3]")
add("max_pool_gradient", jax.grad(lambda x: (pool(x, -jnp.inf, lax.max) ** 2).sum()), "f32[1,7,8,2]")
add("min_pool_integers", lambda x: lax.reduce_window(x, jnp.array(127, x.dtype), lax.min, (2, 2), (1, 2), "VALID"), "s8[6,9]")
add("average_pool", lambda x: pool(x, 0.0, lax.add) / pool(jnp.ones_like(x), 0.0, lax.add), "f32[2,7,8,3]")
add("average_pool_gradient", jax.grad(lambda x: (pool(x, 0.0, lax.add, 2, 2, "VALID") ** 3).sum()), "f32[1,6,8,2]")
add("window_dilated", lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (2,), [(3, 2)], (2,), (2,)), "f32[17]")
add("window_multiply", lambda x: lax.reduce_window(x, 1.0, lax.mul, (2, 2), (1, 1), "SAME"), "f32[6,5]")
