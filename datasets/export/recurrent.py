"""CRNN, for text in images: its recurrent cells are unrolled."""

import flax.linen
import jax.numpy as jnp

from graphs import f32, normal
from transformer import module_dataset


class _Crnn(flax.linen.Module):
    """Shi et al., CRNN, 2015, Table 1: convolutions, two bidirectional LSTM layers over the columns, a softmax."""

    channels: tuple
    hidden: int
    classes: int
    dtype: jnp.dtype = jnp.float32

    @flax.linen.compact
    def __call__(self, image):
        x = image
        for i, channels in enumerate(self.channels):
            x = flax.linen.Conv(channels, (3, 3), dtype=self.dtype, name=f"conv{i}")(x)
            if i >= 2 and i % 2 == 0:
                x = flax.linen.BatchNorm(use_running_average=True, dtype=self.dtype, name=f"norm{i}")(x)
            x = flax.linen.relu(x)
            if i < 2:
                x = flax.linen.max_pool(x, (2, 2), (2, 2))
            elif i % 2 == 1:
                x = flax.linen.max_pool(x, (2, 1), (2, 1))
        columns = jnp.max(x, axis=1)  # [batch, width, channels]
        for i in range(2):
            forward = self._lstm(columns, f"forward{i}", range(columns.shape[1]))
            backward = self._lstm(columns, f"backward{i}", range(columns.shape[1] - 1, -1, -1))
            columns = jnp.concatenate([forward, backward], axis=-1)
        logits = flax.linen.Dense(self.classes, dtype=self.dtype, name="head")(columns)
        return flax.linen.log_softmax(logits.astype(jnp.float32))

    def _lstm(self, columns, name, order):
        cell = flax.linen.OptimizedLSTMCell(self.hidden, dtype=self.dtype, name=name)
        zero = jnp.zeros((columns.shape[0], self.hidden), columns.dtype)
        carry, outputs = (zero, zero), {}
        for t in order:
            carry, outputs[t] = cell(carry, columns[:, t])
        return jnp.stack([outputs[t] for t in sorted(outputs)], axis=1)


def _crnn(name, title, height, width, channels, hidden, classes, dtype=jnp.float32, golden=False):
    return module_dataset(
        name,
        title,
        "Convolutions with batch norm and pooling, two bidirectional LSTM layers unrolled over the columns of the image, "
        "log-softmax over the characters; inference, batch 1",
        "flax.linen modules put together as in Shi et al., An end-to-end trainable neural network for image-based sequence "
        "recognition, 2015, Table 1",
        _Crnn(channels, hidden, classes, dtype),
        {"image": f32(1, height, width, 1)},
        {"image": normal()},
        {"batch": 1, "height": height, "width": width, "channels": list(channels), "hidden": hidden, "classes": classes},
        golden,
        dtype=dtype,
        kind="inference",
        paper="AStitch (ASPLOS 2022), Table 2: CRNN, inference, batch 1",
    )


def datasets():
    shi = 32, 100, (64, 128, 256, 256, 512, 512), 256, 37
    tiny = 8, 12, (3, 4, 5), 6, 7
    return [
        _crnn("crnn", "CRNN", *shi),
        _crnn("crnn_tiny", "Small CRNN", *tiny, golden=True),
        _crnn("crnn_fp16", "CRNN, mixed precision", *shi, jnp.float16),
        _crnn("crnn_fp16_tiny", "Small CRNN, mixed precision", *tiny, jnp.float16, golden=True),
    ]
