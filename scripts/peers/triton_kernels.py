"""Kernels of Triton as PTX, without torch, a driver or a GPU."""

import importlib.util
import inspect
import os
import re
import sys
import unittest.mock

import cards
import dump

os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # what Triton 3.9 does unasked, with a warning
try:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
except ImportError as absent:
    raise dump.NotUnderstood(f"{absent}: install scripts/peers/triton-requirements.txt") from absent

# HLO's names of types and Triton's.
TYPES = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "bf16": "bf16", "s8": "i8", "s16": "i16", "s32": "i32", "s64": "i64", "u8": "u8", "u16": "u16",
         "u32": "u32", "u64": "u64", "pred": "i1"}
# Triton's scalars as arguments of a program of PTX: a float's registers are f32 whatever its type.
SCALARS = {"i1": "u8", "i32": "i32", "i64": "i64", "u64": "u64", "fp32": "f32", "fp64": "f64"}
DIVISOR = 16  # Triton's own specialisation: pointers and integers that it divides are said to


class Driver:
    """What Triton asks of a GPU while files are read and kernels compiled."""

    def __init__(self, target):
        self.card = cards.CARDS[target]

    @staticmethod
    def is_active():
        return True

    def get_current_target(self):
        return gpu_target(self.card)

    def get_current_device(self):
        return 0

    def get_active_torch_device(self):
        import torch
        return torch.device("cuda", 0)

    def get_device_interface(self):
        import torch
        return torch.cuda

    def get_device_capability(self, *_):
        return self.card["cc"]

    def get_current_stream(self, *_):
        return 0

    @property
    def utils(self):
        return self

    def get_device_properties(self, *_):
        return {"max_shared_mem": self.card["opt_in"], "multiprocessor_count": self.card["sms"], "max_num_regs": 65536, "warpSize": 32,
                "sm_clock_rate": round(self.card["ghz"] * 1e6), "mem_clock_rate": 1215000, "mem_bus_width": 5120}


def gpu_target(card):
    return GPUTarget("cuda", 10 * card["cc"][0] + card["cc"][1], 32)


def load(path, name, target):
    """(JITFunction, configurations of its autotuner) of a file that may import torch for its own tests: an absent one is a stand-in."""
    triton.runtime.driver.set_active(Driver(target))
    spec = importlib.util.spec_from_file_location("kernels", path)
    if spec is None or not os.path.exists(path):
        raise dump.NotUnderstood(f"{path}: no such file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernels"] = module
    absent = [] if importlib.util.find_spec("torch") else ["torch"]
    with unittest.mock.patch.dict(sys.modules, {name: unittest.mock.MagicMock() for name in absent}):
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise dump.NotUnderstood(f"{path}: {dump.one_line(error)}") from error
    kernel, configs = getattr(module, name, None), []
    while kernel is not None and not isinstance(kernel, triton.JITFunction):
        configs = configs or list(getattr(kernel, "configs", []))
        kernel = getattr(kernel, "fn", None)
    if kernel is None:
        there = [n for n, v in vars(module).items() if isinstance(v, (triton.JITFunction, triton.runtime.Autotuner))]
        raise dump.NotUnderstood(f"{path}: has no kernel '{name}'; there are {', '.join(there) or 'none'}")
    return kernel, configs


def constants_of(kernel):
    """Names of the parameters that are tl.constexpr."""
    return [p.name for p in kernel.params if p.is_constexpr]


def defaults_of(kernel):
    return {n: p.default for n, p in inspect.signature(kernel.fn).parameters.items() if p.default is not inspect.Parameter.empty}


def scalar_type(value):
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -2**31 <= value < 2**31 else "i64" if -2**63 <= value < 2**63 else "u64"
    return "fp32"


def compile_kernel(kernel, values, target, options):
    """`values` by parameter: ("f32" of a pointer, or) a number, or what a constexpr is. As Triton's own launcher would, an integer
    of 1 becomes a constant and what 16 divides is said to be so. (what Triton made, parameters that are its kernel's)"""
    constants = {n: values[n] for n in constants_of(kernel)}
    signature, attributes = {}, {}
    for number, name in enumerate(kernel.arg_names):
        value = values[name]
        if name in constants or value is None or (type(value) is int and value == 1):
            constants[name] = value
            signature[name] = "constexpr"
            continue
        signature[name] = f"*{TYPES[value]}" if isinstance(value, str) else scalar_type(value)
        if isinstance(value, str) or (type(value) is int and value % DIVISOR == 0):
            attributes[(number,)] = [["tt.divisibility", DIVISOR]]
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
    try:
        made = triton.compile(source, target=gpu_target(cards.CARDS[target]), options=options)
    except Exception as error:
        raise dump.NotUnderstood(f"Triton {triton.__version__} refuses {kernel.__name__} for {target}: {dump.one_line(error)}") from error
    return made, [n for n in kernel.arg_names if signature[n] != "constexpr"]


def launch(made, file, grid, arguments, scratch):
    """A step. `scratch(bytes)` gives a place for memory of the launch's own; the kernel has two pointers to it, after its arguments."""
    meta, ptx = made.metadata, made.asm["ptx"]
    blocks = grid[0] * grid[1] * grid[2]
    for size in (meta.global_scratch_size, meta.profile_scratch_size):
        arguments = [*arguments, scratch(size * blocks) if size else "u64:0"]
    entry = re.search(r"\.entry (\S+?)\(", ptx)[1]
    # Triton says how many threads in the PTX: with warps that specialise, more than num_warps.
    threads = re.search(r"\.(?:reqntid|maxntid) (\d+)", ptx)
    step = {"kernel": entry, "module": file, "grid": list(grid), "block": [int(threads[1]) if threads else 32 * meta.num_warps, 1, 1],
            "shared_bytes": meta.shared, "arguments": arguments}
    if getattr(meta, "num_ctas", 1) > 1:
        step["cluster"] = [meta.num_ctas, 1, 1]
        step["grid"][0] *= meta.num_ctas
    return step
