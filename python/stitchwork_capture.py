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
