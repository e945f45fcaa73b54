"""Recurrent models of Astra's evaluation (ASPLOS 2019, section 6.1): training steps, unrolled, one matrix a gate.

Each is what an eager framework runs for a mini-batch: the loss of all steps, its gradients, SGD. Words come in as rows of
an embedding (the paper's own variant without lookups, section 6.6), labels as one-hot rows. `datasets()` are small ones;
`evaluation()` are those of the paper's tables, which `export.py --out DIR` writes elsewhere.
"""

import functools

import jax
import jax.numpy as jnp

import fill
from graphs import Dataset, f32, normal, uniform

_PAPER = "Astra (ASPLOS 2019), section 6.1: "
_BATCHES = (8, 16, 32, 64, 128, 256)
_BUCKETS = (13, 18, 24, 30, 83)  # lengths of PTB's sentences in section 6.5
_RATE = 1.0
# Of small variants: an update as large as what is updated, so that an error in a gradient is one in the output.
_SMALL_RATE = 10.0


def _steps(x):
    return [jax.lax.index_in_dim(x, t, 0, keepdims=False) for t in range(x.shape[0])]


def _cross_entropy(logits, labels):
    return -jnp.sum(labels * jax.nn.log_softmax(logits)) / labels.shape[0]


def _loss_of_steps(variables, outputs, labels):
    """A softmax layer a step; labels [steps, batch, words]."""
    losses = [
        _cross_entropy(h @ variables["out"] + variables["out_bias"], y) for h, y in zip(outputs, _steps(labels), strict=True)
    ]
    return functools.reduce(jnp.add, losses) / len(losses)


def _zeros(x, hidden):
    return jnp.zeros((x.shape[0], hidden), x.dtype)


def _gate(gate, x, h):
    return x @ gate["w"] + h @ gate["u"] + gate["bias"]


def _gates(inputs, hidden, names="ifgo"):
    return {name: {"w": f32(inputs, hidden), "u": f32(hidden, hidden), "bias": f32(hidden)} for name in names}


def _lstm(cell, x, state):
    c, h = state
    i, f, o = (jax.nn.sigmoid(_gate(cell[name], x, h)) for name in "ifo")
    c = f * c + i * jnp.tanh(_gate(cell["g"], x, h))
    return c, o * jnp.tanh(c)


def _sub_lstm(cell, x, state):
    """Costa et al., Cortical microcircuits as gated-recurrent neural networks, 2017: gates are subtracted."""
    c, h = state
    i, f, o, z = (jax.nn.sigmoid(_gate(cell[name], x, h)) for name in "ifoz")
    c = f * c + z - i
    return c, jax.nn.sigmoid(c) - o


def _mi_lstm(cell, x, state):
    """Wu et al., On multiplicative integration with recurrent neural networks, 2016."""

    def gate(name):
        g = cell[name]
        wx, uh = x @ g["w"], h @ g["u"]
        return g["alpha"] * wx * uh + g["beta1"] * uh + g["beta2"] * wx + g["bias"]

    c, h = state
    i, f, o = (jax.nn.sigmoid(gate(name)) for name in "ifo")
    c = f * c + i * jnp.tanh(gate("g"))
    return c, o * jnp.tanh(c)


def _mi_gates(inputs, hidden):
    more = {name: f32(hidden) for name in ("alpha", "beta1", "beta2")}
    return {name: gate | more for name, gate in _gates(inputs, hidden).items()}


def _run(cell, step, xs, hidden):
    state, outputs = (_zeros(xs[0], hidden), _zeros(xs[0], hidden)), []
    for x in xs:
        state = step(cell, x, state)
        outputs.append(state[1])
    return outputs


def _layered(step, hidden):
    """Layers one above the other, a softmax layer a step."""

    def loss(variables, batch):
        outputs = _steps(batch["x"])
        for name in sorted(variables["layers"]):
            outputs = _run(variables["layers"][name], step, outputs, hidden)
        return _loss_of_steps(variables, outputs, batch["y"])

    return loss


def _stacked_lstm_loss(hidden):
    """One softmax layer for all steps, as in the public PTB configuration."""

    def loss(variables, batch):
        outputs = _steps(batch["x"])
        for name in sorted(variables["layers"]):
            outputs = _run(variables["layers"][name], _lstm, outputs, hidden)
        logits = jnp.concatenate(outputs) @ variables["out"] + variables["out_bias"]
        return _cross_entropy(logits, batch["y"].reshape(logits.shape))

    return loss


def _scrnn_loss(hidden, context, alpha=0.95):
    """Mikolov et al., Learning longer memory in recurrent neural networks, 2014."""

    def loss(variables, batch):
        xs = _steps(batch["x"])
        s, h, losses = _zeros(xs[0], context), _zeros(xs[0], hidden), []
        for x, y in zip(xs, _steps(batch["y"]), strict=True):
            s = (1 - alpha) * (x @ variables["b"]) + alpha * s
            h = jax.nn.sigmoid(s @ variables["p"] + x @ variables["a"] + h @ variables["r"])
            losses.append(_cross_entropy(h @ variables["u"] + s @ variables["v"], y))
        return functools.reduce(jnp.add, losses) / len(losses)

    return loss


def _gnmt_loss(layers, hidden):
    """Wu et al., 2016, as tensorflow/nmt's wmt16_gnmt_8_layer: attention by the first decoder layer, given to all above."""

    def loss(variables, batch):
        xs = _steps(batch["x"])
        forward = _run(variables["forward"], _lstm, xs, hidden)
        backward = _run(variables["backward"], _lstm, xs[::-1], hidden)[::-1]
        outputs = [jnp.concatenate(both, axis=1) for both in zip(forward, backward, strict=True)]
        for i in range(1, layers - 1):
            above = _run(variables["encoder"][f"{i:02}"], _lstm, outputs, hidden)
            outputs = [a + b for a, b in zip(above, outputs, strict=True)] if i > 1 else above
        memory = jnp.stack(outputs, axis=1)  # [batch, source steps, hidden]
        keys = memory @ variables["keys"]
        decoder = [variables["decoder"][f"{i:02}"] for i in range(layers)]
        states = [(_zeros(xs[0], hidden), _zeros(xs[0], hidden)) for _ in decoder]
        attention, losses = _zeros(xs[0], hidden), []
        for t, y in zip(_steps(batch["target"]), _steps(batch["y"]), strict=True):
            states[0] = _lstm(decoder[0], jnp.concatenate([t, attention], axis=1), states[0])
            query = states[0][1] @ variables["query"]
            scores = jnp.sum(variables["score"] * jnp.tanh(keys + query[:, None, :]), axis=2)
            weights = jax.nn.softmax(scores)
            attention = jnp.sum(weights[:, :, None] * memory, axis=1)
            h = states[0][1]
            for i in range(1, layers):
                states[i] = _lstm(decoder[i], jnp.concatenate([h, attention], axis=1), states[i])
                h = states[i][1] + h if i > 1 else states[i][1]
            losses.append(_cross_entropy(h @ variables["out"], y))
        return functools.reduce(jnp.add, losses) / len(losses)

    return loss


def _training(name, title, loss, variables, batch, words, configuration, what, paper, golden, substitution=None):
    rate = _SMALL_RATE if golden else _RATE

    def function(variables, batch):
        value, gradients = jax.value_and_grad(loss)(variables, batch)
        return value, jax.tree_util.tree_map(lambda v, g: v - rate * g, variables, gradients)

    function.__module__, function.__qualname__ = __name__, loss.__qualname__
    inputs = {"batch.y": uniform(0.0, round(2 / words, 6)), "batch.*": normal()}
    return Dataset(
        name,
        title,
        f"One training step of {what}, unrolled, one matrix a gate: softmax cross-entropy of all steps, gradients, SGD; words are "
        "rows of an embedding, labels one-hot",
        "JAX, as the papers of the model print it",
        function,
        (variables, batch),
        inputs | fill.parameters(variables, "variables"),
        configuration | {"learning_rate": rate},
        golden,
        large=not golden,
        kind="training",
        paper=_PAPER + paper,
        substitution=substitution,
    )


_SIZES = "the paper gives no sizes"


def _layered_model(name, title, step, gates, batch, steps, inputs, hidden, layers, words, what, paper, golden=False):
    cells = {f"{i}": gates(inputs if i == 0 else hidden, hidden) for i in range(layers)}
    once = name.startswith("stacked_lstm")
    return _training(
        name,
        title,
        _stacked_lstm_loss(hidden) if once else _layered(step, hidden),
        {"layers": cells, "out": f32(hidden, words), "out_bias": f32(words)},
        {"x": f32(steps, batch, inputs), "y": f32(steps, batch, words)},
        words,
        {"batch": batch, "steps": steps, "inputs": inputs, "hidden": hidden, "layers": layers, "words": words},
        what,
        paper,
        golden,
        None if once or golden else _SIZES,
    )


def _mi_lstm_model(name, title, batch, steps=35, inputs=128, hidden=2048, words=205, golden=False):
    return _layered_model(
        name, title, _mi_lstm, _mi_gates, batch, steps, inputs, hidden, 1, words, "an MI-LSTM", "MI-LSTM, Hutter", golden
    )


def _sub_lstm_model(name, title, batch, steps=35, inputs=650, hidden=650, layers=2, words=10000, golden=False):
    gates = functools.partial(_gates, names="ifoz")
    return _layered_model(
        name, title, _sub_lstm, gates, batch, steps, inputs, hidden, layers, words, "a subLSTM", "subLSTM, PTB", golden
    )


def _stacked_lstm_model(name, title, batch, steps=35, inputs=1500, hidden=1500, layers=2, words=10000, golden=False):
    what, paper = "a stacked LSTM", "stacked LSTM, PTB large"
    return _layered_model(
        name, title, _lstm, _gates, batch, steps, inputs, hidden, layers, words, what, paper, golden
    )


def _scrnn_model(name, title, batch, steps=35, inputs=100, hidden=100, context=40, words=10000, golden=False):
    sizes = {"a": (inputs, hidden), "b": (inputs, context), "p": (context, hidden), "r": (hidden, hidden)}
    sizes |= {"u": (hidden, words), "v": (context, words)}
    return _training(
        name,
        title,
        _scrnn_loss(hidden, context),
        {key: f32(*shape) for key, shape in sizes.items()},
        {"x": f32(steps, batch, inputs), "y": f32(steps, batch, words)},
        words,
        {"batch": batch, "steps": steps, "inputs": inputs, "hidden": hidden, "context": context, "words": words},
        "a structurally constrained recurrent network",
        "SC-RNN, PTB",
        golden,
        None if golden else _SIZES,
    )


def _gnmt_model(name, title, batch, steps=25, hidden=1024, layers=8, words=32000, golden=False):
    cell = functools.partial(_gates, hidden=hidden)
    variables = {
        "forward": cell(hidden),
        "backward": cell(hidden),
        "encoder": {f"{i:02}": cell(2 * hidden if i == 1 else hidden) for i in range(1, layers - 1)},
        "decoder": {f"{i:02}": cell(2 * hidden) for i in range(layers)},
        "keys": f32(hidden, hidden),
        "query": f32(hidden, hidden),
        "score": f32(hidden),
        "out": f32(hidden, words),
    }
    return _training(
        name,
        title,
        _gnmt_loss(layers, hidden),
        variables,
        {"x": f32(steps, batch, hidden), "target": f32(steps, batch, hidden), "y": f32(steps, batch, words)},
        words,
        {"batch": batch, "steps": steps, "hidden": hidden, "layers": layers, "words": words},
        "GNMT: encoder, the first layer in both directions, and decoder with attention",
        "GNMT, about 8x more layers",
        golden,
        None if golden else "sizes of tensorflow/nmt's wmt16_gnmt_8_layer, 25 words each",
    )


def datasets():
    return [
        _stacked_lstm_model("stacked_lstm_tiny", "Small stacked LSTM, a training step", 3, 2, 5, 4, 2, 7, golden=True),
        _scrnn_model("scrnn_tiny", "Small SC-RNN, a training step", 3, 3, 5, 4, 2, 7, golden=True),
    ]


def evaluation():
    """Those of Tables 2 to 6 at their batch sizes, of Table 8 by length, and the small ones that are not committed."""
    models = {
        "scrnn": (_scrnn_model, "SC-RNN"),
        "mi_lstm": (_mi_lstm_model, "MI-LSTM"),
        "sub_lstm": (_sub_lstm_model, "subLSTM"),
        "stacked_lstm": (_stacked_lstm_model, "Stacked LSTM"),
        "gnmt": (_gnmt_model, "GNMT"),
    }
    full = [
        model(f"{name}_b{batch}", f"{title}, a training step, batch {batch}", batch)
        for name, (model, title) in models.items()
        for batch in (*_BATCHES, *((20,) if name in ("sub_lstm", "stacked_lstm") else ()))
    ]
    bucketed = [
        models[name][0](f"{name}_b{batch}_t{steps}", f"{models[name][1]}, a training step of {steps} words, batch {batch}", batch, steps=steps)
        for name in ("scrnn", "sub_lstm", "stacked_lstm")
        for batch in (16, 32)
        for steps in _BUCKETS
    ]
    small = [
        _mi_lstm_model("mi_lstm_tiny", "Small MI-LSTM, a training step", 3, 2, 5, 4, 7, golden=True),
        _sub_lstm_model("sub_lstm_tiny", "Small subLSTM, a training step", 3, 3, 5, 4, 2, 7, golden=True),
        _gnmt_model("gnmt_tiny", "Small GNMT, a training step", 2, 2, 4, 3, 7, golden=True),
    ]
    return full + bucketed + small
