#!/usr/bin/env python3
"""The simulator's counters against Nsight Compute's on the same kernels.

Writes OUT/counters.jsonl (a line a model and planner, with both tools' numbers for every kernel) and counters.md (ratios) in
OUT/tree/experiments/results/<gpu>/<date>.
"""
import csv
import io
import pathlib
import shutil
import sys
import tempfile

import common
from common import Failed

# Our counter (docs/simulator.md): Nsight Compute's metric, and what ours is of its unit.
METRICS = {
    "inst_executed": ("smsp__inst_executed.sum", 1),
    "thread_inst_executed": ("smsp__thread_inst_executed.sum", 1),
    "gld_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 1),
    "gst_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", 1),
    "gld_transactions": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1),
    "gst_transactions": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", 1),
    "l2_read_sectors": ("lts__t_sectors_srcunit_tex_op_read.sum", 1),
    "l2_write_sectors": ("lts__t_sectors_srcunit_tex_op_write.sum", 1),
    "dram_read_transactions": ("dram__sectors_read.sum", 1),
    "dram_write_transactions": ("dram__sectors_write.sum", 1),
    "shared_load_requests": ("smsp__inst_executed_op_shared_ld.sum", 1),
    "shared_store_requests": ("smsp__inst_executed_op_shared_st.sum", 1),
    "shared_bank_conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 1),
    "achieved_occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active", 0.01),
    "sm_efficiency": ("sm__cycles_active.avg.pct_of_peak_sustained_elapsed", 0.01),
    "registers": ("launch__registers_per_thread", 1),
    "time_us": ("gpu__time_duration.sum", 1e-3),
}
# Of instructions that differ by nature: the simulator counts PTX, the GPU executes SASS.
MODELS = ("softmax", "layer_norm", "layer_norm_grad", "gelu", "gelu_tanh", "column_sum", "row_64x30000", "row_750000x32", "fig7",
          "softmax_tiny", "layer_norm_tiny", "layer_norm_grad_tiny", "adam_tiny", "column_sum_tiny", "bert_tiny", "rotary")
PLANNERS = ("astitch", "xla")


def profile(chosen, words, metrics, timeout=300):
    """[{metric: value}] of the launches of our kernels (all are called k), in order, with an empty L2 before each."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "ncu.csv"
        done = common.command(["ncu", "--csv", "--page", "raw", "--print-units", "base", "--log-file", log, "--target-processes", "all",
                               "--kernel-name-base", "function", "--kernel-name", "k", "--cache-control", "all", "--clock-control", "none",
                               "--metrics", ",".join(metrics), chosen.program, *words, "--db", pathlib.Path(folder) / "runs.db"], timeout)
        said = log.read_text() if log.exists() else ""
    rows = parse(said)
    if not rows:
        complaint = next((line for line in (said + done.stderr + done.stdout).splitlines() if "ERROR" in line or "rror" in line), "")
        raise Failed(f"ncu profiled nothing: {common.one_line(complaint) or common.one_line(done.stderr) or 'it printed no kernel'}")
    return rows


def parse(text):
    """Rows of `ncu --csv --page raw`: lines of its own, a line of names, a line of units, a line a kernel."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    found = []
    for row in rows:
        values = {}
        for name, value in row.items():
            try:
                values[name] = float(value.replace(",", ""))
            except (AttributeError, ValueError):
                continue  # units, names
        if row.get("ID", "").isdigit():
            found.append(values)
    return found


def usable(chosen):
    """The metrics that this GPU and ncu have, with the reason for those that they have not."""
    words = ("run", "softmax_tiny", "--backend", "cuda", "--device", chosen.device, "--repeats", "0")
    names = [metric for metric, _ in METRICS.values()]
    try:
        profile(chosen, words, names)
        return names, {}
    except Failed as failure:
        if not any(word in str(failure) for word in ("metric", "Metric")):
            raise
    good, refused = [], {}
    for name in names:
        try:
            profile(chosen, words, [name])
            good.append(name)
        except Failed as failure:
            refused[name] = str(failure)
    return good, refused


def compared(chosen, model, planner, metrics):
    shared = ("--planner", planner, "--device", chosen.device, "--cache", "cold")
    simulated = common.stitchwork(chosen, "run", model, *shared, "--backend", "sim", timeout=400)
    measured = profile(chosen, ("run", model, *shared, "--backend", "cuda", "--repeats", "0"), metrics)
    kernels = {kernel["id"]: kernel for kernel in simulated["kernels"]}
    order = [step["id"] for step in simulated["steps"] if step["kind"] == "kernel"]
    if simulated.get("computations"):
        raise Failed("loops and branches launch kernels in an order of their own: not compared")
    if len(order) != len(measured):
        raise Failed(f"{len(order)} kernels simulated, {len(measured)} profiled")
    rows = []
    for name, launch in zip(order, measured):
        kernel = kernels[name]
        ours = {**kernel["counters"], "registers": kernel["registers"], "time_us": kernel["time_us"]}
        theirs = {counter: launch[metric] * scale for counter, (metric, scale) in METRICS.items() if metric in launch}
        rows.append({"kernel": f"{name} {kernel['name']}", "grid": kernel["grid"], "block": kernel["block"],
                     "simulated": {counter: ours[counter] for counter in METRICS if counter in ours}, "measured": theirs})
    return {"kernels": rows}


def report(results, path):
    """Median and quartiles of simulated / measured for each counter, over kernels; then a row a kernel."""
    kernels = [(record["key"], row) for record in results.records.values() if "kernels" in record for row in record["kernels"]]
    lines = []
    for counter, (metric, _) in METRICS.items():
        ratios = sorted(row["simulated"][counter] / row["measured"][counter] for _, row in kernels
                        if row["measured"].get(counter) and counter in row["simulated"])
        both_zero = sum(1 for _, row in kernels if row["measured"].get(counter) == 0 and row["simulated"].get(counter) == 0)
        if ratios:
            lines.append([f"`{counter}`", f"`{metric}`", len(ratios), common.median(ratios), ratios[len(ratios) // 4],
                          ratios[3 * len(ratios) // 4], both_zero])
        else:
            lines.append([f"`{counter}`", f"`{metric}`", 0, None, None, None, both_zero])
    shown = ("inst_executed", "gld_transactions", "gst_transactions", "dram_read_transactions", "dram_write_transactions",
             "achieved_occupancy", "time_us")
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
        print(f"  ncu --kernel-name k --cache-control all --clock-control none --metrics {METRICS['inst_executed'][0]},... "
              f"{chosen.program} run MODEL --backend cuda --repeats 0; {len(METRICS)} metrics")
        return 0
    if not shutil.which("ncu"):
        sys.exit("Nsight Compute (ncu) is not here: no counters can be read")
    results = common.Results(chosen.out / "counters.jsonl", chosen.retry)
    try:
        metrics, refused = usable(chosen)
    except Failed as failure:
        results.add("ncu", {"error": str(failure)})
        sys.exit(f"counters cannot be read here: {failure}")
    for name, reason in refused.items():
        print(f"  without {name}: {reason}")
    code = common.sweep(chosen, results, items, lambda item: compared(chosen, *item, metrics), jobs=2)
    report(results, common.results_folder(chosen) / "counters.md")
    return code


if __name__ == "__main__":
    sys.exit(main())
