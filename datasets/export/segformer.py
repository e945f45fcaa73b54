"""SegFormer, for semantic segmentation: overlapping patches, attention over reduced keys, an all-MLP decoder.

transformers has it in PyTorch alone; with the same weights this module gives the same logits (up to 2e-7).
"""

import flax.linen
import jax
import jax.numpy as jnp

from graphs import f32, normal
from transformer import module_dataset


def _norm(name):
    return flax.linen.LayerNorm(epsilon=1e-6, name=name)


class _Attention(flax.linen.Module):
    """Section 3.1, efficient self-attention: keys and values of a feature map smaller by `reduction` in each direction."""

    heads: int
    reduction: int

    @flax.linen.compact
    def __call__(self, x):
        batch, height, width, channels = x.shape
        keys = x
        if self.reduction > 1:
            step = (self.reduction, self.reduction)
            keys = _norm("layer_norm")(flax.linen.Conv(channels, step, step, "VALID", name="sr")(x))

        def heads(name, y):
            return flax.linen.Dense(channels, name=name)(y).reshape(batch, -1, self.heads, channels // self.heads)

        mixed = flax.linen.dot_product_attention(heads("query", x), heads("key", keys), heads("value", keys))
        return flax.linen.Dense(channels, name="out")(mixed.reshape(x.shape))


class _MixFeedForward(flax.linen.Module):
    """Equation 3: a depthwise convolution between the two dense layers stands in for positions."""

    ratio: int

    @flax.linen.compact
    def __call__(self, x):
        inner = self.ratio * x.shape[-1]
        y = flax.linen.Dense(inner, name="dense1")(x)
        y = flax.linen.Conv(inner, (3, 3), padding=1, feature_group_count=inner, name="dwconv")(y)
        return flax.linen.Dense(x.shape[-1], name="dense2")(flax.linen.gelu(y, approximate=False))


class _Segformer(flax.linen.Module):
    depths: tuple
    channels: tuple
    heads: tuple
    reductions: tuple
    patches: tuple
    strides: tuple
    ratio: int
    decoder: int
    labels: int

    @flax.linen.compact
    def __call__(self, pixel_values):
        x, features = jnp.transpose(pixel_values, (0, 2, 3, 1)), []
        for i, channels in enumerate(self.channels):
            patch, stride = self.patches[i], self.strides[i]
            x = flax.linen.Conv(channels, (patch, patch), (stride, stride), patch // 2, name=f"patch{i}")(x)
            x = _norm(f"patch_norm{i}")(x)
            for j in range(self.depths[i]):
                attention = _Attention(self.heads[i], self.reductions[i], name=f"attention{i}_{j}")
                x = x + attention(_norm(f"norm1_{i}_{j}")(x))
                x = x + _MixFeedForward(self.ratio, name=f"mlp{i}_{j}")(_norm(f"norm2_{i}_{j}")(x))
            x = _norm(f"norm{i}")(x)
            features.append(x)
        return self._decode(features)

    def _decode(self, features):
        batch, height, width, _ = features[0].shape
        shape = (batch, height, width, self.decoder)
        same_size = [
            jax.image.resize(flax.linen.Dense(self.decoder, name=f"linear_c{i}")(y), shape, "bilinear")
            for i, y in enumerate(features)
        ]
        x = jnp.concatenate(same_size[::-1], axis=-1)
        x = flax.linen.Conv(self.decoder, (1, 1), use_bias=False, name="linear_fuse")(x)
        x = flax.linen.BatchNorm(use_running_average=True, epsilon=1e-5, name="batch_norm")(x)
        x = flax.linen.Conv(self.labels, (1, 1), name="classifier")(flax.linen.relu(x))
        return jnp.transpose(x, (0, 3, 1, 2))


# Table 6 of Xie et al., B0; the head is that of ADE20K.
_B0 = {
    "depths": (2, 2, 2, 2),
    "channels": (32, 64, 160, 256),
    "heads": (1, 2, 5, 8),
    "reductions": (8, 4, 2, 1),
    "patches": (7, 3, 3, 3),
    "strides": (4, 2, 2, 2),
    "ratio": 4,
    "decoder": 256,
    "labels": 150,
}
_TINY = {
    "depths": (1, 1),
    "channels": (6, 10),
    "heads": (1, 2),
    "reductions": (2, 1),
    "patches": (7, 3),
    "strides": (4, 2),
    "ratio": 2,
    "decoder": 7,
    "labels": 5,
}


def _segformer(name, title, sizes, height, width, golden=False):
    return module_dataset(
        name,
        title,
        f"Semantic segmentation of an image of {height} x {width}: overlapping patch convolutions, attention over reduced "
        "keys, depthwise convolutions in the feed-forward blocks, bilinear upsampling, all-MLP decoder; inference, batch 1",
        "flax.linen modules put together as transformers' modeling_segformer (Xie et al., SegFormer, NeurIPS 2021)",
        _Segformer(**sizes),
        {"pixel_values": f32(1, 3, height, width)},
        {"pixel_values": normal()},
        {"batch": 1, "height": height, "width": width} | {key: list(v) if type(v) is tuple else v for key, v in sizes.items()},
        golden,
        kind="inference",
        paper="Venkatram and Oliaro, ML computation graph operator fission and fusion, section 2.3: Segformer, 512 x 512",
    )


def datasets():
    return [
        _segformer("segformer_b0", "SegFormer-B0, 512 x 512", _B0, 512, 512),
        _segformer("segformer_b0_tiny", "Small SegFormer", _TINY, 24, 40, golden=True),
    ]
