#!/usr/bin/env python3
"""XLA's and Inductor's real decisions: JAX's optimised HLO of every workload, and what torch.compile launches.

Writes OUT/dumps.jsonl and OUT/tree/datasets/dumps/<gpu>/: NAME.hlo.gz, and kernels.json with all counts.
"""
import json
import pathlib
import sys
import tempfile

import common
import peers
from common import Failed
from worker import Worker


def dumped(chosen, name, process):
    """Kernel counts of XLA's executable; its text is kept. Parameters are not needed for compiling."""
    path = common.over_tree(chosen, "datasets/dumps") / f"{name}.hlo.gz"
    counts = process.ask("prepare", timeout=420, model=str(peers.text_of(chosen, name)), inputs=None, full_precision=True, dump=str(path))
    return {"xla": counts, "bytes": path.stat().st_size}


def traced(chosen, name, process):
    """torch.compile's kernels by the profiler, in order of time; null where there is no PyTorch version or no GPU."""
    with tempfile.TemporaryDirectory() as folder:
        case = peers.Case(chosen, name, folder)
        if process.ask("prepare", model=name, inputs=str(case.inputs), variant="compile") is None:
            return {"inductor": None}
        traced = process.ask("profile", variant="compile")
        process.ask("clear")
        return {"inductor": traced}


def collect(chosen, results, folder, finished):
    """One JSON with all counts; once the sweep has finished, beside those of our own plans."""
    rows = {}
    for key, record in sorted(results.records.items()):
        tool, name = key.split(" ", 1)
        rows.setdefault(name, {}).update({tool: record.get(tool) or ({"error": record["error"]} if "error" in record else None)})
    for name, row in rows.items() if finished else ():
        try:
            plan = common.stitchwork(chosen, "compare", peers.text_of(chosen, name), "--planners", "xla,auto", "--device", chosen.device)
            row["ours"] = {r["planner"]: {"kernels": r["memory_kernels"], "library_calls": r["library_calls"]} for r in plan["rows"]}
        except Failed as failure:
            row["ours"] = {"error": str(failure)}
    document = {"schema": "stitchwork.dumps/1", "environment": common.environment(chosen), "workloads": rows}
    (folder / "kernels.json").write_text(json.dumps(document, indent=1) + "\n")


def main():
    parser = common.options(__doc__)
    parser.add_argument("--cpu", action="store_true", help="JAX's CPU backend over the tiny workloads: tries the plumbing")
    parser.add_argument("--jax-python", default=sys.executable, help="interpreter that has JAX")
    parser.add_argument("--torch-python", default=sys.executable, help="interpreter that has PyTorch")
    parser.add_argument("--jobs", type=int, default=3, help="JAX processes that compile at a time")
    chosen = common.begin(parser)
    known = sorted(common.datasets(chosen), key=lambda d: d["ops"])  # the largest take XLA minutes
    names = [d["name"] for d in known if chosen.cpu == d["name"].endswith("_tiny")]
    if chosen.dry_run:
        print(f"  {len(names)} workloads compiled by XLA, {chosen.jobs} at a time; those with a PyTorch version traced under torch.compile")
        print(f"  {' '.join(names)}")
        return 0
    here = pathlib.Path(__file__).parent
    shared = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONPATH": str(here), **({"JAX_PLATFORMS": "cpu"} if chosen.cpu else {})}
    spare = [Worker(f"XLA {i}", chosen.jax_python, here / "peer_jax.py", shared, chosen.out / "jax.log") for i in range(chosen.jobs)]
    torch = Worker("PyTorch", chosen.torch_python, here / "peer_torch.py", {"PYTHONPATH": str(here)}, chosen.out / "torch.log")
    workers = [*spare, torch]

    def with_spare(name):
        process = spare.pop()  # as many as jobs
        try:
            return dumped(chosen, name, process)
        finally:
            spare.append(process)

    results = common.Results(chosen.out / "dumps.jsonl", chosen.retry)
    try:
        code = common.sweep(chosen, results, [(f"xla {name}", name) for name in names], with_spare, chosen.jobs)
        if not chosen.cpu:
            code = max(code, common.sweep(chosen, results, [(f"inductor {name}", name) for name in names if "fp16" not in name],
                                          lambda name: traced(chosen, name, torch)))
    finally:
        for process in workers:
            process.stop()
    collect(chosen, results, common.over_tree(chosen, "datasets/dumps"), code == 0)
    return code


if __name__ == "__main__":
    sys.exit(main())
