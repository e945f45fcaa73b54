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
    all_of_them = [fig7, trap] + _deep_fusion() + _fusion_stitching()
    for dataset in all_of_them:
        dataset.text = _text(dataset.name)
    return all_of_them


def _by_hand(name, title, description, paper, inputs, configuration, large=False):
    return Dataset(name, title, description, paper, None, (), inputs, configuration, large=large, kind="micro", paper=paper)


def _deep_fusion():
    paper = "Deep Fusion and Code Generation for Tensorflow Computations on GPUs (arXiv 1811.05213), "
    attention = (
        "The softmax of attention scores and the batched product that reads it, from reduce.1 to dot.1. The picture's shapes "
        "are not in the text: these are ours. "
    )
    inputs = {"scores": normal(), "values": normal()}
    cycle = (
        "Two sums of the same two results: where one may take m1 only and the other takes m2, both together are a cycle that "
        "the paper's rule does not see."
    )
    return [
        _by_hand(
            "fs18_fig3",
            "The running example of FusionStitching 2018",
            attention + "What is shared of a block's chunk at 16 blocks fits 20 KB.",
            paper + "Figure 3",
            inputs,
            {"scores": [2, 8, 64, 64], "values": [16, 64, 32]},
        ),
        _by_hand(
            "fs18_shrink",
            "The running example of FusionStitching 2018, four times as large",
            attention + "What is shared of a block's chunk at 16 blocks does not fit 20 KB: values give up their share.",
            paper + "section 5.1.2",
            inputs,
            {"scores": [2, 8, 128, 128], "values": [16, 128, 32]},
        ),
        _by_hand(
            "fs18_cycle",
            "Fusions of one layer that would be a cycle",
            cycle,
            paper + "section 3.2",
            {"[xy]": normal()},
            {"x, y": [64, 96]},
        ),
        _by_hand(
            "fs18_sgd",
            "Weight accumulation of one layer",
            "w - 0.01 g of two matrices and a vector: independent element-wise ops of one layer, packed by shape.",
            paper + "section 3.2",
            {"[wg].*": normal()},
            {"w.1, w.2": [64, 128], "w.b": [128]},
        ),
    ]


def _fusion_stitching():
    paper = "FusionStitching (arXiv 1911.11576), "

    def attention(name, title, batch, length, large=False):
        return _by_hand(
            name,
            title,
            "Nine element-wise ops, two reductions and two batched products, as the text counts them; dot_1 makes 552 MB of "
            "two tensors of 12 MB. Its edges are ours, so that shared memory is as in Table 4.",
            paper + "Figure 1",
            {"query": normal(), "key": normal(), "value": normal(), "weight": normal(), "mask": normal()},
            {"query": [batch, length, 2], "key": [batch, 2, length], "mask": [batch, length]},
            large,
        )

    def cycle(name, title, rows, columns, large=False):
        return _by_hand(
            name,
            title,
            "Two pairs of element-wise ops that may be one kernel each, alone and not both: together they are a cycle "
            "through the products.",
            paper + "Figure 3",
            {"[xy]": normal(), "w[12]": normal(0.0, columns**-0.5)},
            {"x, y": [rows, columns], "w1, w2": [columns, columns]},
            large,
        )

    return [
        attention("fs19_fig1", "The running example of FusionStitching 2019", 16384, 94, large=True),
        attention("fs19_fig1_tiny", "The running example of FusionStitching 2019, small", 3, 13),
        cycle("fs19_cycle", "Patterns that together are a cycle", 4096, 1024, large=True),
        cycle("fs19_cycle_tiny", "Patterns that together are a cycle, small", 64, 64),
    ]
