"""PyTorch: eager and torch.compile. A worker (worker.py). On a CPU nothing is timed by events or traced."""

import pathlib

import numpy as np
import torch

import common
import torch_models
import worker

RUNS_TRACED = 5
MODES = {"eager": None, "compile": "default", "compile max-autotune": "max-autotune-no-cudagraphs"}
loaded = {}  # by (variant, graphs): the call that is timed, with what it returned or, from a graph, overwrites
arguments = {}  # by folder of inputs, of the model at hand

on_gpu = torch.cuda.is_available()


def hello():
    return {"version": torch.__version__, "platform": "gpu" if on_gpu else "cpu"}


def clear():
    loaded.clear()
    arguments.clear()
    torch._dynamo.reset()
    if on_gpu:
        torch.cuda.empty_cache()


def tensors(inputs):
    if inputs not in arguments:
        files = sorted(pathlib.Path(inputs).glob("*.npy"), key=lambda path: int(path.stem))
        arguments[inputs] = [torch.from_numpy(np.load(path)).to("cuda" if on_gpu else "cpu") for path in files]
    return arguments[inputs]


def prepare(model, inputs, variant, tf32=False, graphs=False):
    """Compiles (or not) the model's PyTorch version; null where there is none. `graphs`: replayed from a CUDA graph."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.set_grad_enabled(False)
    function = torch_models.find(model)
    if function is None:
        return None
    values = tensors(inputs)
    if MODES[variant]:
        function = torch.compile(function, mode=MODES[variant])
    result = function(*values)
    if graphs and on_gpu:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                function(*values)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = function(*values)
        loaded[variant, graphs] = graph.replay, result
    else:
        loaded[variant, graphs] = lambda: function(*values), result
    wait()
    return {}


def wait():
    if on_gpu:
        torch.cuda.synchronize()


def outputs(folder, variant, graphs=False):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    call, result = loaded[variant, graphs]
    result = call() if not graphs else (call(), result)[1]
    wait()
    results = result if isinstance(result, (tuple, list)) else (result,)
    for i, value in enumerate(results):
        np.save(pathlib.Path(folder) / f"out{i}.npy", value.detach().cpu().numpy())
    return len(results)


def by_events(call, times=20):
    """Median of single runs between two events, as our own whole program is timed."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    us = []
    for _ in range(times):
        begin.record()
        call()
        end.record()
        end.synchronize()
        us.append(1e3 * begin.elapsed_time(end))
    return common.median(us)


def measure(variant, graphs=False):
    call, _ = loaded[variant, graphs]
    call()
    wait()
    return {"event_us": by_events(call) if on_gpu else None, "wall_us": worker.repeated(call, wait)}


def profile(variant, graphs=False):
    if not on_gpu:
        return None
    call, _ = loaded[variant, graphs]
    wait()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as trace:
        for _ in range(RUNS_TRACED):
            call()
            wait()
    events = [(event.name, event.time_range.start, event.time_range.end) for event in trace.events()
              if event.device_type == torch.autograd.DeviceType.CUDA]
    return worker.summary(events, RUNS_TRACED) if events else None


def copy(size):
    """Microseconds to copy so many bytes that `size` are read and written in all; null on a CPU."""
    if not on_gpu:
        return None
    source = torch.ones(max(16, size // 2), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    target.copy_(source)
    return by_events(lambda: target.copy_(source))


if __name__ == "__main__":
    worker.serve({"hello": hello, "clear": clear, "prepare": prepare, "outputs": outputs, "measure": measure, "profile": profile, "copy": copy})
