"""XLA through JAX, compiling the same HLO text. A worker (worker.py); XLA_FLAGS are those of its process."""

import gzip
import pathlib
import re
import tempfile

import jax
import numpy as np
from jax._src.lib import xla_client

import worker

RUNS_TRACED = 5
loaded = {}  # the model at hand: executable, arguments


def hello():
    return {"version": jax.__version__, "platform": jax.devices()[0].platform}


def read_text(path, full_precision):
    """The HLO text; `full_precision` asks for f32 products of f32 operands, which XLA else may round to TF32."""
    path = pathlib.Path(path)
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    if not full_precision:
        return text
    lines = []
    for line in text.splitlines():
        if re.search(r" = f32\[[^=]*\b(dot|convolution)\(", line) and "operand_precision" not in line:
            at = line.find(", metadata=")
            at = len(line) if at < 0 else at
            line = line[:at] + ", operand_precision={highest,highest}" + line[at:]
        lines.append(line)
    return "\n".join(lines) + "\n"


def compiled(text):
    """XLA's executable of the text. JAX has no public way in; the names of the private ones have moved."""
    from_text = getattr(getattr(xla_client, "hlo", None), "hlo_module_from_text", None) or xla_client._xla.hlo_module_from_text
    computation = xla_client.XlaComputation(from_text(text).as_serialized_hlo_module_proto())
    module = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
    device = jax.devices()[0]
    options = xla_client.CompileOptions()
    if hasattr(device.client, "compile_and_load"):
        devices = xla_client.DeviceList((device,)) if hasattr(xla_client, "DeviceList") else [device]
        return device.client.compile_and_load(module, devices, options)
    return device.client.compile(module, options)


def prepare(model, inputs, full_precision=True, dump=None):
    """Compiles the model and places DIR/0.npy, 1.npy, ...; counts of XLA's own kernels in its optimised HLO."""
    loaded.clear()
    executable = compiled(read_text(model, full_precision))
    optimised = executable.hlo_modules()[0].to_string()
    if dump:
        pathlib.Path(dump).parent.mkdir(parents=True, exist_ok=True)
        with gzip.GzipFile(dump, "wb", mtime=0) as file:
            file.write(optimised.encode())
    if inputs:
        files = sorted(pathlib.Path(inputs).glob("*.npy"), key=lambda path: int(path.stem))
        loaded.update(executable=executable, arguments=[jax.device_put(array(path)) for path in files])
    return counts(optimised)


def array(path):
    """A bfloat16 array is stored as the two-byte raw type."""
    import ml_dtypes
    values = np.load(path)
    return values.view(ml_dtypes.bfloat16) if values.dtype.kind == "V" else values


def counts(optimised):
    """Instructions of the entry computation of a scheduled module that are kernels, by kind."""
    entry = optimised[optimised.index("\nENTRY ") :]
    names = re.findall(r"^\s+(?:ROOT )?%?\S+ = (?:\([^=]*?\)|\S+) ([\w-]+)\(", entry, re.MULTILINE)
    target = re.findall(r'custom_call_target="([^"]+)"', entry)
    free = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "custom-call", "copy", "while", "conditional", "call"}
    return {"kernels": sum(name not in free for name in names), "fusions": names.count("fusion"), "copies": names.count("copy"),
            "loops": names.count("while") + names.count("conditional"), "library_calls": len(target)}


def run():
    return loaded["executable"].execute(loaded["arguments"])


def wait(outputs):
    for output in outputs:
        output.block_until_ready()


def outputs(folder):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    results = [np.asarray(output) for output in run()]
    for i, value in enumerate(results):
        np.save(pathlib.Path(folder) / f"out{i}.npy", value.view("V2") if value.dtype.name == "bfloat16" else value)
    return len(results)


def measure():
    last = []

    def again():
        last[:] = run()

    return {"wall_us": worker.repeated(again, lambda: wait(last))}


def profile():
    """By CUPTI through JAX's profiler; null where the trace has no device (a CPU)."""
    wait(run())
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(RUNS_TRACED):
                wait(run())
        traces = list(pathlib.Path(folder).rglob("*.xplane.pb"))
        data = jax.profiler.ProfileData.from_file(str(traces[0])) if traces else None
    events = []
    for plane in data.planes if data else ():
        for line in plane.lines:
            if "GPU" in plane.name and line.name.startswith("Stream"):
                events += [(event.name, event.start_ns / 1e3, (event.start_ns + event.duration_ns) / 1e3) for event in line.events]
    return worker.summary(events, RUNS_TRACED) if events else None


if __name__ == "__main__":
    worker.serve({"hello": hello, "prepare": prepare, "outputs": outputs, "measure": measure, "profile": profile})
