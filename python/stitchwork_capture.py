"""Writes what a JAX function or a PyTorch module computes as a file the workbench opens; docs/capture.md has examples.

    from stitchwork_capture import capture_jax
    capture_jax(fn, x, y, out="model.hlo")

One file, no dependencies but the framework itself: copy it beside your code or add this folder to PYTHONPATH.
"""

import gzip
import os
import pathlib


class CaptureError(Exception):
    """What could not be captured, and what to do about it, in one line; the framework's own error is its cause."""


def capture_jax(fn, *args, out, **kwargs):
    """Writes `fn` at these arguments as HLO text, as it is before XLA optimises anything.

    fn      a function of arrays and pytrees of arrays, jitted or not; gradients and whole training steps are functions too
    args    its arguments: arrays, jax.ShapeDtypeStruct (only shapes matter), or pytrees of them; kwargs likewise
    out     the file: .hlo or .txt, or either with .gz behind it
    Returns the path. Raises CaptureError.
    """
    path = _path(out, (".hlo", ".txt"))
    jax = _framework("jax")
    _check_callable(fn, "capture_jax(fn, x, y, out='model.hlo')")
    try:
        # keep_unused: an argument is part of the interface even where the function ignores it.
        jitted = fn if hasattr(fn, "lower") else jax.jit(fn, keep_unused=True)
        computation = jitted.lower(*args, **kwargs).compiler_ir(dialect="hlo")
    except Exception as error:
        raise CaptureError(
            f"capture_jax: JAX cannot trace {_name(fn)} at these arguments: {_first_line(error)}; it must be a function of "
            "arrays that jax.jit accepts (bind other arguments with functools.partial)"
        ) from error
    _write(path, computation.as_hlo_text(print_large_constants=True).encode())
    return path


def capture_torch(module, *args, out, **kwargs):
    """Writes a torch.nn.Module at these arguments as ONNX, weights included.

    module  in evaluation mode while it is exported (no dropout, running statistics); its mode is restored
    args    example inputs, tensors; kwargs are options of torch.onnx.export (opset_version, input_names, ...)
    out     the file: .onnx
    Returns the path. Raises CaptureError.
    """
    path = _path(out, (".onnx",), compressed=False)
    torch = _framework("torch")
    if not isinstance(module, torch.nn.Module):
        raise CaptureError(
            f"capture_torch: {_name(module)} is no torch.nn.Module; wrap a function in a module whose forward calls it"
        )
    training = module.training
    module.eval()
    temporary = path.with_name(path.name + ".part")
    try:
        with torch.no_grad():
            module(*args)  # a module that does not run says so better than its export
            torch.onnx.export(module, args, str(temporary), **({"external_data": False, "verbose": False} | kwargs))
        os.replace(temporary, path)
    except ImportError as error:
        raise CaptureError(
            f"capture_torch: torch.onnx.export needs a package: {_first_line(error)}; install it (pip install onnx onnxscript)"
        ) from error
    except Exception as error:
        raise CaptureError(
            f"capture_torch: torch.onnx.export cannot export {_name(module)}: {_cause(error)}"
        ) from error
    finally:
        module.train(training)
        temporary.unlink(missing_ok=True)
    return path


def capture_torch_training(module, loss, inputs, targets=(), *, out, **options):
    """Writes a training step of a torch.nn.Module as ONNX: its loss and the gradients of its parameters.

    module   in the mode it is in: after eval() without dropout and by running statistics
    loss     of the module's output and the targets: a function, torch.nn.functional.cross_entropy
    inputs   of the module, a tensor or several; targets likewise. options are those of torch.onnx.export
    out      the file: .onnx. Parameters, buffers, inputs and targets are its inputs, by their names; its outputs are the loss, what the step
             makes of the module's buffers, and "gradient.NAME" of every parameter that needs one
    Returns the path. Raises CaptureError.
    """
    path = _path(out, (".onnx",), compressed=False)
    torch = _framework("torch")
    if not isinstance(module, torch.nn.Module):
        raise CaptureError(f"capture_torch_training: {_name(module)} is no torch.nn.Module")
    _check_callable(loss, "capture_torch_training(module, torch.nn.functional.mse_loss, x, y, out='step.onnx')")
    inputs, targets = (tuple(x) if isinstance(x, (tuple, list)) else (x,) for x in (inputs, targets))
    temporary = path.with_name(path.name + ".part")
    try:
        graph, arguments, names, results = _joint_graph(torch, module, loss, inputs, targets)
        named = {"input_names": names, "output_names": results, "external_data": False, "verbose": False}
        torch.onnx.export(graph.eval(), arguments, str(temporary), **(named | options))
        os.replace(temporary, path)
    except ImportError as error:
        raise CaptureError(
            f"capture_torch_training: torch.onnx.export needs a package: {_first_line(error)}; install it (pip install onnx onnxscript)"
        ) from error
    except Exception as error:
        raise CaptureError(f"capture_torch_training: torch cannot export a step of {_name(module)}: {_cause(error)}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _joint_graph(torch, module, loss, inputs, targets):
    """Forward and backward as one graph without side effects (AOTAutograd), its arguments, and the names of these and of its results."""
    from torch._decomp import core_aten_decompositions
    from torch._functorch.aot_autograd import aot_export_module
    from torch.nn.attention import SDPBackend, sdpa_kernel

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, *values):
            return (loss(self.module(*values[: len(inputs)]), *values[len(inputs) :]),)

    step = Step()
    # As other ops what ONNX has no op for: some gradients, memory that is written later.
    table = dict(core_aten_decompositions())
    table[torch.ops.aten.convolution_backward.default] = _convolution_backward
    for backward in (torch.ops.aten.avg_pool2d_backward, torch.ops.aten.avg_pool3d_backward):
        table[backward.default] = _average_pool_backward
    table[torch.ops.aten._weight_norm_interface_backward.default] = _weight_norm_backward
    table[torch.ops.aten.empty_permuted.default] = lambda size, order, **options: torch.zeros(
        size, dtype=options.get("dtype"), device=options.get("device"))
    with torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
        graph, signature = aot_export_module(
            step, (*inputs, *targets), trace_joint=True, output_loss_index=0, decompositions=table)
    state = dict(step.named_parameters()) | dict(step.named_buffers())
    held = signature.inputs_to_parameters | signature.inputs_to_buffers
    given = iter((*inputs, *targets))
    labels = iter([*(f"input{i}" for i in range(len(inputs))), *(f"target{i}" for i in range(len(targets)))])
    arguments, names = [], []
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            of = held.get(node.name)
            arguments.append(next(given) if of is None else state[of].detach())
            names.append(next(labels) if of is None else of.removeprefix("module."))
    results = []
    for node in next(node for node in graph.graph.nodes if node.op == "output").args[0]:
        name = getattr(node, "name", None)
        parameter = signature.backward_signature.gradients_to_parameters.get(name)
        buffer = signature.buffers_to_mutate.get(name)
        of = "gradient." + parameter if parameter else "new." + buffer if buffer else "loss"
        results.append(of.replace("module.", "", 1))
    return graph, tuple(arguments), names, results


def _convolution_backward(gradient, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask):
    """The three gradients of a convolution, as convolutions and a sum."""
    import torch

    spatial = range(weight.dim() - 2)

    def narrowed(value, sizes):  # what the last windows leave over
        for d in spatial:
            value = value.narrow(2 + d, 0, sizes[2 + d])
        return value

    of_x = of_weight = of_bias = None
    if output_mask[0] and transposed:
        of_x = narrowed(torch.ops.aten.convolution(gradient, weight, None, stride, padding, dilation, False, [0] * len(stride), groups), x.shape)
    elif output_mask[0]:
        wanted = [x.shape[2 + d] - ((gradient.shape[2 + d] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (weight.shape[2 + d] - 1) + 1) for d in spatial]
        of_x = torch.ops.aten.convolution(gradient, weight, None, stride, padding, dilation, True, wanted, groups)
    if output_mask[1]:
        # A transposed convolution's weight is that of the convolution from its result to its operand.
        wide, narrow = (gradient, x) if transposed else (x, gradient)
        parts = []
        for a, b in zip(wide.chunk(groups, 1), narrow.chunk(groups, 1)):
            part = torch.ops.aten.convolution(a.transpose(0, 1), b.transpose(0, 1), None, dilation, padding, stride, False, [0] * len(stride), 1)
            parts.append(narrowed(part, weight.shape).transpose(0, 1))
        of_weight = torch.cat(parts) if groups > 1 else parts[0]
    if output_mask[2]:
        of_bias = gradient.sum([0, *(2 + d for d in spatial)])
    return of_x, of_weight, of_bias


def _average_pool_backward(gradient, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """Each element's part of the windows that it is in, as a transposed convolution with ones."""
    import torch

    if divisor_override:
        raise CaptureError("torch.onnx leaves out an average pool's divisor_override; multiply its result instead")
    dims = len(kernel)
    stride = stride or kernel
    padding = list(padding) * (dims // len(padding))
    sizes, given = x.shape[-dims:], gradient.shape[-dims:]
    parts = gradient.reshape(-1, 1, *given)
    for d in range(dims):
        begin = torch.arange(given[d]) * stride[d] - padding[d]
        end = (begin + kernel[d]).clamp(max=sizes[d] + padding[d])
        count = end - begin if count_include_pad else end.clamp(max=sizes[d]) - begin.clamp(min=0)
        parts = parts / count.to(x.dtype).reshape(-1, *[1] * (dims - 1 - d))
    wanted = [sizes[d] - ((given[d] - 1) * stride[d] - 2 * padding[d] + kernel[d]) for d in range(dims)]
    ones = torch.ones(1, 1, *kernel, dtype=x.dtype)
    spread = torch.ops.aten.convolution(
        parts, ones, None, stride, padding, [1] * dims, True, [max(0, w) for w in wanted], 1)
    for d in range(dims):  # the last window may reach beyond the array
        spread = spread.narrow(2 + d, 0, sizes[d])
    return spread.reshape(x.shape)


def _weight_norm_backward(gradient, v, g, norms, dim):
    """Of w = v * g / |v|, where all dimensions but `dim` are of one norm (Salimans and Kingma 2016, equation 3)."""
    others = [d for d in range(v.dim()) if d != dim]
    along = (gradient * v).sum(others, keepdim=True) / norms
    return g / norms * (gradient - v * along / norms), along


def convert_stablehlo(file, out):
    """Writes a StableHLO module, as text or bytecode (.mlir, .mlirbc), as HLO text, by the converter in jaxlib.

    file    what jax.export, torch_xla or a compiler's dump wrote
    out     the file: .hlo or .txt, or either with .gz behind it
    Returns the path. Raises CaptureError.
    """
    path = _path(out, (".hlo", ".txt"))
    try:
        module = pathlib.Path(file).read_bytes()
    except OSError as error:
        raise CaptureError(f"{file}: cannot be read: {error.strerror}") from error
    _framework("jax")
    from jax._src.lib import xla_client

    converter = getattr(xla_client, "_xla", None) or xla_client._jax
    try:
        text = _text_of_bytecode(module) if module.startswith(b"ML\xefR") else module.decode()
        computation = converter.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
        _write(path, computation.as_hlo_text(print_large_constants=True).encode())
    except CaptureError:
        raise
    except Exception as error:
        raise CaptureError(f"{file}: jaxlib cannot convert it: {_first_line(error)}") from error
    return path


def _text_of_bytecode(module):
    """Of a portable artifact, which is of a version of StableHLO, the text in jaxlib's."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir.dialects import stablehlo

    with mlir.make_ir_context() as context:
        return str(stablehlo.deserialize_portable_artifact(context, module))


def _path(out, endings, compressed=True):
    path = pathlib.Path(out)
    allowed = [*endings, *(ending + ".gz" for ending in endings if compressed)]
    if not path.name.endswith(tuple(allowed)):
        raise CaptureError(f"{path}: out must end in {' or '.join(allowed)}")
    if not path.parent.is_dir():
        raise CaptureError(f"{path}: there is no folder {path.parent}; make it first")
    return path


def _framework(name):
    try:
        return __import__(name)
    except ImportError as error:
        raise CaptureError(f"capture_{name}: {name} cannot be imported ({_first_line(error)}); pip install {name}") from error


def _check_callable(fn, usage):
    if not callable(fn):
        raise CaptureError(f"capture_jax: {_name(fn)} cannot be called; give the function itself: {usage}")


def _write(path, content):
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.write_bytes(gzip.compress(content, mtime=0) if path.name.endswith(".gz") else content)
        os.replace(temporary, path)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _name(thing):
    return getattr(thing, "__name__", None) or type(thing).__name__


def _cause(error):
    """What an error was raised from, at the bottom of the chain: exporters wrap it in advice of their own."""
    while error.__cause__ is not None:
        error = error.__cause__
    return _first_line(error)


def _first_line(error):
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
