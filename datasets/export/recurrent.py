"""Models with unrolled recurrent cells: CRNN for text in images, and DIEN's interest evolution."""

import flax.linen
import jax
import jax.numpy as jnp

from graphs import f32, normal
from transformer import module_dataset


class _Crnn(flax.linen.Module):
    """Shi et al., CRNN, 2015, Table 1: convolutions, two bidirectional LSTM layers over the columns, a softmax."""

    channels: tuple
    hidden: int
    classes: int

    @flax.linen.compact
    def __call__(self, image):
        x = image
        for i, channels in enumerate(self.channels):
            x = flax.linen.Conv(channels, (3, 3), name=f"conv{i}")(x)
            if i >= 2 and i % 2 == 0:
                x = flax.linen.BatchNorm(use_running_average=True, name=f"norm{i}")(x)
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
        return flax.linen.log_softmax(flax.linen.Dense(self.classes, name="head")(columns))

    def _lstm(self, columns, name, order):
        cell = flax.linen.OptimizedLSTMCell(self.hidden, name=name)
        zero = jnp.zeros((columns.shape[0], self.hidden), columns.dtype)
        carry, outputs = (zero, zero), {}
        for t in order:
            carry, outputs[t] = cell(carry, columns[:, t])
        return jnp.stack([outputs[t] for t in sorted(outputs)], axis=1)


class _Dien(flax.linen.Module):
    """Zhou et al., DIEN, AAAI 2019, section 4.3: a GRU, attention to the target item, and a GRU whose update gate the
    attention scales (AUGRU)."""

    hidden: int

    @flax.linen.compact
    def __call__(self, behaviours, target):
        steps = behaviours.shape[1]
        extractor = flax.linen.GRUCell(self.hidden, name="extractor")
        zero = jnp.zeros((behaviours.shape[0], self.hidden), behaviours.dtype)
        state, interests = zero, []
        for t in range(steps):
            state, interest = extractor(state, behaviours[:, t])
            interests.append(interest)
        interests = jnp.stack(interests, axis=1)
        query = flax.linen.Dense(self.hidden, use_bias=False, name="attention")(target)
        scores = jax.nn.softmax(jnp.sum(interests * query[:, None, :], axis=-1), axis=-1)

        gates = [flax.linen.Dense(self.hidden, name=f"{gate}_input") for gate in ("update", "reset", "candidate")]
        states = [
            flax.linen.Dense(self.hidden, use_bias=False, name=f"{gate}_state") for gate in ("update", "reset", "candidate")
        ]
        state = zero
        for t in range(steps):
            x = interests[:, t]
            update = flax.linen.sigmoid(gates[0](x) + states[0](state)) * scores[:, t, None]
            reset = flax.linen.sigmoid(gates[1](x) + states[1](state))
            candidate = jnp.tanh(gates[2](x) + states[2](state * reset))
            state = (1.0 - update) * state + update * candidate
        return state


def _crnn(name, title, height, width, channels, hidden, classes, golden=False):
    return module_dataset(
        name,
        title,
        "Convolutions with batch norm and pooling, two bidirectional LSTM layers unrolled over the columns of the image, "
        "log-softmax over the characters; inference, batch 1",
        "flax.linen modules put together as in Shi et al., An end-to-end trainable neural network for image-based sequence "
        "recognition, 2015, Table 1",
        _Crnn(channels, hidden, classes),
        {"image": f32(1, height, width, 1)},
        {"image": normal()},
        {"batch": 1, "height": height, "width": width, "channels": list(channels), "hidden": hidden, "classes": classes},
        golden,
    )


def _dien(name, title, batch, steps, width, hidden, golden=False):
    return module_dataset(
        name,
        title,
        "A GRU over the user's behaviours, attention of each to the target item, and a GRU whose update gate the "
        "attention scales, both unrolled; inference",
        "flax.linen modules put together as in Zhou et al., Deep interest evolution network, AAAI 2019, section 4.3",
        _Dien(hidden),
        {"behaviours": f32(batch, steps, width), "target": f32(batch, width)},
        {"behaviours": normal(), "target": normal()},
        {"batch": batch, "steps": steps, "width": width, "hidden": hidden},
        golden,
    )


def datasets():
    return [
        _crnn("crnn", "CRNN", 32, 100, (64, 128, 256, 256, 512, 512), 256, 37),
        _crnn("crnn_tiny", "Small CRNN", 8, 12, (3, 4, 5), 6, 7, golden=True),
        _dien("dien", "DIEN's interest evolution", 256, 20, 36, 36),
        _dien("dien_tiny", "DIEN's interest evolution, small", 5, 3, 6, 7, golden=True),
    ]
