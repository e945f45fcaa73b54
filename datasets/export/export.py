#!/usr/bin/env python3
"""Exports the datasets of this folder from JAX; datasets/README.md says how to run it.

  export.py                  writes <name>.hlo and <name>.json of every dataset, and their goldens
  export.py softmax bert_base
  export.py --check [NAME...]  writes nothing; exit 1 where a committed file is not what an export gives now
  export.py --out DIR NAME...  writes to DIR; also models that are not committed (rnn.evaluation)
"""

import argparse
import fnmatch
import gzip
import hashlib
import importlib.metadata
import json
import os
import pathlib
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
# Golden outputs round where the text says: f16 and bf16 values are not kept in f32 between ops.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false --xla_allow_excess_precision=false")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import jax.numpy as jnp

import bert
import dien
import fission
import golden
import gpt2
import graphs
import hand_written
import hlo_text
import korch
import llama
import moe
import recurrent
import rnn
import segformer
import speech
import stand_ins
import tensorflow_examples
import training
import transformer
import translation
import vision

FOLDER = pathlib.Path(__file__).resolve().parent.parent
_DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
PACKAGES = ("jax", "jaxlib", "flax", "transformers", "numpy")


def weights_of(dataset, names):
    """Patterns of the parameters that every run is given the same values of: a training step's change."""
    if dataset.kind not in ("layer", "inference", "decoding"):
        return []
    return [pattern for pattern in ("params.*", "variables.*") if fnmatch.filter(names, pattern)]


def main():
    arguments = _arguments()
    folder = pathlib.Path(arguments.out).resolve() if arguments.out else FOLDER
    known = {dataset.name: dataset for dataset in _all() + (rnn.evaluation() if arguments.out else [])}
    if arguments.out and (arguments.check or not arguments.names):
        sys.exit("export.py: --out wants names and no --check")
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        sys.exit(f"export.py: no dataset {unknown[0]!r}; known: {' '.join(known)}")
    different = []
    for name in arguments.names or known:
        files = export(known[name], folder)
        for path in set((folder / "golden" / name).glob("*.npy")) - set(files):
            different.append(path)
            if not arguments.check:
                path.unlink()
        for path, content in files.items():
            if _same(known[name], path, content):
                continue
            different.append(path)
            if not arguments.check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        print(f"{name}: {'checked' if arguments.check else 'written'}", file=sys.stderr)
    if not arguments.check:
        return 0
    for path in different:
        print(f"{path.relative_to(FOLDER.parent)}: not what this export gives")
    return 1 if different else 0


def _same(dataset, path, content):
    """True where the file has this content already: golden outputs up to rounding, texts as they are uncompressed."""
    if not path.exists():
        return False
    if path.name.startswith("out"):
        return golden.close(dataset, path, content)
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()) == gzip.decompress(content)
    return path.read_bytes() == content


def export(dataset, folder):
    """{path: bytes} of the files of one dataset."""
    if dataset.function is None:
        text, exporter = dataset.text, None
    else:
        text = hlo_text.lower(dataset.name, dataset.function, dataset.arguments)
        exporter = {
            "script": "datasets/export/export.py",
            "function": f"{dataset.function.__module__}.{dataset.function.__qualname__.split('.')[0]}",
            "versions": {package: importlib.metadata.version(package) for package in PACKAGES + dataset.packages},
        }
    hlo_text.parses(text)
    names = [name for _, name in hlo_text.parameters(text)]
    for key in dataset.inputs:
        if not fnmatch.filter(names, key):
            raise ValueError(f"{dataset.name}: inputs.{key} names no parameter")
    file, content = f"{dataset.name}.hlo", text.encode()
    if dataset.large and exporter:
        file, content = file + ".gz", gzip.compress(content, mtime=0)
    about = {
        "schema": "stitchwork.dataset/1",
        "name": dataset.name,
        "title": dataset.title,
        "description": dataset.description,
        "source": dataset.source,
        "configuration": dataset.configuration,
        "kind": dataset.kind,
        **{key: value for key in ("paper", "substitution") if (value := getattr(dataset, key))},
        **({"framework": "JAX"} if exporter else {}),
        "dtype": _DTYPES[jnp.dtype(dataset.dtype).name],
        "licence": "Apache-2.0",
        "exporter": exporter,
        "ops": hlo_text.instructions(text),
        "parameter_bytes": hlo_text.parameter_bytes(text),
        "hlo": {"file": file, "sha256": hashlib.sha256(text.encode()).hexdigest()},
        **({"weights": weights} if (weights := weights_of(dataset, names)) else {}),
        "inputs": dataset.inputs,
    }
    if dataset.large:
        about["size"] = "large"
    files = {
        folder / file: content,
        folder / f"{dataset.name}.json": (json.dumps(about, indent=2) + "\n").encode(),
    }
    if dataset.golden:
        for tensor, content in golden.tensors(dataset, text).items():
            files[folder / "golden" / dataset.name / tensor] = content
    return files


def _all():
    modules = (bert, dien, fission, gpt2, korch, llama, moe, recurrent, rnn, segformer, speech, training, transformer, translation)
    modules += (vision, tensorflow_examples, stand_ins, hand_written)
    return graphs.micro_graphs() + [dataset for module in modules for dataset in module.datasets()]


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="datasets to export (default: all)")
    parser.add_argument("--check", action="store_true", help="compare with the committed files instead of writing them")
    parser.add_argument("--out", metavar="DIR", help="write there; --check compares with the committed files alone")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
