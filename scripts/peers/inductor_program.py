"""Inductor's module for a graph, and what running it would launch and call: its own code runs on tensors without memory, and is written down."""

import collections
import dataclasses

import torch
import torch._inductor.async_compile
import torch._inductor.codecache
import torch._inductor.config
import torch._inductor.debug
import torch._inductor.graph
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

import aten_calls
import dump
import triton_kernels

HLO_TYPES = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int8: "s8", torch.int16: "s16", torch.int32: "s32",
             torch.int64: "s64", torch.uint8: "u8", torch.bool: "pred", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64"}
# Ops of HLO that are views in torch.
LAYOUT = {"reshape", "bitcast", "broadcast", "transpose", "slice", "dynamic-slice", "get-tuple-element"}
ALIGNMENT = 512  # of torch's caching allocator
SCALARS = {"i32": "i32", "i64": "i64", "u32": "u32", "u64": "u64", "fp32": "f32", "fp64": "f64", "i1": "u8"}


class Made(Exception):
    """Inductor has written its module: nothing of it is to be loaded or run."""


@dataclasses.dataclass
class Module:
    source: str
    nodes: dict  # name -> FX node, after all passes
    kernels: dict  # name of a kernel -> names of FX nodes, by call


def compile_graph(function, shapes):
    """`shapes`: (sizes, torch's type) of the arguments."""
    torch._inductor.config.triton.cudagraphs = False
    torch._inductor.config.compile_threads = 1
    torch._inductor.config.trace.provenance_tracking_level = 1
    made = []

    def keep(graph):
        code = graph.codegen()[0]
        kernels = collections.defaultdict(list)
        found = torch._inductor.debug._inductor_triton_kernel_to_post_grad_node_info
        for name, nodes in sorted(found.items(), key=lambda item: int(item[0].rpartition(":")[2])):
            kernels[name.rpartition(":")[0]].append(list(nodes))
        made.append(Module(getattr(code, "value", code), {node.name: node for node in graph.module.graph.nodes}, kernels))
        raise Made

    torch._inductor.graph.GraphLowering._compile_to_module = keep
    torch._inductor.graph.GraphLowering.compile_to_module = keep
    with FakeTensorMode():
        inputs = [torch.empty(size, dtype=kind, device="cuda") for size, kind in shapes]
        graph = make_fx(function, decomposition_table=select_decomp_table(), tracing_mode="fake")(*inputs)
        try:
            compile_fx_inner(graph, inputs)
        except Exception as error:
            if not made:
                raise dump.NotUnderstood(f"Inductor: {dump.one_line(error)}") from error
    if not made:
        raise dump.NotUnderstood("Inductor wrote no module: the graph computes nothing")
    return made[0]


class Kernel:
    """async_compile.triton(...) of the module: its launches are written down."""

    def __init__(self, recorder, name, source):
        self.recorder, self.name = recorder, name
        triton_helpers.set_driver_to_gpu = lambda *_: None
        self.tuner = getattr(torch._inductor.codecache.PyCodeCache.load(source), name)
        self.compiled = {}

    @property
    def configs(self):
        return self.tuner.configs

    def run(self, *arguments, stream=None, **_):
        names = [p.name for p in self.tuner.fn.params if not p.is_constexpr]
        if len(names) != len(arguments):
            raise dump.NotUnderstood(f"{self.name}: is launched with {len(arguments)} arguments, and has {', '.join(names)}")
        self.recorder.launches.append((self, dict(zip(names, arguments))))

    def compile(self, number):
        """By that configuration: what Triton makes, and which parameters are its kernel's; NotUnderstood where it refuses."""
        if number not in self.compiled:
            kept = []
            compiler = triton_heuristics.triton.compile

            def keep(*arguments, **more):
                kept.append((arguments[0], compiler(*arguments, **more)))
                raise Made

            triton_heuristics.triton.compile = keep
            try:
                self.tuner._precompile_config(self.configs[number])
            except Made:
                pass
            except Exception as error:
                raise dump.NotUnderstood(f"Triton refuses {self.name} with {self.said(number)}: {dump.one_line(error)}") from error
            finally:
                triton_heuristics.triton.compile = compiler
            source, binary = kept[0]
            self.compiled[number] = (binary, {name: kind for name, kind in source.signature.items() if kind != "constexpr"})
        return self.compiled[number]

    def said(self, number):
        config = self.configs[number]
        return ", ".join([f"{key}={value}" for key, value in sorted(config.kwargs.items())] + [f"num_warps={config.num_warps}", f"num_stages={config.num_stages}"])

    def grid(self, number, arguments):
        numbers = {name: value for name, value in arguments.items() if isinstance(value, int)}
        sizes = triton_heuristics.GridExpr.from_meta(self.tuner.inductor_meta, self.configs[number]).eval_slow(numbers)
        return [int(size) for size in sizes]


class Recorder(TorchDispatchMode):
    """Tensors have sizes and strides and no memory; what would be computed of them is written down."""

    FREE = {"empty", "empty_strided", "empty_like", "as_strided", "view", "reshape", "detach", "permute", "t", "transpose", "expand", "select", "slice", "squeeze", "unsqueeze",
            "_unsafe_view", "_reshape_alias", "alias", "unbind", "split"}

    def __init__(self):
        super().__init__()
        self.launches = []  # (Kernel, arguments by name), or (name of an ATen op, operands, results, other arguments)
        self.storages = []  # all that there were: none is freed, so that no two are taken for one

    def place(self, tensor):
        """(number of its storage, bytes from there)"""
        storage = tensor.untyped_storage()
        for number, known in enumerate(self.storages):
            if known._cdata == storage._cdata:
                return number, tensor.storage_offset() * tensor.element_size()
        self.storages.append(storage)
        return len(self.storages) - 1, tensor.storage_offset() * tensor.element_size()

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        keywords = dict(keywords or {})
        if keywords.get("device") is not None:
            keywords["device"] = torch.device("meta")
        packet = function._schema.name.split("::")[1]
        made = function(*arguments, **keywords)
        if packet.removesuffix("_") in self.FREE:
            return made
        schema = function._schema
        named = dict(zip((argument.name for argument in schema.arguments), arguments)) | keywords
        out = {argument.name for argument in schema.arguments if argument.alias_info is not None and argument.alias_info.is_write}
        operands = [value for name, value in named.items() if isinstance(value, torch.Tensor) and (name not in out or packet.endswith("_"))]
        lists = [v for value in named.values() if isinstance(value, (list, tuple)) for v in value if isinstance(v, torch.Tensor)]
        results = [value for value in (made if isinstance(made, (list, tuple)) else [made]) if isinstance(value, torch.Tensor)]
        self.launches.append((packet, operands + lists, results, {name: value for name, value in named.items() if not isinstance(value, torch.Tensor)}))
        return made


def record(module, shapes):
    """(Recorder, tensors that are the arguments, tensors that are the results)"""
    recorder = Recorder()
    torch._inductor.async_compile.AsyncCompile.triton = lambda _, name, source, **__: Kernel(recorder, name, source)
    torch._inductor.async_compile.AsyncCompile.wait = lambda *_: None
    scope = {"__name__": "inductor_module", "__file__": "inductor_module.py"}
    if ".cpp_pybinding(" in module.source or ".cpp(" in module.source:
        raise dump.NotUnderstood("Inductor puts a part of the model on the CPU")
    exec(compile(module.source, "inductor_module.py", "exec"), scope)

    def empty(size, stride, kind):
        return torch.empty_strided(size, stride, dtype=kind, device="meta")

    def reinterpret(tensor, size, stride, offset=0):
        return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)

    def check(tensor, size, stride, *_):
        if tuple(tensor.shape) != tuple(size) or any(n > 1 and a != b for n, a, b in zip(size, tensor.stride(), stride)):
            raise dump.NotUnderstood(f"a library call gives {tuple(tensor.shape)} with strides {tensor.stride()}, Inductor counts on {tuple(size)} with {tuple(stride)}")

    def settle(tensor, size, stride, kind, name=None):
        """Of a library's result. Inductor knows by torch's rules for the card how a convolution's lies in memory; tensors without a card have it row-major."""
        if name == "torch.ops.aten.convolution.default" and tuple(tensor.shape) == tuple(size) and 1 + sum((n - 1) * s for n, s in zip(size, stride)) == tensor.numel():
            tensor.as_strided_(size, stride)
        if tensor is not None:
            check(tensor, size, stride)

    scope.update(empty_strided_cuda=empty, reinterpret_tensor=reinterpret, assert_size_stride=check, assert_size_stride_grouped=lambda *_: None, assert_tensor_metadata=settle,
                 assert_alignment=lambda *_: None, copy_if_misaligned=lambda tensor: tensor, get_raw_stream=lambda *_: 0)
    with recorder:
        inputs = [torch.empty(size, dtype=kind, device="meta") for size, kind in shapes]
        for tensor in inputs:
            recorder.place(tensor)
        results = scope["call"](list(inputs))
    return recorder, inputs, list(results)


class Program:
    """Buffers and steps of dump.json. `choice`: by kernel's name the number of its configuration; the first where it says nothing."""

    def __init__(self, module, recorder, folder, choice):
        self.module, self.recorder, self.folder, self.choice = module, recorder, folder, choice
        self.buffers, self.files = {}, {}
        self.calls = collections.Counter()

    def place(self, tensor):
        number, offset = self.recorder.place(tensor)
        size = -(-max(1, self.recorder.storages[number].nbytes()) // ALIGNMENT) * ALIGNMENT
        self.buffers.setdefault(f"b{number}", {"bytes": size})
        return f"b{number}" + (f"+{offset}" if offset else "")

    def scratch(self, size):
        name = f"scratch{len(self.buffers)}"
        self.buffers[name] = {"bytes": size}
        return name

    def said(self, name, kernel=False):
        """FX nodes of that call of the kernel: what they are of the model where it is known, and whether a product is among them."""
        calls = self.module.kernels.get(name, [])
        number = self.calls[name]
        self.calls[name] += 1
        nodes = [self.module.nodes[n] for n in (calls[number] if number < len(calls) else ()) if n in self.module.nodes]
        return {"instruction": name, "ops": list(dict.fromkeys(op for node in nodes for op in ops_of(node, kernel)))}

    def file(self, kernel, number, ptx):
        name = kernel.name + (f".{number}" if number != self.choice.get(kernel.name, 0) else "") + ".ptx"
        (self.folder / name).write_text(dump.without_debug(ptx))
        return name

    def launch(self, kernel, arguments, number):
        made, signature = kernel.compile(number)
        given = []
        for name, kind in signature.items():
            value = arguments[name]
            given.append(self.place(value) if isinstance(value, torch.Tensor) else f"{SCALARS[kind]}:{value}")
        key = (kernel.name, number)
        if key not in self.files:
            self.files[key] = self.file(kernel, number, made.asm["ptx"])
        return triton_kernels.launch(made, self.files[key], kernel.grid(number, arguments), given, self.scratch)

    def steps(self):
        made = []
        for one in self.recorder.launches:
            if isinstance(one[0], Kernel):
                kernel, arguments = one
                made.append({**self.launch(kernel, arguments, self.choice.get(kernel.name, 0)), **self.said(kernel.name, kernel=True)})
            else:
                made.append(self.call(*one))
        return made

    def call(self, name, operands, results, more):
        origin = self.said(f"extern_kernels.{name}") if f"extern_kernels.{name}" in self.module.kernels else self.said(f"torch.ops.aten.{name}.default")
        plain = all(view_of(t).dense for t in results)
        if name == "zero_" and plain:
            return {"memset": self.place(results[0]), "bytes": view_of(results[0]).span * results[0].element_size(), **origin}
        if name == "copy_" and plain and len(operands) == 2 and operands[0].dtype == operands[1].dtype and operands[0].stride() == operands[1].stride():
            return {"copy": self.place(results[0]), "from": self.place(operands[1]), "bytes": view_of(results[0]).span * results[0].element_size(), **origin}
        if name == "convolution":
            keys = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
            more = {"arguments": [more[key] for key in keys]}
        if name == "topk":
            more = {"k": more["k"], "dim": more.get("dim", -1), "largest": more.get("largest", True)}
        step = {"call": f"aten::{name}", "operands": [self.place(t) for t in operands], "results": [self.place(t) for t in results], **origin}
        found = aten_calls.computes(name, [view_of(t) for t in operands], [view_of(t) for t in results], more)
        if found is None:
            return step
        text, gaps = found
        return {**step, "computes": text, "operands": step["operands"] + (step["results"] if gaps else [])}


def ops_of(node, kernel):
    """What an FX node is of the model: its instruction where that is known. A kernel that reads a view of a product does not hold the product;
    Inductor names a library call by the last view of its result."""
    instruction = node.meta.get("custom", {}).get("instruction")
    if instruction is None:
        return [f"{node.name} ({node.target})"]
    name, op = instruction
    return [] if kernel and getattr(node.target, "is_view", False) and op not in LAYOUT else [name]


def view_of(tensor):
    return aten_calls.View(HLO_TYPES[tensor.dtype], tuple(tensor.shape), tuple(tensor.stride()))
