#!/usr/bin/env python3
"""Writes the torch_* files beside it: two small models, exported by both of PyTorch's exporters without what says
where they were made, with inputs and what PyTorch computes of them.

  pip install torch onnx onnxscript; python torch_models.py   (made with torch 2.15, onnx 1.23, onnxscript 0.7)
"""

import gzip
import pathlib

import numpy as np
import onnx
import torch

FOLDER = pathlib.Path(__file__).resolve().parent


class Encoder(torch.nn.Module):
    """Two Transformer encoder layers over token ids."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(50, 16)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(16, 5)

    def forward(self, ids, mask):
        x = self.encoder(self.embed(ids), src_key_padding_mask=mask == 0)
        return self.head(x.mean(1)), x


class Tagger(torch.nn.Module):
    """Convolutions with batch norm and pooling, then a bidirectional LSTM: a text recogniser in small."""

    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3, padding=1),
            torch.nn.BatchNorm2d(4),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(4, 8, 3, padding=1, groups=2),
            torch.nn.SiLU(),
            torch.nn.AdaptiveAvgPool2d((1, None)),
        )
        self.lstm = torch.nn.LSTM(8, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.out = torch.nn.Linear(12, 4)

    def forward(self, image):
        x = self.features(image).squeeze(2).transpose(1, 2)
        return torch.log_softmax(self.out(self.lstm(x)[0]), -1)


def without_origin(model):
    """Stack traces and paths of the machine are dropped."""
    parts = [model, model.graph, *model.functions]
    for graph in [model.graph, *model.functions]:
        parts += graph.node
    for values in (model.graph.initializer, model.graph.input, model.graph.output, model.graph.value_info):
        parts += values
    for part in parts:
        del part.metadata_props[:]
        part.ClearField("doc_string")
    return model


def save(name, module, args, script, dynamo):
    module.eval()
    with torch.no_grad():
        outputs = module(*args)
    for kind, arrays in (("in", args), ("out", outputs if isinstance(outputs, tuple) else (outputs,))):
        for i, array in enumerate(arrays):
            np.save(FOLDER / f"{name}.{kind}{i}.npy", array.numpy())
    for how, options in (("script", script), ("dynamo", dynamo)):
        path = FOLDER / f"{name}_{how}.onnx"
        torch.onnx.export(module, args, str(path), dynamo=how == "dynamo", external_data=False, verbose=False, **options)
        content = without_origin(onnx.load(str(path))).SerializeToString()
        path.unlink()
        with open(f"{path}.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as out:
            out.write(content)


def main():
    torch.manual_seed(0)
    ids = torch.randint(0, 50, (3, 7))
    mask = torch.ones(3, 7, dtype=torch.int64)
    mask[1, 5:] = 0
    mask[2, 2:] = 0
    names = {"input_names": ["ids", "mask"], "output_names": ["logits", "hidden"]}
    axes = {0: "batch", 1: "sequence"}
    dims = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")}
    save("torch_encoder", Encoder(), (ids, mask), names | {"dynamic_axes": {"ids": axes, "mask": axes}},
         names | {"dynamic_shapes": {"ids": dims, "mask": dims}})
    tagger = Tagger()
    tagger.features[1].running_mean.uniform_(-1, 1)
    tagger.features[1].running_var.uniform_(0.5, 1.5)
    names = {"input_names": ["image"], "output_names": ["scores"]}
    save("torch_tagger", tagger, (torch.randn(2, 1, 8, 10),), names, names)


main()
