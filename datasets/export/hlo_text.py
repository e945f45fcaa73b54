"""From a JAX function to the HLO text that is committed: before XLA optimises anything, the same on every machine."""

import functools
import math
import re

import jax
import numpy as np
from jax._src.lib import xla_client

_SOURCE = re.compile(r' (?:source_file="[^"]*"|source_line=\d+|stack_frame_id=\d+)')
_OPERAND_INDEX = re.compile(r"/\*index=\d+\*/(?=[A-Za-z_][\w.-]*[,)])")  # of operands; those of tuple types stay
_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "f32": 4, "s32": 4, "u32": 4, "f64": 8, "s64": 8, "u64": 8}
_ENTRY_PARAMETER = re.compile(r'^  (\S+) = .* parameter\(\d+\).*metadata=\{op_name="([^"]*)"\}$', re.MULTILINE)


def lower(name, function, arguments):
    """The HLO text of `function` (a Python callable) at the abstract `arguments` (pytrees of jax.ShapeDtypeStruct).

    Unused arguments stay parameters; names of scopes and modules stay in metadata={op_name=...}.
    """

    @functools.wraps(function)
    def named(*values):
        return function(*values)

    named.__name__ = name
    # keep_unused: a parameter is part of the model's interface even where the graph ignores it.
    lowered = jax.jit(named, keep_unused=True).lower(*arguments)
    module = lowered.compiler_ir(dialect="hlo").as_hlo_module()
    return tidy(module.to_string(_print_options()))


def tidy(text):
    """Drops what depends on this machine, and gives the entry's parameters the names of the pytree they come from."""
    text = _SOURCE.sub("", text)
    text = _OPERAND_INDEX.sub("", text)
    text = re.sub(r"^HloModule jit_", "HloModule ", text)
    head, entry = text.split("\nENTRY ")
    taken = set(re.findall(r"^  (?:ROOT )?(\S+) = ", text, re.MULTILINE))
    names = {}
    for old, path in _ENTRY_PARAMETER.findall(entry):
        names[old] = _identifier(path)
    if len(set(names.values())) != len(names) or taken & set(names.values()):
        raise ValueError("two values of the module would have one name")
    entry = re.sub(r"[\w.]+", lambda word: names.get(word.group(), word.group()), entry)
    return head + "\nENTRY " + entry.rstrip("\n") + "\n"


def parses(text):
    """True where XLA's own reader takes the text; raises what it says otherwise."""
    xla_client._xla.hlo_module_from_text(text)
    return True


def run(text, values):
    """The outputs of the text on these inputs (NumPy arrays by parameter number), by XLA's CPU backend."""
    module = xla_client._xla.hlo_module_from_text(text)
    computation = xla_client.XlaComputation(module.as_serialized_hlo_module_proto())
    client = jax.devices("cpu")[0].client
    executable = client.compile(xla_client._xla.mlir.xla_computation_to_mlir_module(computation))
    return [np.asarray(output) for output in executable.execute([client.buffer_from_pyval(v) for v in values])]


def parameters(text):
    """[(number, name)] of the entry computation, by number."""
    entry = text[text.index("ENTRY ") :]
    found = re.findall(r"(\S+) = \S+ parameter\((\d+)\)", entry)
    return sorted((int(number), name) for name, number in found)


def instructions(text):
    """How many instructions the text has, those of all its computations."""
    return len(re.findall(r"[\w.-]+ = (?:\(|\w+\[)", text))


def parameter_bytes(text):
    """Bytes of the entry's parameters."""
    entry = text[text.index("ENTRY ") :]
    total = 0
    for dtype, shape in re.findall(r" = (\w+)\[([\d,]*)\]\S* parameter\(", entry):
        total += _BYTES[dtype] * math.prod(int(size) for size in shape.split(",") if size)
    return total


def _identifier(path):
    """params['encoder']['layer']['0'] -> params.encoder.layer.0"""
    path = path.replace("\\'", "'")
    path = re.sub(r"\['?([^'\]]*)'?\]", r".\1", path)
    return re.sub(r"[^\w.]", "_", path)


def _print_options():
    options = xla_client._xla.HloPrintOptions()
    options.print_percent = False
    options.print_operand_shape = False
    options.print_program_shape = False
    options.print_large_constants = True
    return options
