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
    )
    fig7.text = _text("fig7")
    return [fig7]
