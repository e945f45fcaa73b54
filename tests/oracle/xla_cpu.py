"""HLO text computed by XLA on the CPU.

XLA is asked for the arithmetic that the text says: no excess precision in f16 and bf16, and minimum and maximum that pass
NaN on. Its CPU code flushes subnormal results to zero; judge.py knows.
"""

import os
import re
import warnings

FLAGS = "--xla_allow_excess_precision=false --xla_cpu_enable_fast_min_max=false --xla_cpu_enable_fast_math=false"
os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " " + FLAGS).strip()
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir
from jaxlib import _hlo, _jax, xla_client

jax.config.update("jax_enable_x64", True)  # 64-bit types stay what they are

DTYPES = {"pred": "bool", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32",
          "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}


class XlaError(Exception):
    """What XLA cannot read, compile or run, in one line."""


def text_of(fn, args):
    """HLO text of a JAX function at `args`, before XLA optimises anything; 64-bit types are on where an argument has one."""
    with warnings.catch_warnings(), jax.enable_x64(any(arg.dtype.itemsize == 8 for arg in args)):
        warnings.simplefilter("ignore")  # of 64-bit types that a function asks for where they are off
        lowered = jax.jit(fn, keep_unused=True).lower(*args)
    return lowered.compiler_ir(dialect="hlo").as_hlo_text(print_large_constants=True)


# A call back into Python that gives nothing, as jax.debug.print makes it: the text has its number, not the function.
CALLBACK = re.compile(r"^ *\S+ = \(\) custom-call\(.*custom_call_target=\"xla_ffi(?:_partitioned)?_python_cpu_callback\".*\n", re.MULTILINE)


def normalised(text):
    """The text as XLA's own parser reads and prints it: one instruction a line, operands by name, no metadata.

    Calls back into Python are left out where they give nothing: XLA would call what is not there.
    """
    options = _hlo.HloPrintOptions.short_parsable()
    options.print_metadata = False
    options.print_large_constants = True
    options.print_percent = False
    options.print_operand_shape = False
    options.print_program_shape = False
    try:
        return CALLBACK.sub("", _hlo.hlo_module_from_text(text).to_string(options))
    except Exception as error:
        raise XlaError("XLA cannot read the text: " + first_line(error)) from error


def compiled(text):
    """A function from a list of NumPy arrays to the list of the outputs' arrays. Raises XlaError."""
    try:
        proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
        stablehlo = _jax.mlir.hlo_to_stablehlo(proto)
        with mlir.make_ir_context():
            module = ir.Module.parse(stablehlo)
            client = jax.devices("cpu")[0].client
            executable = client.compile_and_load(module, _jax.DeviceList((client.devices()[0],)), xla_client.CompileOptions())
    except Exception as error:
        raise XlaError("XLA cannot compile it: " + first_line(error)) from error

    def run(inputs):
        try:
            results = executable.execute_sharded([jax.device_put(value) for value in inputs]).disassemble_into_single_device_arrays()
            return [np.asarray(result[0]) for result in results]
        except Exception as error:
            raise XlaError("XLA cannot run it: " + first_line(error)) from error

    return run


def first_line(error):
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
