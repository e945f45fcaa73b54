"""Public models in the place of FusionStitching's unpublished ones: training steps of speech, dialogue, recommendation.

Recurrences are lax.scan loops, as the papers' models have TensorFlow's while loops.
"""

import jax
import jax.numpy as jnp
import optax

from graphs import f32, i32, index, normal, uniform
from steps import training_step

_ADAM = {"learning_rate": 1e-3, "b1": 0.9, "b2": 0.999, "eps": 1e-8}
_F18 = "FusionStitching (arXiv 1811.05213), Table 2: "
_F19 = "FusionStitching (arXiv 1911.11576), Table 1: "
_INSTEAD = "The paper's is an in-house application of which it says no more than its task: here a public model of that task."


def _dense(inputs, outputs):
    return {"kernel": f32(inputs, outputs), "bias": f32(outputs)}


def _apply(layer, x):
    return x @ layer["kernel"] + layer["bias"]


def _cross_entropy(logits, labels):
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))


# Speech recognition: Graves, Jaitly, Mohamed, Hybrid speech recognition with deep bidirectional LSTM, ASRU 2013.


def _peephole_lstm(cell, x, state):
    """Section 2, equations 3 to 7: gates see the cell's own value by diagonal weights."""
    c, h = state
    i, f, o, j = jnp.split(_apply(cell, jnp.concatenate([x, h], axis=1)), 4, axis=1)
    i = jax.nn.sigmoid(i + c * cell["peephole_i"])
    f = jax.nn.sigmoid(f + c * cell["peephole_f"])
    c = f * c + i * jnp.tanh(j)
    return c, jax.nn.sigmoid(o + c * cell["peephole_o"]) * jnp.tanh(c)


def _direction(cell, xs, reverse):
    """Outputs [time, batch, hidden] of a loop over xs [time, batch, features]."""
    zero = jnp.zeros((xs.shape[1], cell["peephole_i"].shape[0]))

    def step(state, x):
        state = _peephole_lstm(cell, x, state)
        return state, state[1]

    return jax.lax.scan(step, (zero, zero), xs, reverse=reverse)[1]


def _speech_loss(params, batch):
    x = jnp.transpose(batch["features"], (1, 0, 2))
    for layer in range(len(params) - 1):
        cells = params[f"layer{layer}"]
        both = _direction(cells["forward"], x, False), _direction(cells["backward"], x, True)
        x = jnp.concatenate(both, axis=-1)
    logits = jnp.transpose(_apply(params["output"], x), (1, 0, 2))
    return _cross_entropy(logits, batch["states"])


def _speech(name, title, batch, frames, features, layers, hidden, states, golden=False):
    params, inputs = {}, features
    for layer in range(layers):
        cell = _dense(inputs + hidden, 4 * hidden) | {f"peephole_{gate}": f32(hidden) for gate in "ifo"}
        params[f"layer{layer}"] = {"forward": cell, "backward": cell}
        inputs = 2 * hidden
    params["output"] = _dense(inputs, states)
    return training_step(
        name,
        title,
        _speech_loss,
        params,
        {"features": f32(batch, frames, features), "states": i32(batch, frames)},
        {"batch.features": normal(), "batch.states": index(0, states)},
        optimiser=_ADAM,
        description=f"One training step of an acoustic model: {layers} bidirectional layers of LSTM cells with peepholes over "
        f"{frames} frames, each direction a loop, framewise cross-entropy, gradients through the loops, Adam",
        source="Graves, Jaitly and Mohamed, Hybrid speech recognition with deep bidirectional LSTM, ASRU 2013, sections 2 "
        "to 4; jax.lax.scan, optax; training",
        configuration={"batch": batch, "frames": frames, "features": features, "layers": layers}
        | {"hidden": hidden, "states": states},
        golden=golden,
        paper=_F18 + "Speech; " + _F19 + "rokid",
        substitution=_INSTEAD,
    )


# Dialogue: Bahdanau, Cho, Bengio, Neural machine translation by jointly learning to align and translate, ICLR 2015.


def _gru(cell, x, state):
    """Appendix A.1.1, with one product for both gates."""
    update, reset = jnp.split(jax.nn.sigmoid(_apply(cell["gates"], jnp.concatenate([x, state], axis=1))), 2, axis=1)
    candidate = jnp.tanh(_apply(cell["candidate"], jnp.concatenate([x, reset * state], axis=1)))
    return (1.0 - update) * state + update * candidate


def _encode(cell, xs, mask, reverse):
    """States [time, batch, hidden] of a loop over xs [time, batch, width]; where the mask is 0 the state stays."""

    def step(state, inputs):
        x, there = inputs
        state = jnp.where(there[:, None] > 0, _gru(cell, x, state), state)
        return state, state

    return jax.lax.scan(step, jnp.zeros((xs.shape[1], cell["candidate"]["bias"].shape[0])), (xs, mask), reverse=reverse)[1]


def _attend(align, keys, annotations, mask, state):
    """Appendix A.1.2: the context [batch, 2 hidden] by a perceptron's scores, softmax over time."""
    scores = jnp.tanh(keys + (state @ align["state"]["kernel"])[None]) @ align["score"]["kernel"]
    scores = jnp.where(mask > 0, scores[..., 0], -1e9)
    return jnp.sum(jax.nn.softmax(scores, axis=0)[..., None] * annotations, axis=0)


def _dialog_loss(params, batch):
    mask = jnp.transpose(batch["post_mask"])
    post = jnp.take(params["post"]["embedding"], jnp.transpose(batch["post"]), axis=0)
    answer = jnp.take(params["answer"]["embedding"], jnp.transpose(batch["answer"]), axis=0)
    forward = _encode(params["forward"], post, mask, False)
    backward = _encode(params["backward"], post, mask, True)
    annotations = jnp.concatenate([forward, backward], axis=-1)
    keys = _apply(params["align"]["key"], annotations)

    def step(state, word):
        context = _attend(params["align"], keys, annotations, mask, state)
        inputs = jnp.concatenate([word, context], axis=-1)
        following = _gru(params["decoder"], inputs, state)
        deep = _apply(params["deep"], jnp.concatenate([state, inputs], axis=-1))
        # Maxout over pairs (appendix A.2.2).
        return following, jnp.max(deep.reshape(deep.shape[0], -1, 2), axis=-1)

    start = jnp.tanh(_apply(params["start"], backward[0]))
    _, outputs = jax.lax.scan(step, start, answer[:-1])
    losses = optax.softmax_cross_entropy_with_integer_labels(_apply(params["words"], outputs), batch["answer"].T[1:])
    weight = batch["answer_mask"].T[1:]
    return jnp.sum(losses * weight) / (jnp.sum(weight) + 1e-6)


def _dialog(name, title, batch, post, answer, vocabulary, width, hidden, align, maxout, golden=False):
    def cell(inputs):
        return {"gates": _dense(inputs + hidden, 2 * hidden), "candidate": _dense(inputs + hidden, hidden)}

    context = 2 * hidden
    params = {
        "post": {"embedding": f32(vocabulary, width)},
        "answer": {"embedding": f32(vocabulary, width)},
        "forward": cell(width),
        "backward": cell(width),
        "align": {
            "key": _dense(context, align),
            "state": {"kernel": f32(hidden, align)},
            "score": {"kernel": f32(align, 1)},
        },
        "start": _dense(hidden, hidden),
        "decoder": cell(width + context),
        "deep": _dense(hidden + width + context, 2 * maxout),
        "words": _dense(maxout, vocabulary),
    }
    words = index(0, vocabulary)
    return training_step(
        name,
        title,
        _dialog_loss,
        params,
        {
            "post": i32(batch, post),
            "post_mask": f32(batch, post),
            "answer": i32(batch, answer),
            "answer_mask": f32(batch, answer),
        },
        {"batch.post": words, "batch.answer": words}
        | {"batch.post_mask": uniform(-0.3, 1.0), "batch.answer_mask": uniform(0.0, 1.0)},
        optimiser=_ADAM,
        description=f"One training step of an encoder and decoder of GRUs with attention: {post} words read in both directions, "
        f"{answer} written, each a loop, maxout, cross-entropy, gradients through the loops, Adam",
        source="Bahdanau, Cho and Bengio, Neural machine translation by jointly learning to align and translate, ICLR 2015, "
        "appendix A; jax.lax.scan, optax; training",
        configuration={"batch": batch, "post": post, "answer": answer, "vocabulary": vocabulary, "embedding": width}
        | {"hidden": hidden, "alignment": align, "maxout": maxout},
        golden=golden,
        paper=_F19 + "aiwriter",
        substitution=_INSTEAD,
    )


# Recommendation: Chen et al., Behavior sequence transformer for e-commerce recommendation in Alibaba, DLP-KDD 2019.


def _heads(x, heads):
    """[batch, time, width] -> [heads * batch, time, width / heads], heads outermost."""
    return jnp.concatenate(jnp.split(x, heads, axis=2), axis=0)


def _norm(layer, x):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(jnp.square(centred), axis=-1, keepdims=True) + 1e-6) * layer["scale"] + layer["bias"]


def _leaky(x):
    return jnp.where(x > 0, x, 0.2 * x)


def _interest_loss(params, batch, heads):
    items, places = params["items"]["embedding"], params["positions"]["embedding"]
    sequence = jnp.take(items, batch["behaviours"], axis=0) + jnp.take(places, batch["times"], axis=0)
    query, key, value = (_heads(_apply(params[part], sequence), heads) for part in ("query", "key", "value"))
    scores = jnp.einsum("bqd,bkd->bqk", query, key) / query.shape[-1] ** 0.5
    mask = jnp.tile(jnp.where(batch["mask"] > 0, 0.0, -1e9), (heads, 1))
    weights = jax.nn.softmax(scores + mask[:, None, :], axis=-1)
    attended = jnp.einsum("bqk,bkd->bqd", weights, value)
    attended = jnp.concatenate(jnp.split(attended, heads, axis=0), axis=2)
    middle = _norm(params["norm1"], sequence + _apply(params["output"], attended))
    inner = _apply(params["down"], _leaky(_apply(params["up"], middle)))
    last = _norm(params["norm2"], middle + inner)
    x = jnp.concatenate([last.reshape(last.shape[0], -1), batch["features"]], axis=1)
    for layer in range(3):
        x = _leaky(_apply(params[f"mlp{layer}"], x))
    logits = _apply(params["click"], x)[:, 0]
    return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, batch["clicked"]))


def _multi_interest(name, title, batch, behaviours, heads, width, items, features, mlp, golden=False):
    norm = {"scale": f32(width), "bias": f32(width)}
    params = {"items": {"embedding": f32(items, width)}, "positions": {"embedding": f32(behaviours, width)}}
    params |= {part: _dense(width, width) for part in ("query", "key", "value", "output")}
    params |= {"up": _dense(width, 4 * width), "down": _dense(4 * width, width), "norm1": norm, "norm2": norm}
    widths = (behaviours * width + features, *mlp)
    params |= {f"mlp{i}": _dense(widths[i], widths[i + 1]) for i in range(len(mlp))}
    params["click"] = _dense(mlp[-1], 1)

    def loss(params, batch):
        return _interest_loss(params, batch, heads)

    loss.__qualname__ = _interest_loss.__qualname__
    sequence = i32(batch, behaviours)
    return training_step(
        name,
        title,
        loss,
        params,
        {
            "behaviours": sequence,
            "times": sequence,
            "mask": sequence,
            "features": f32(batch, features),
            "clicked": f32(batch),
        },
        {
            "batch.behaviours": index(0, items),
            "batch.times": index(0, behaviours),
            "batch.mask": index(0, 2),
            "batch.features": normal(),
            "batch.clicked": uniform(0.0, 1.0),
        },
        optimiser=_ADAM,
        description=f"One training step of a behaviour sequence transformer: {behaviours} behaviours, the target item among "
        f"them, {heads} heads of {width // heads}, a perceptron with leaky ReLU, cross-entropy, scatters into the embeddings, "
        "Adam; no dropout",
        source="Chen et al., Behavior sequence transformer for e-commerce recommendation in Alibaba, DLP-KDD 2019, section 2; "
        "optax; training. The heads' sizes are those of FusionStitching (arXiv 1911.11576), Figure 1",
        configuration={"batch": batch, "behaviours": behaviours, "heads": heads, "width": width, "items": items}
        | {"features": features, "mlp": list(mlp)},
        golden=golden,
        paper=_F19 + "multi-interests",
        substitution=_INSTEAD,
    )


def datasets():
    return [
        # The paper's TIMIT network: 3 layers of 250 cells in each direction, 123 features, 61 phones of 3 states.
        _speech("speech_train", "Acoustic model of bidirectional LSTM, a training step", 32, 300, 123, 3, 250, 183),
        _speech("speech_train_tiny", "Small acoustic model, a training step", 3, 4, 5, 1, 6, 7, golden=True),
        # RNNsearch-30 (appendix A.2.3 and B): batch 80, 30,000 words.
        _dialog("dialog_train", "Dialogue with attention, a training step", 80, 30, 30, 30000, 620, 1000, 1000, 500),
        _dialog("dialog_train_tiny", "Small dialogue, a training step", 3, 4, 4, 11, 6, 6, 6, 4, golden=True),
        _multi_interest(
            "multi_interest", "Behaviour sequence transformer, a training step", 2048, 94, 8, 16, 100000, 64, (1024, 512, 256)
        ),
        _multi_interest(
            "multi_interest_tiny", "Small behaviour sequence transformer", 3, 5, 2, 6, 11, 4, (8, 6, 6), golden=True
        ),
    ]
