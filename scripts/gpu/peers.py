#!/usr/bin/env python3
"""Side by side: ours, XLA compiling the same HLO file, torch.compile and eager PyTorch, on identical inputs, in interleaved rounds.

Writes OUT/peers.jsonl (a line a workload) and OUT/tree/experiments/results/<gpu>/<date>/peers.{json,md}.
"""
import json
import pathlib
import shutil
import sys
import tempfile

import common
import graphs
from common import Failed
from worker import Worker

OURS = ("auto", "astitch", "xla", "unfused")
DEPENDENT = "+dependent"
TORCH = ("eager", "compile", "compile max-autotune")
# Tensors of 256 MB and more, far beyond any L2: the rows that make them so large, and the columns that are asked for.
BANDWIDTH = ("softmax_87382x768", "softmax_65536x1024", "softmax_16384x4096", "softmax_16384x8192", "softmax_2097152x32", "row_sum_2097152x32",
             "bias_residual_layer_norm_65536x1024", "gelu_65536x1024", "adam_65536x1024")
# The same graphs as the papers have them, below 256 MB.
AS_NAMED = ("softmax_16384x768", "softmax_16384x1024", "softmax_750000x32")
# As far as one piece can hold: compiling 20,000 ops takes XLA minutes, and inputs beyond 2 GB take long to make and to read.
MOST_OPS, MOST_BYTES = 13000, 2 << 30
FIRST = ("bert_layer", "bert", "asr", "crnn", "dien", "transformer_train", "bert_train", "adam_step", "llama_layer", "gpt2_step")
MOST_COMPARED = 1 << 22  # elements of an output; of larger ones every n-th
TOLERANCE = {"float64": 1e-10, "float32": 1e-4, "float16": 1e-2, "V2": 3e-2}  # docs/inputs.md
COMPUTED_IN = {"f16": 1e-2, "bf16": 3e-2}  # the same, of models in mixed precision whose outputs are wider


def workloads(chosen):
    """Names: the bandwidth list, micro graphs, whole models, then what is left by ops."""
    known = [d for d in common.datasets(chosen) if chosen.cpu == d["name"].endswith("_tiny")]
    if not chosen.cpu:
        known = [d for d in known if d["ops"] <= MOST_OPS and d["parameter_bytes"] <= MOST_BYTES]
    known.sort(key=lambda d: (d["kind"] != "micro", FIRST.index(d["name"]) if d["name"] in FIRST else len(FIRST), d["ops"]))
    return [*(() if chosen.cpu else BANDWIDTH + AS_NAMED), *(d["name"] for d in known)]


def text_of(chosen, name):
    """The HLO file of a dataset, or of a graph of graphs.py, which is written first."""
    if graphs.split(name):
        return graphs.write(name, chosen.out / "graphs")
    for folder in (chosen.program.parent / "datasets", common.ROOT / "datasets"):
        for suffix in (".hlo", ".hlo.gz"):
            if (folder / (name + suffix)).exists():
                return folder / (name + suffix)
    raise Failed(f"no HLO file of {name}")


def bytes_of(shapes):
    """Bytes of all arrays in shapes such as "(f32[2,3], s32[])"."""
    import math
    import re
    width = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}
    return sum(width[kind] * math.prod(int(d) for d in dims.split(",") if d) for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", shapes))


def difference(folder, reference, dtype="f32"):
    """(whether all outputs in `folder` are those in `reference` by the rule of docs/inputs.md, the largest relative error).

    `dtype` is the model's: outputs are compared no closer than what they are computed in.
    """
    import numpy as np
    worst, ok = 0.0, True
    files = sorted(reference.glob("out*.npy"))
    if not files or len(files) != len(list(folder.glob("out*.npy"))):
        return False, None
    for file in files:
        ours, theirs = (np.load(path, mmap_mode="r") for path in (folder / file.name, file))
        kind = "V2" if ours.dtype.kind == "V" else ours.dtype.name
        if ours.size != theirs.size:
            return False, None
        step = max(1, ours.size // MOST_COMPARED) | 1  # odd: all columns of a power of two get their turn
        ours, theirs = (as_doubles(values.reshape(-1)[::step]) for values in (ours, theirs))
        if kind not in TOLERANCE:
            ok = ok and bool(np.array_equal(ours, theirs))
            continue
        finite = np.isfinite(theirs)
        same = np.array_equal(np.nan_to_num(ours[~finite], nan=7.0), np.nan_to_num(theirs[~finite], nan=7.0))
        ours, theirs = ours[finite], theirs[finite]
        rtol = max(TOLERANCE[kind], COMPUTED_IN.get(dtype, 0))
        top = float(np.abs(theirs).max()) if theirs.size else 0.0
        error = np.abs(ours - theirs)
        ok = ok and same and bool((error <= (rtol / 10 * top if top else 1e-6) + rtol * np.abs(theirs)).all())
        if theirs.size:
            worst = max(worst, float((error / (np.abs(theirs) + max(float(np.sqrt(np.mean(theirs**2))), 1e-30))).max()))
    return ok, worst


def as_doubles(values):
    import numpy as np
    if values.dtype.kind == "V":  # bfloat16: the upper half of a float
        return (np.ascontiguousarray(values).view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return values.astype(np.float64)


class Absent(Exception):
    """The candidate has no version of this workload."""


class Ours:
    """One of our planners ("auto+dependent": with dependent launches); every measurement is a process of its own, which compiles from the cache."""

    def __init__(self, chosen, planner):
        self.chosen, self.planner, self.name = chosen, planner.removesuffix(DEPENDENT), f"ours {planner}"
        self.more = ("--dependent-launch",) if planner.endswith(DEPENDENT) else ()

    def prepare(self, case):
        self.case = case
        document = self._run("--outputs", case.folder / self.name)
        self.document = document
        kernels = document["kernels"] + [k for part in document.get("computations", []) for k in part["kernels"]]
        return {"kernels": document["counts"]["memory_kernels"], "library_calls": document["counts"]["library_calls"],
                "copies": document["counts"]["copies"] + document["counts"]["memsets"],
                "grid_barriers": sum(k["grid_barriers"] for k in kernels), "host_calls": document.get("host_calls", []),
                "library": {call["op"]: call["by"] for call in document.get("library_calls", [])}}

    def _run(self, *more):
        where = ("--backend", "sim") if self.chosen.cpu else ("--backend", "cuda", "--repeats", "20", *(("--tf32",) if self.chosen.tf32 else ()))
        return common.stitchwork(self.chosen, "run", self.case.path, "--planner", self.planner, "--device", self.chosen.device, *where,
                                 "--cache", "warm", "--inputs", self.case.inputs, *self.more, *more, timeout=120)

    def measure(self):
        """The first round is the run that wrote the outputs."""
        document, self.document = self.document or self._run(), None
        memory = sum(kernel["time_us"] for kernel in document["kernels"])
        if self.chosen.cpu:
            return {"simulated_us": document["time_us"], "memory_us": memory}
        whole = document["repeated"] or {"stream_us": None, "graph_us": None}  # none where the CPU took part (host_calls)
        return {"off_us": whole["stream_us"], "on_us": whole["graph_us"], "memory_us": memory}

    def profile(self):
        return None

    def release(self):
        pass


class Jax:
    """XLA, with CUDA graphs ("command buffers") or without: two processes, for flags are read once."""

    def __init__(self, chosen):
        self.chosen, self.name = chosen, "XLA (JAX)"
        # The second process takes what the first one's autotuning chose: the same kernels, and half the time.
        shared_flags = f" --xla_gpu_per_fusion_autotune_cache_dir={chosen.scratch / 'autotune'}"
        flags = {"off": "--xla_gpu_enable_command_buffer=" + shared_flags, "on": "--xla_gpu_graph_min_graph_size=1" + shared_flags}
        (chosen.scratch / "autotune").mkdir()
        here = pathlib.Path(__file__).parent / "peer_jax.py"
        shared = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONPATH": str(here.parent),
                  **({"JAX_PLATFORMS": "cpu"} if chosen.cpu else {}), **precision(chosen)}
        states = ("off",) if chosen.cpu else ("off", "on")
        self.workers = {state: Worker(f"XLA, graphs {state}", chosen.jax_python, here,
                                      {**shared, **({} if chosen.cpu else {"XLA_FLAGS": flags[state]})}, chosen.out / "jax.log")
                        for state in states}

    def prepare(self, case):
        dump = common.over_tree(self.chosen, "datasets/dumps") / f"{case.name}.hlo.gz"
        counts = {}
        for state, process in self.workers.items():
            counts = process.ask("prepare", model=str(case.path), inputs=str(case.inputs), full_precision=not self.chosen.tf32,
                                 dump=str(dump) if state == "off" else None)
        self.workers["off"].ask("outputs", folder=str(case.folder / self.name))
        return counts

    def measure(self):
        return {f"{state}_us": process.ask("measure")["wall_us"] for state, process in self.workers.items()}

    def profile(self):
        return self.workers["off"].ask("profile")

    def release(self):
        for process in self.workers.values():
            process.stop()


class Torch:
    """One way to run the PyTorch version, with CUDA graphs and without; all share a process, which holds all of a workload."""

    def __init__(self, chosen, variant, process):
        self.chosen, self.variant, self.name, self.process = chosen, variant, f"PyTorch {variant}", process
        self.states = {"off": False} if chosen.cpu else {"off": False, "on": True}

    def prepare(self, case):
        for graphs_on in self.states.values():
            if self.process.ask("prepare", model=case.name, inputs=str(case.inputs), variant=self.variant, tf32=self.chosen.tf32,
                                graphs=graphs_on) is None:
                raise Absent()
        self.process.ask("outputs", folder=str(case.folder / self.name), variant=self.variant, graphs=self.states.get("on", False))
        return {}

    def measure(self):
        times = {}
        for state, graphs_on in self.states.items():
            found = self.process.ask("measure", variant=self.variant, graphs=graphs_on)
            times[f"{state}_us"] = found["wall_us"] if found["event_us"] is None else found["event_us"]
            times[f"{state}_wall_us"] = found["wall_us"]
        return times

    def profile(self):
        return self.process.ask("profile", variant=self.variant)

    def release(self):
        self.process.stop()


def precision(chosen):
    """cuBLAS and cuDNN of any framework round f32 operands only where all are asked to."""
    return {} if chosen.tf32 else {"NVIDIA_TF32_OVERRIDE": "0"}


class Case:
    """A workload with its inputs, written once for all."""

    def __init__(self, chosen, name, folder):
        self.name, self.folder, self.path = name, pathlib.Path(folder), text_of(chosen, name)
        self.inputs = self.folder / "inputs"
        document = common.stitchwork(chosen, "inputs", self.path, "-o", self.inputs, timeout=300)
        self.bytes = sum(bytes_of(p["shape"]) for p in document["parameters"]) + bytes_of(document["result"])


def compared(chosen, name, candidates, pytorch):
    """One workload: prepares every candidate, then rounds in which each is timed once; a candidate that fails leaves with its reason."""
    with tempfile.TemporaryDirectory(dir=chosen.scratch) as folder:
        case = Case(chosen, name, folder)
        record = {"bytes": case.bytes, "rounds": chosen.rounds, "clocks": [], "variants": {}}
        if graphs.split(name):
            record["compulsory_bytes"] = graphs.compulsory_bytes(name)
        rows, present = record["variants"], []
        if pytorch is not None:
            try:
                pytorch.ask("clear")
            except Failed:  # each of its variants then says why
                pass
        for candidate in candidates:
            row = {"times": []}
            try:
                row["counts"] = candidate.prepare(case)
                present.append(candidate)
            except Absent:
                continue
            except Failed as failure:
                row["error"] = str(failure)
            rows[candidate.name] = row
        reference = next((candidate.name for candidate in present if not isinstance(candidate, Ours)), None) or \
            next((candidate.name for candidate in present), None)
        record["reference"] = reference
        for candidate in present:
            if candidate.name != reference:
                ok, error = difference(case.folder / candidate.name, case.folder / reference, chosen.computed_in.get(name))
                rows[candidate.name].update(outputs_agree=ok, max_rel_error=error)
        for _ in range(chosen.rounds):
            for candidate in list(present):
                try:
                    rows[candidate.name]["times"].append(candidate.measure())
                except Failed as failure:
                    rows[candidate.name]["error"] = str(failure)
                    present.remove(candidate)
            record["clocks"].append(common.gpu_state())
        for candidate in present:
            try:
                if traced := candidate.profile():
                    rows[candidate.name]["trace"] = traced
            except Failed as failure:
                rows[candidate.name]["trace_error"] = str(failure)
        for row in rows.values():
            keys = {key for times in row["times"] for key in times if times[key] is not None}
            row["median"] = {key: common.median([times[key] for times in row["times"] if times.get(key) is not None]) for key in sorted(keys)}
        if pytorch is not None:
            try:
                record["copy_us"] = pytorch.ask("copy", size=record.get("compulsory_bytes", case.bytes))
            except Failed as failure:
                record["copy_error"] = str(failure)
    if not present:
        raise Failed("; ".join(f"{variant}: {row['error']}" for variant, row in rows.items() if "error" in row))
    return record


def whole(row, state="on"):
    return row.get("median", {}).get(f"{state}_us") or row.get("median", {}).get("simulated_us")


def span(row):
    return row["trace"]["span_us"] if row.get("trace") else None


def best(row):
    """The shortest of all ways to run it."""
    return min((us for us in (whole(row), whole(row, "off"), span(row)) if us), default=None)


def memory(row):
    return row["trace"]["memory_us"] if row.get("trace") else row.get("median", {}).get("memory_us")


def kernels(row):
    return round(row["trace"]["memory_count"]) if row.get("trace") else row.get("counts", {}).get("kernels")


def report(chosen, results, folder):
    """One JSON with everything, and a Markdown table a reader can judge by."""
    records = {key: record for key, record in results.records.items() if "variants" in record}
    document = {"schema": "stitchwork.peers/1", "environment": common.environment(chosen), "tf32": chosen.tf32, "workloads": records,
                "failed": {record["key"]: record["error"] for record in results.failed()}}
    (folder / "peers.json").write_text(json.dumps(document, indent=1) + "\n")
    rows, large, ratios = [], [], {}
    for name, record in records.items():
        ours = record["variants"].get("ours auto", {})
        for variant, row in record["variants"].items():
            alone = ours.get("counts", {}).get("library_calls") == 0  # with products, bytes say little
            fraction = record["copy_us"] / best(row) if record.get("copy_us") and alone and best(row) else None
            rows.append([name, variant, whole(row, "off"), whole(row), span(row), memory(row), kernels(row),
                         None if fraction is None else round(100 * fraction, 1),
                         {True: "yes", False: "NO", None: "-"}[row.get("outputs_agree")] if variant != record["reference"] else "reference",
                         row.get("error", "")])
            if name in BANDWIDTH and fraction is not None:
                large.append([name, variant, best(row), 100 * fraction])
            if variant != "ours auto" and memory(row) and memory(ours):
                ratios.setdefault(variant, []).append((memory(row) / memory(ours), name))
    text = f"# Side by side, {chosen.device if not chosen.cpu else 'CPU (ours simulated)'}\n\n"
    text += common.table(["other", "workloads", "memory-intensive time over ours (auto), geometric mean", "least", "of"],
                         [[variant, len(found), common.geometric_mean([r for r, _ in found]), min(found)[0], min(found)[1]]
                          for variant, found in ratios.items()]) if ratios else ""
    if large:
        auto = sorted(row[3] for row in large if row[1] == "ours auto")
        text += "\n## Compulsory bytes over time, in % of a copy of as many bytes\n\n"
        text += (f"Ours (auto): median {common.median(auto):.1f} %, least {auto[0]:.1f} %\n\n" if auto else "") + common.table(
            ["tensor", "variant", "us", "%"], large)
    text += "\n## All\n\nMicroseconds: the whole program with CUDA graphs off and on (ours and PyTorch's by events, XLA's many runs in a row), one run " \
            "from its first kernel to its last (CUPTI), and memory-intensive kernels (ours by events with a warm L2, others by CUPTI). The part of a " \
            "copy is by the shortest of these times.\n\n"
    text += common.table(["workload", "variant", "graphs off", "graphs on", "traced", "memory", "kernels", "% of copy", "outputs agree", "failure"], rows)
    (folder / "peers.md").write_text(text)
    return folder / "peers.md"


def main():
    parser = common.options(__doc__)
    parser.add_argument("--cpu", action="store_true", help="JAX and PyTorch on the CPU, ours simulated, tiny workloads: tries the plumbing")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tf32", action="store_true", help="f32 products may round operands to TF32, for all alike")
    parser.add_argument("--jax-python", default=sys.executable, help="interpreter that has JAX")
    parser.add_argument("--torch-python", default=sys.executable, help="interpreter that has PyTorch")
    parser.add_argument("--ours", default=",".join(OURS), help="planners; NAME+dependent: with dependent launches")
    parser.add_argument("--torch", default=",".join(TORCH))
    chosen = common.begin(parser)
    names = [(name, name) for name in workloads(chosen)]
    chosen.computed_in = {d["name"]: d["dtype"] for d in common.datasets(chosen)}
    variants = [*(f"ours {p}" for p in chosen.ours.split(",")), "XLA (JAX)", *(f"PyTorch {v}" for v in chosen.torch.split(",") if v)]
    if chosen.dry_run:
        print(f"  {len(names)} workloads, {chosen.rounds} interleaved rounds of: {'; '.join(variants)}")
        print(f"  {' '.join(name for name, _ in names)}")
        return 0
    chosen.scratch = chosen.out / "scratch"
    shutil.rmtree(chosen.scratch, ignore_errors=True)
    chosen.scratch.mkdir()
    variants = [variant for variant in chosen.torch.split(",") if variant]
    here = pathlib.Path(__file__).parent
    pytorch = Worker("PyTorch", chosen.torch_python, here / "peer_torch.py", {"PYTHONPATH": str(here), **precision(chosen)},
                     chosen.out / "torch.log") if variants else None
    candidates = [*(Ours(chosen, planner) for planner in chosen.ours.split(",")), Jax(chosen),
                  *(Torch(chosen, variant, pytorch) for variant in variants)]
    results = common.Results(chosen.out / "peers.jsonl", chosen.retry)
    try:
        code = common.sweep(chosen, results, names, lambda name: compared(chosen, name, candidates, pytorch))
    finally:
        for candidate in candidates:
            candidate.release()
        shutil.rmtree(chosen.scratch, ignore_errors=True)
    print(f"  table: {report(chosen, results, common.results_folder(chosen))}")
    return code


if __name__ == "__main__":
    sys.exit(main())
