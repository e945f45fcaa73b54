"""A sparsely gated mixture of experts, with the sizes of Mixtral."""

import flax.linen
import jax
import jax.numpy as jnp

from graphs import f32, normal
from transformer import module_dataset


class _Experts(flax.linen.Module):
    """Top-k routing into experts of limited capacity by products with one-hot masks (Lepikhin et al., GShard, ICLR 2021,
    algorithm 1); the experts are SwiGLU blocks (Jiang et al., Mixtral of experts, 2024)."""

    experts: int
    chosen: int
    capacity: int
    inner: int

    @flax.linen.compact
    def __call__(self, x):
        tokens, width = x.shape
        logits = flax.linen.Dense(self.experts, use_bias=False, name="router")(x)
        weights, experts = jax.lax.top_k(jax.nn.softmax(logits), self.chosen)
        weights = weights / jnp.sum(weights, axis=-1, keepdims=True)
        # Choices in order of preference, then of tokens: [chosen * tokens, experts].
        choice = jax.nn.one_hot(experts.T.reshape(-1), self.experts, dtype=jnp.int32)
        place = jnp.sum(jnp.cumsum(choice, axis=0) * choice, axis=-1) - 1  # beyond the capacity: no row of one_hot, dropped
        slot = choice[..., None].astype(x.dtype) * jax.nn.one_hot(place, self.capacity, dtype=x.dtype)[:, None, :]
        slot = slot.reshape(self.chosen, tokens, self.experts, self.capacity)
        combine = jnp.einsum("kt,ktec->tec", weights.T, slot)
        inputs = jnp.einsum("ktec,tw->ecw", slot, x)

        def weight(name, *shape):
            return self.param(name, flax.linen.initializers.lecun_normal(batch_axis=(0,)), (self.experts, *shape))

        gate = jnp.einsum("ecw,ewi->eci", inputs, weight("gate_kernel", width, self.inner))
        up = jnp.einsum("ecw,ewi->eci", inputs, weight("up_kernel", width, self.inner))
        outputs = jnp.einsum("eci,eiw->ecw", flax.linen.silu(gate) * up, weight("down_kernel", self.inner, width))
        return jnp.einsum("tec,ecw->tw", combine, outputs)


def _moe(name, title, tokens, width, inner, experts, chosen, capacity, golden=False):
    return module_dataset(
        name,
        title,
        f"Mixture of {experts} experts, {chosen} a token: softmax router, top-k, cumulative sums for places, dispatch and "
        f"combination by one-hot masks, SwiGLU experts of capacity {capacity}; inference",
        "flax.linen modules put together as in Lepikhin et al., GShard, ICLR 2021, algorithm 1"
        + "; the sizes of Mixtral 8x7B" * (not golden),
        _Experts(experts, chosen, capacity, inner),
        {"x": f32(tokens, width)},
        {"x": normal()},
        {"tokens": tokens, "width": width, "inner": inner, "experts": experts, "chosen": chosen, "capacity": capacity},
        golden,
    )


def datasets():
    return [
        _moe("moe_layer", "Mixture of experts", 512, 4096, 14336, 8, 2, 160),
        _moe("moe_layer_tiny", "Small mixture of experts", 7, 6, 10, 3, 2, 5, golden=True),
    ]
