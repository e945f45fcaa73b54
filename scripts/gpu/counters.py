#!/usr/bin/env python3
"""The simulator's counters against Nsight Compute's on the same kernels.

Writes OUT/counters.jsonl (a line a model and planner, with both tools' numbers for every kernel) and counters.md (ratios) in
OUT/tree/experiments/results/<gpu>/<date>.
"""
import sys

import common
from common import Failed

# Of instructions that differ by nature: the simulator counts PTX, the GPU executes SASS.
MODELS = ("softmax", "layer_norm", "layer_norm_grad", "gelu", "gelu_tanh", "column_sum", "row_64x30000", "row_750000x32", "fig7",
          "softmax_tiny", "layer_norm_tiny", "layer_norm_grad_tiny", "adam_tiny", "column_sum_tiny", "bert_tiny", "rotary")
PLANNERS = ("astitch", "xla")


def counted(chosen, model, *words, **more):
    """The document of a run whose kernels `stitchwork run --counters` gave the counters of Nsight Compute."""
    return common.stitchwork(chosen, "run", model, "--device", chosen.device, "--backend", "cuda", "--repeats", "0", "--counters", *words, **more)


def compared(chosen, model, planner):
    shared = ("--planner", planner, "--cache", "cold")
    simulated = common.stitchwork(chosen, "run", model, "--device", chosen.device, *shared, "--backend", "sim", timeout=400)
    measured = counted(chosen, model, *shared, timeout=400)
    rows = []
    for ours, theirs in zip(simulated["kernels"], measured["kernels"], strict=True):
        if (ours["id"], ours["source_sha256"]) != (theirs["id"], theirs["source_sha256"]):
            raise Failed(f"{ours['id']} was compiled from another source for the GPU than for the simulator")
        counters = theirs["counters"] or {}
        values = {**ours["counters"], "registers": ours["registers"], "duration_us": ours["time_us"]}
        rows.append({"kernel": f"{ours['id']} {ours['name']}", "grid": ours["grid"], "block": ours["block"],
                     "simulated": {counter: values[counter] for counter in counters if counter in values},
                     "measured": counters})
    return {"kernels": rows, "metrics": measured["metrics"]}


def report(results, path):
    """Median and quartiles of simulated / measured for each counter, over kernels; then a row a kernel."""
    kernels = [(record["key"], row) for record in results.records.values() if "kernels" in record for row in record["kernels"]]
    metrics = {counter: metric for record in results.records.values() for counter, metric in record.get("metrics", {}).items()}
    lines = []
    for counter, metric in metrics.items():
        ratios = sorted(row["simulated"][counter] / row["measured"][counter] for _, row in kernels
                        if row["measured"].get(counter) and counter in row["simulated"])
        both_zero = sum(1 for _, row in kernels if row["measured"].get(counter) == 0 and row["simulated"].get(counter) == 0)
        if ratios:
            lines.append([f"`{counter}`", f"`{metric}`", len(ratios), common.median(ratios), ratios[len(ratios) // 4],
                          ratios[3 * len(ratios) // 4], both_zero])
        else:
            lines.append([f"`{counter}`", f"`{metric}`", 0, None, None, None, both_zero])
    shown = ("inst_executed", "gld_transactions", "gst_transactions", "dram_read_transactions", "dram_write_transactions",
             "achieved_occupancy", "duration_us")
    rows = [[key, row["kernel"], *(row["simulated"][counter] / row["measured"][counter] if row["measured"].get(counter) else None
                                   for counter in shown)] for key, row in kernels]
    path.write_text("# Simulated over measured counters\n\n" +
                    common.table(["counter", "Nsight Compute", "kernels", "median", "quarter below", "quarter above", "zero in both"], lines) +
                    "\n" + common.table(["model, planner", "kernel", *shown], rows))


def main():
    chosen = common.begin(common.options(__doc__))
    items = [(f"{model} {planner}", (model, planner)) for model in MODELS for planner in PLANNERS]
    if chosen.dry_run:
        print(f"  {len(items)} items, {', '.join(MODELS)} under {' and '.join(PLANNERS)}: {chosen.program} run MODEL --backend sim, and")
        print(f"  {chosen.program} run MODEL --backend cuda --repeats 0 --counters, which starts ncu --kernel-name k --cache-control all")
        return 0
    results = common.Results(chosen.out / "counters.jsonl", chosen.retry)
    try:
        counted(chosen, "softmax_tiny")
    except Failed as failure:
        results.add("ncu", {"error": str(failure)})
        sys.exit(f"counters cannot be read here: {failure}")
    code = common.sweep(chosen, results, items, lambda item: compared(chosen, *item), jobs=2)
    report(results, common.results_folder(chosen) / "counters.md")
    return code


if __name__ == "__main__":
    sys.exit(main())
