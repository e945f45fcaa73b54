"""What is compared: functions of the test set, random control flow, files of HLO text."""

import dataclasses
import gzip
import importlib
import pathlib
import pkgutil
import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass
class Case:
    name: str
    text: Callable[[], str]  # HLO text, or what raises XlaError
    inputs: list | None = None  # arrays by parameter number; None: what the program itself draws
    folder: pathlib.Path | None = None  # of .npy inputs, instead
    refused: str = ""  # a part of the line by which the program refuses it; empty: it must run


_functions = {}


def case(*args, name=None, refused="", values=False):
    """Decorates a function of the test set. args: shapes as "f32[8,16]", or arrays, which are its inputs.

    values   the arguments' own values are the inputs; else the program draws them
    refused  a part of the line by which the program refuses the function
    """
    def add(fn):
        title = name or fn.__name__
        if title in _functions:
            raise ValueError(f"two functions are named {title}")
        _functions[title] = (fn, args, values, refused)
        return fn
    return add


def add(title, fn, *args, **options):
    """`case` for a function that needs no definition of its own."""
    case(*args, name=title, **options)(fn)


SHORT = {"f16": jnp.float16, "bf16": jnp.bfloat16, "f32": jnp.float32, "f64": jnp.float64, "pred": jnp.bool_, "s8": jnp.int8, "s16": jnp.int16,
         "s32": jnp.int32, "s64": jnp.int64, "u8": jnp.uint8, "u16": jnp.uint16, "u32": jnp.uint32, "u64": jnp.uint64}


def shaped(argument):
    """"f32[8,16]" as a shape; an array as itself, or its shape."""
    if not isinstance(argument, str):
        return argument
    kind, dimensions = argument.rstrip("]").split("[")
    return jax.ShapeDtypeStruct(tuple(int(d) for d in dimensions.split(",") if d), SHORT[kind])


def functions():
    """The test set, in the order of its files: tests/oracle/functions/*.py."""
    import functions as package
    import xla_cpu
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        importlib.import_module(f"functions.{module.name}")

    def lowered(fn, args):
        return lambda: xla_cpu.text_of(fn, [shaped(a) for a in args])

    return [Case(title, lowered(fn, args), [np.asarray(a) for a in args] if values else None, refused=refused)
            for title, (fn, args, values, refused) in _functions.items()]


def random_control(count, seed):
    """`count` functions of random nested control flow, from seed, seed + 1, ..."""
    import random_control as generator
    import xla_cpu

    def lowered(number):
        def text():
            fn, args = generator.function(number)
            return xla_cpu.text_of(fn, args)
        return text

    return [Case(f"control_{number}", lowered(number)) for number in range(seed, seed + count)]


def files(paths, inputs=None):
    """Files of HLO text, also .gz, and all in the folders among them. `inputs`: a folder of .npy for all of them."""
    found = []
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if p.name.endswith((".hlo", ".hlo.gz")))
        elif path.is_file():
            found.append(path)
        else:
            raise FileNotFoundError(f"{path}: no such file or folder")

    def read(path):
        def text():
            data = path.read_bytes()
            return without_tuple_parameters((gzip.decompress(data) if path.suffix == ".gz" else data).decode())
        return text

    return [Case(path.name.removesuffix(".gz").removesuffix(".hlo"), read(path), folder=inputs) for path in found]


def without_tuple_parameters(text):
    """The text with an array parameter for each part of a tuple parameter of the entry: an .npy file holds one array."""
    import xla_cpu
    entry = text[text.rindex("\nENTRY "):]
    if not re.search(r" = \(.*\) parameter\(", entry):
        return text
    text = re.sub(r", entry_computation_layout=\S.*(?=\n)", "", xla_cpu.normalised(text), count=1)
    start = text.rindex("\nENTRY ")
    entry, count = [], 0

    def array_or_tuple(name, shape):
        """Appends the instructions that define `name`; parts of tuples are named name.0, name.1, ..."""
        nonlocal count
        if not shape.startswith("("):
            entry.append(f"  {name} = {shape} parameter({count})")
            count += 1
            return
        parts = split_shapes(shape[1:-1])
        for index, part in enumerate(parts):
            array_or_tuple(f"{name}.{index}", part)
        entry.append(f"  {name} = {shape} tuple({', '.join(f'{name}.{index}' for index in range(len(parts)))})")

    lines = text[start:].split("\n")
    parameters = {}
    for line in lines:
        if match := re.match(r"\s*(?:ROOT )?(\S+) = (.*) parameter\((\d+)\)", line):
            parameters[int(match[3])] = (match[1], re.sub(r"/\*.*?\*/", "", match[2]))
    for number in sorted(parameters):
        array_or_tuple(*parameters[number])
    rest = [line for line in lines[2:] if not re.match(r"\s*(?:ROOT )?\S+ = .* parameter\(\d+\)", line)]
    return text[:start] + "\n".join([*lines[:2], *entry, *rest])


def split_shapes(text):
    """The shapes between the commas that stand outside all brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]
