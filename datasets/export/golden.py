"""Golden tensors: seeded inputs and the outputs JAX gives for them on a CPU, one .npy file each."""

import fnmatch
import io

import hlo_text
import jax
import jax.numpy as jnp
import numpy as np


def tensors(dataset, text):
    """{file name: bytes}: in<parameter number>.npy and out<index>.npy of one dataset.

    The outputs are the function's own; that the HLO text says the same is checked by running it too.
    """
    generator = np.random.default_rng(0)
    leaves, tree = jax.tree_util.tree_flatten(dataset.arguments)
    names = [name for _, name in hlo_text.parameters(text)]
    values = [_draw(generator, _distribution(dataset, name), leaf) for name, leaf in zip(names, leaves, strict=True)]
    outputs = jax.tree_util.tree_leaves(jax.jit(dataset.function)(*jax.tree_util.tree_unflatten(tree, values)))
    for own, again in zip(outputs, hlo_text.run(text, values), strict=True):
        if not _close(dataset, np.asarray(own), again):
            raise ValueError(f"{dataset.name}: the HLO text does not compute what the function computes")
    files = {f"in{number}.npy": _npy(value) for number, value in enumerate(values)}
    return files | {f"out{number}.npy": _npy(np.asarray(value)) for number, value in enumerate(outputs)}


def close(dataset, path, content):
    """True where the tensor in the file `path` equals that of `content` up to what another CPU may round otherwise."""
    return _close(dataset, np.load(path), np.load(io.BytesIO(content)))


def _close(dataset, old, new):
    # What the type in which the model computes keeps of ten roundings.
    tolerance = max(1e-5, 10 * float(jnp.finfo(dataset.dtype).eps))
    return old.shape == new.shape and np.allclose(old, new, rtol=tolerance, atol=tolerance * float(np.abs(new).max()))


def _distribution(dataset, name):
    """An exact key beats a pattern; of the patterns the first counts (datasets/README.md)."""
    if name in dataset.inputs:
        return dataset.inputs[name]
    return next(how for key, how in dataset.inputs.items() if fnmatch.fnmatchcase(name, key))


def _draw(generator, how, leaf):
    kind = how["distribution"]
    if kind == "normal":
        value = generator.normal(how["mean"], how["stddev"], leaf.shape)
    elif kind == "uniform":
        value = generator.uniform(how["low"], how["high"], leaf.shape)
    elif kind == "index":
        value = generator.integers(how["low"], how["high"], leaf.shape)
    elif kind == "constant":
        value = np.full(leaf.shape, how["value"])
    else:
        raise ValueError(f"unknown distribution {kind!r}")
    return np.asarray(value, dtype=leaf.dtype)


def _npy(value):
    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(value) if value.ndim else value)
    return file.getvalue()
