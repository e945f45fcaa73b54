"""Golden tensors: seeded inputs and the outputs JAX gives for them on a CPU, one .npy file each."""

import io

import jax
import numpy as np


def tensors(dataset, names):
    """{file name: bytes}: in<parameter number>.npy and out<index>.npy of one dataset."""
    generator = np.random.default_rng(0)
    leaves, tree = jax.tree_util.tree_flatten(dataset.arguments)
    values = [_draw(generator, dataset.inputs[name], leaf) for name, leaf in zip(names, leaves, strict=True)]
    outputs = jax.tree_util.tree_leaves(jax.jit(dataset.function)(*jax.tree_util.tree_unflatten(tree, values)))
    files = {f"in{number}.npy": _npy(value) for number, value in enumerate(values)}
    return files | {f"out{number}.npy": _npy(np.asarray(value)) for number, value in enumerate(outputs)}


def close(path, content):
    """True where the tensor in the file `path` equals that of `content` up to what another CPU may round otherwise."""
    old, new = np.load(path), np.load(io.BytesIO(content))
    return old.shape == new.shape and np.allclose(old, new, rtol=1e-5, atol=1e-5 * float(np.abs(new).max()))


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
