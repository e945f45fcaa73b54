"""Training steps of github.com/aymericdamien/TensorFlow-Examples as of 2018-09-15 (commit 84c99e3), in their defaults.

Each is what the script's `sess.run(train_op)` computes, in f32. Cells are unrolled as TensorFlow's static_rnn unrolls
them, and gates, losses and optimisers are written as TensorFlow 1 computes them.
"""

import functools

import jax
import jax.numpy as jnp

import fill
from graphs import Dataset, constant, f32, i32, index, normal, uniform

_URL = "github.com/aymericdamien/TensorFlow-Examples, 84c99e3 (2018-09-15), examples/"
_F18 = "FusionStitching (arXiv 1811.05213), Table 2: "
_F19 = "FusionStitching (arXiv 1911.11576), Table 1: "


# Optimisers: (variables, gradients, state) -> (variables, state), a state of arrays shaped as the variables or scalars.


# Of small variants: an update as large as what is updated, so that an error in a gradient is one in the output.
_SMALL_RATE = 10.0


def _sgd(rate):
    """tf.train.GradientDescentOptimizer; no state."""

    def update(variables, gradients, state):
        return jax.tree_util.tree_map(lambda v, g: v - rate * g, variables, gradients), state

    return update, lambda variables: {}, {}


def _adam(rate, b1=0.9, b2=0.999, eps=1e-8):
    """tf.train.AdamOptimizer: the powers of both betas are variables, the bias correction is of the rate."""

    def update(variables, gradients, state):
        scale = rate * jnp.sqrt(1 - state["beta2_power"]) / (1 - state["beta1_power"])
        m = jax.tree_util.tree_map(lambda m, g: m + (g - m) * (1 - b1), state["m"], gradients)
        v = jax.tree_util.tree_map(lambda v, g: v + (g * g - v) * (1 - b2), state["v"], gradients)
        variables = jax.tree_util.tree_map(lambda x, m, v: x - scale * m / (jnp.sqrt(v) + eps), variables, m, v)
        powers = {"beta1_power": state["beta1_power"] * b1, "beta2_power": state["beta2_power"] * b2}
        return variables, {"m": m, "v": v, **powers}

    powers = {"state.beta1_power": constant(round(b1**7, 6)), "state.beta2_power": constant(round(b2**7, 6))}
    moments = {"state.m*": normal(0.0, 0.01), "state.v*": uniform(0.01, 0.1)}
    return update, lambda v: {"m": v, "v": v, "beta1_power": f32(), "beta2_power": f32()}, moments | powers


def _rmsprop(rate, decay=0.9, eps=1e-10):
    """tf.train.RMSPropOptimizer with its default momentum of 0, whose slot it keeps all the same."""

    def update(variables, gradients, state):
        ms = jax.tree_util.tree_map(lambda ms, g: ms + (g * g - ms) * (1 - decay), state["ms"], gradients)
        step = jax.tree_util.tree_map(lambda g, ms: rate * g * jax.lax.rsqrt(ms + eps), gradients, ms)
        momentum = jax.tree_util.tree_map(lambda mom, s: mom * 0.0 + s, state["momentum"], step)
        return jax.tree_util.tree_map(lambda v, mom: v - mom, variables, momentum), {"ms": ms, "momentum": momentum}

    inputs = {"state.ms*": uniform(0.01, 0.1), "state.momentum*": normal(0.0, 0.01)}
    return update, lambda v: {"ms": v, "momentum": v}, inputs


def _example(name, title, script, loss, variables, batch, inputs, optimiser, description, configuration, paper, golden):
    """`loss(variables, batch)` is a scalar; `inputs` says how `batch` is filled."""
    update, state_of, state_inputs = optimiser

    def function(variables, state, batch):
        value, gradients = jax.value_and_grad(loss)(variables, batch)
        return value, *update(variables, gradients, state)

    function.__module__, function.__qualname__ = __name__, loss.__qualname__
    return Dataset(
        name,
        title,
        f"One training step of {description}",
        _URL + script,
        function,
        (variables, state_of(variables), batch),
        inputs | fill.parameters(variables, "variables") | state_inputs,
        configuration,
        golden,
        large=not golden,
        kind="training",
        paper=paper,
    )


def _dense(inputs, outputs):
    return {"kernel": f32(inputs, outputs), "bias": f32(outputs)}


def _apply(layer, x):
    return x @ layer["kernel"] + layer["bias"]


def _cross_entropy(logits, labels):
    """tf.nn.softmax_cross_entropy_with_logits, averaged over the batch; labels [batch, classes]."""
    return jnp.mean(-jnp.sum(labels * jax.nn.log_softmax(logits), axis=-1))


def _labels(batch, classes):
    """One-hot rows [batch, classes] as the scripts feed them; filled as weights of classes."""
    return f32(batch, classes), uniform(0.0, round(2 / classes, 6))


def _logistic_loss(variables, batch):
    prediction = jax.nn.softmax(_apply(variables, batch["x"]))
    return jnp.mean(-jnp.sum(batch["y"] * jnp.log(prediction), axis=1))


def _logistic(name, title, batch, pixels, classes, rate, golden=False):
    labels, how = _labels(batch, classes)
    return _example(
        name,
        title,
        "2_BasicModels/logistic_regression.py",
        _logistic_loss,
        _dense(pixels, classes),
        {"x": f32(batch, pixels), "y": labels},
        {"batch.x": uniform(0.0, round(2 / pixels**0.5, 6)), "batch.y": how},
        _sgd(rate),
        "logistic regression: mean(-sum y log softmax), gradients, SGD",
        {"batch": batch, "pixels": pixels, "classes": classes, "learning_rate": rate},
        _F18 + "LR; " + _F19 + "logistic",
        golden,
    )


def _word2vec_loss(variables, batch):
    """tf.nn.nce_loss with one true class a word, whose logits it gets by products with rows and a sum over them."""
    words, size = variables["embedding"].shape
    weights, biases = variables["nce_embedding"], variables["nce_bias"]
    true_weights, sampled_weights = weights[:words], weights[words:]
    true = jnp.sum(variables["embedding"] * true_weights, axis=1, keepdims=True) + biases[:words, None]
    sampled = variables["embedding"] @ sampled_weights.T + biases[words:]
    true = true - jnp.log(batch["true_expected"])
    sampled = sampled - jnp.log(batch["sampled_expected"])
    logits = jnp.concatenate([true, sampled], axis=1)
    labels = jnp.concatenate([jnp.ones_like(true), jnp.zeros_like(sampled)], axis=1)
    # tf.nn.sigmoid_cross_entropy_with_logits
    losses = jnp.maximum(logits, 0) - logits * labels + jnp.log1p(jnp.exp(-jnp.abs(logits)))
    return jnp.mean(jnp.sum(losses, axis=1))


def _word2vec(name, title, batch, vocabulary, size, sampled, rate, golden=False):
    rows = batch + sampled
    return _example(
        name,
        title,
        "2_BasicModels/word2vec.py",
        _word2vec_loss,
        {"embedding": f32(batch, size), "nce_embedding": f32(rows, size), "nce_bias": f32(rows)},
        {"true_expected": f32(batch, 1), "sampled_expected": f32(sampled)},
        {"batch.*": uniform(0.001, 1.0)},
        _sgd(rate),
        "word2vec, skip-gram: noise-contrastive estimation, gradients, SGD. The script has its tables on the CPU, so lookups, "
        "sampling and the scatters of updated rows are no part of it: parameters are the rows of this batch, its words' and "
        "those of their true and sampled classes, and the expected counts that the sampler gives with its ids",
        {"batch": batch, "vocabulary": vocabulary, "embedding": size, "sampled": sampled, "learning_rate": rate},
        _F18 + "W2V; " + _F19 + "word2vec",
        golden,
    )


def _lstm(cell, x, state):
    """tf.nn.rnn_cell.BasicLSTMCell with its forget_bias of 1; state is (c, h)."""
    c, h = state
    gates = _apply(cell, jnp.concatenate([x, h], axis=1))
    i, j, f, o = jnp.split(gates, 4, axis=1)
    c = c * jax.nn.sigmoid(f + 1.0) + jax.nn.sigmoid(i) * jnp.tanh(j)
    return c, jnp.tanh(c) * jax.nn.sigmoid(o)


def _zero_state(batch, hidden):
    return jnp.zeros((batch, hidden)), jnp.zeros((batch, hidden))


def _hidden(cell):
    return cell["kernel"].shape[1] // 4


def _static_rnn(cell, xs):
    """The outputs of every step of the list xs, unrolled."""
    state, outputs = _zero_state(xs[0].shape[0], _hidden(cell)), []
    for x in xs:
        state = _lstm(cell, x, state)
        outputs.append(state[1])
    return outputs


def _unstack(x):
    return [x[:, t] for t in range(x.shape[1])]


def _rnn_loss(variables, batch):
    outputs = _static_rnn(variables["cell"], _unstack(batch["x"]))
    return _cross_entropy(_apply(variables["out"], outputs[-1]), batch["y"])


def _bi_rnn_loss(variables, batch):
    xs = _unstack(batch["x"])
    forward = _static_rnn(variables["forward"], xs)
    backward = _static_rnn(variables["backward"], xs[::-1])[::-1]
    outputs = [jnp.concatenate(both, axis=1) for both in zip(forward, backward, strict=True)]
    return _cross_entropy(_apply(variables["out"], outputs[-1]), batch["y"])


def _recurrent(name, title, both, batch, steps, inputs, hidden, classes, rate, golden=False):
    labels, how = _labels(batch, classes)
    cell = _dense(inputs + hidden, 4 * hidden)
    if both:
        variables = {"forward": cell, "backward": cell, "out": _dense(2 * hidden, classes)}
        what, paper = "a bidirectional LSTM", _F18 + "BiRNN; " + _F19 + "bi-rnn"
    else:
        variables = {"cell": cell, "out": _dense(hidden, classes)}
        what, paper = "an LSTM", _F18 + "RNN"
    used = "; of the backward outputs the last one is its first step, and only that is used, as in the script" * both
    return _example(
        name,
        title,
        f"3_NeuralNetworks/{'bidirectional_rnn' if both else 'recurrent_network'}.py",
        _bi_rnn_loss if both else _rnn_loss,
        variables,
        {"x": f32(batch, steps, inputs), "y": labels},
        {"batch.x": normal(), "batch.y": how},
        _sgd(rate),
        f"{what} over the rows of an image, unrolled: softmax cross-entropy of the last output, gradients, SGD{used}",
        {
            "batch": batch,
            "steps": steps,
            "inputs": inputs,
            "hidden": hidden,
            "classes": classes,
            "forget_bias": 1.0,
            "learning_rate": rate,
        },
        paper,
        golden,
    )


def _dyn_rnn_loss(variables, batch):
    """static_rnn with sequence lengths: behind its end a sequence keeps its state and gives zeros."""
    lengths, cell = batch["lengths"], variables["cell"]
    samples, steps, _ = batch["x"].shape
    state, outputs = _zero_state(samples, _hidden(cell)), []
    for t, x in enumerate(_unstack(batch["x"])):
        ended = (t >= lengths)[:, None]
        following = _lstm(cell, x, state)
        outputs.append(jnp.where(ended, 0.0, following[1]))
        state = tuple(jnp.where(ended, old, new) for old, new in zip(state, following, strict=True))
    stacked = jnp.transpose(jnp.stack(outputs), (1, 0, 2)).reshape(samples * steps, -1)
    last = jnp.take(stacked, jnp.arange(samples) * steps + lengths - 1, axis=0, mode="clip")
    return _cross_entropy(_apply(variables["out"], last), batch["y"])


def _dynamic(name, title, batch, steps, hidden, classes, rate, golden=False):
    labels, how = _labels(batch, classes)
    return _example(
        name,
        title,
        "3_NeuralNetworks/dynamic_rnn.py",
        _dyn_rnn_loss,
        {"cell": _dense(1 + hidden, 4 * hidden), "out": _dense(hidden, classes)},
        {"x": f32(batch, steps, 1), "y": labels, "lengths": i32(batch)},
        {"batch.x": normal(), "batch.y": how, "batch.lengths": index(1, steps + 1)},
        _sgd(rate),
        "an LSTM over sequences of different lengths, unrolled, a step's values selected by them: softmax cross-entropy of the "
        "last output, which is gathered, gradients, SGD",
        {"batch": batch, "steps": steps, "hidden": hidden, "classes": classes, "forget_bias": 1.0, "learning_rate": rate},
        _F19 + "dyn-rnn",
        golden,
    )


def _perceptron_loss(variables, batch):
    hidden = _apply(variables["hidden2"], _apply(variables["hidden1"], batch["x"]))
    return _cross_entropy(_apply(variables["out"], hidden), batch["y"])


def _perceptron(name, title, batch, pixels, hidden, classes, golden=False):
    labels, how = _labels(batch, classes)
    return _example(
        name,
        title,
        "3_NeuralNetworks/multilayer_perceptron.py",
        _perceptron_loss,
        {"hidden1": _dense(pixels, hidden), "hidden2": _dense(hidden, hidden), "out": _dense(hidden, classes)},
        {"x": f32(batch, pixels), "y": labels},
        {"batch.x": normal(), "batch.y": how},
        _adam(0.001),
        "a perceptron of two hidden layers, which the script gives no activations: softmax cross-entropy, gradients, Adam",
        {"batch": batch, "pixels": pixels, "hidden": hidden, "classes": classes, "learning_rate": 0.001}
        | {"b1": 0.9, "b2": 0.999, "eps": 1e-8},
        _F19 + "perceptron",
        golden,
    )


def _var_encoder_loss(variables, batch):
    x = batch["x"]
    encoder = jnp.tanh(_apply(variables["encoder"], x))
    mean, std = _apply(variables["mean"], encoder), _apply(variables["std"], encoder)
    z = mean + jnp.exp(std / 2) * batch["epsilon"]
    decoder = jnp.tanh(_apply(variables["decoder"], z))
    again = jax.nn.sigmoid(_apply(variables["out"], decoder))
    likelihood = x * jnp.log(1e-10 + again) + (1 - x) * jnp.log(1e-10 + 1 - again)
    divergence = 1 + std - jnp.square(mean) - jnp.exp(std)
    return jnp.mean(-jnp.sum(likelihood, axis=1) - 0.5 * jnp.sum(divergence, axis=1))


def _var_encoder(name, title, batch, pixels, hidden, latent, golden=False):
    return _example(
        name,
        title,
        "3_NeuralNetworks/variational_autoencoder.py",
        _var_encoder_loss,
        {
            "encoder": _dense(pixels, hidden),
            "mean": _dense(hidden, latent),
            "std": _dense(hidden, latent),
            "decoder": _dense(latent, hidden),
            "out": _dense(hidden, pixels),
        },
        {"x": f32(batch, pixels), "epsilon": f32(batch, latent)},
        {"batch.x": uniform(0.0, 1.0), "batch.epsilon": normal()},
        _rmsprop(0.001),
        "a variational autoencoder: reconstruction loss and divergence, gradients, RMSProp; the noise epsilon is a parameter",
        {"batch": batch, "pixels": pixels, "hidden": hidden, "latent": latent, "learning_rate": 0.001}
        | {"decay": 0.9, "eps": 1e-10},
        _F19 + "var-encoder",
        golden,
    )


def datasets():
    one, both = functools.partial(_recurrent, both=False), functools.partial(_recurrent, both=True)
    rows = {"batch": 128, "steps": 28, "inputs": 28, "hidden": 128, "classes": 10, "rate": 0.001}
    small = {"rate": _SMALL_RATE, "golden": True}
    few = {"batch": 5, "steps": 3, "inputs": 4, "hidden": 6, "classes": 4} | small
    return [
        _logistic("logistic", "Logistic regression, a training step", 100, 784, 10, 0.01),
        _logistic("logistic_tiny", "Small logistic regression", 7, 33, 5, **small),
        _word2vec("word2vec", "word2vec, a training step", 128, 50000, 200, 64, 0.1),
        _word2vec("word2vec_tiny", "Small word2vec", 7, 50, 12, 5, **small),
        one("rnn", "LSTM, a training step", **rows),
        one("rnn_tiny", "Small LSTM, a training step", **few),
        both("bi_rnn", "Bidirectional LSTM, a training step", **rows),
        both("bi_rnn_tiny", "Small bidirectional LSTM, a training step", **few),
        _dynamic("dyn_rnn", "LSTM over sequences of different lengths, a training step", 128, 20, 64, 2, 0.01),
        _dynamic("dyn_rnn_tiny", "Small LSTM over sequences of different lengths", 5, 3, 6, 2, **small),
        _perceptron("perceptron", "Perceptron, a training step", 100, 784, 256, 10),
        _perceptron("perceptron_tiny", "Small perceptron, a training step", 7, 13, 6, 4, golden=True),
        _var_encoder("var_encoder", "Variational autoencoder, a training step", 64, 784, 512, 2),
        _var_encoder("var_encoder_tiny", "Small variational autoencoder", 5, 13, 6, 2, golden=True),
    ]
