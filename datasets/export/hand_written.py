"""Graphs given as HLO text by hand: their text is the committed file itself, only the .json is written."""

import pathlib

from graphs import Dataset, constant, normal, uniform


def _text(name):
    return (pathlib.Path(__file__).resolve().parent.parent / f"{name}.hlo").read_text()


def datasets():
    fig7 = Dataset(
        "fig7",
        "The running example of AStitch",
        "Two row reductions of unlike shapes joined by power and broadcast; the exponent is a parameter, so that power "
        "stays a power. It agrees with all that the text says of the figure on a V100.",
        "AStitch (ASPLOS 2022), Figure 7-(a)",
        None,
        (),
        {
            "parameter.1": normal(),
            "parameter.2": uniform(0.5, 1.5),
            # power.1 is about 256 squared: a parameter.3 near 1 would be lost in the rounding of reduce.2.
            "parameter.3": normal(0.0, 65536.0),
            "exponent": constant(2),
        },
        {"reduce.1": [4096, 256], "reduce.2": [64, 4096]},
        kind="micro",
        paper="AStitch (ASPLOS 2022), Figure 7-(a)",
    )
    trap = Dataset(
        "remote_trap",
        "The cycle trap of remote stitching",
        "A feeds B and D feeds C, each through a library call. A and C, of one shape, do not reach each other, nor do B and "
        "D; but once A and C share a kernel, D reaches B through it. Two kernels are enough: {A, D} and {B, C}.",
        "Reachability must be kept on the contracted graph: AStitch (ASPLOS 2022), section 4.1",
        None,
        (),
        {
            "*.in": normal(),
            "a.weight": normal(0.0, 0.176777),
            "d.weight": normal(0.0, 0.25),
        },
        {"a, c": [64, 32], "b, d": [64, 16]},
        kind="micro",
    )
    for dataset in (fig7, trap):
        dataset.text = _text(dataset.name)
    return [fig7, trap]
