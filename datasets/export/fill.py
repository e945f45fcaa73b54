"""How the parameters of a Flax model are filled, so that an error anywhere reaches the output."""

import fnmatch
import math

import jax

from graphs import normal, uniform


def parameters(tree, prefix="params", embedding=1.0):
    """{pattern: distribution} for every leaf of `tree` (a pytree of shapes), short patterns where they are enough.

    Activations keep a scale near 1: a matrix has a standard deviation of 1/sqrt(elements that are summed), norms
    have scales around 1. `embedding` is the standard deviation of lookup tables, whose rows are the activations.
    """
    leaves = {
        ".".join([prefix, *(str(key.key) for key in path)]): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }
    how = {name: _distribution(name, leaf, embedding) for name, leaf in leaves.items()}
    patterns = {}
    for name in how:
        pattern = _shortest(name, prefix, how)
        patterns[pattern] = how[name]
    return patterns


def _distribution(name, leaf, embedding):
    last = name.rsplit(".", 1)[1]
    if last in ("scale", "var") or (last == "weight" and leaf.ndim == 1):
        return uniform(0.5, 1.5)
    if last == "embedding":
        return normal(0.0, round(embedding, 6))
    if leaf.ndim <= 1 or "bias" in last:
        return normal(0.0, 0.1)
    return normal(0.0, round(math.prod(leaf.shape[:-1]) ** -0.5, 6))


def _shortest(name, prefix, how):
    """The shortest `<prefix>.*.<end of name>` all of whose matches are filled as `name` is; else the name itself."""
    parts = name[len(prefix) + 1 :].split(".")
    for count in range(1, len(parts)):
        pattern = ".".join([prefix, "*", *parts[-count:]])
        if all(how[other] == how[name] for other in fnmatch.filter(how, pattern)):
            return pattern
    return name
