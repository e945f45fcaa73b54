#!/usr/bin/env python3
"""Constants of the GPU, measured, as a device file; and times of generated kernels from 1 KB to 1 GB, for the timing model.

Writes OUT/calibration.jsonl (raw numbers), OUT/kernel_times.jsonl; in OUT/tree/experiments/results/<gpu>/<date> the table
calibration.md and DEVICE.json: occupancy_model/devices/DEVICE.json with what was measured, each value with its origin.
"""
import json
import sys

import common
import graphs
from common import Failed

PARTS = ("launches", "barriers", "copies", "inflight", "l2", "instructions", "clock_ghz")
SIZES = [1 << exponent for exponent in range(10, 31, 2)]  # compulsory bytes, 1 KB to 1 GB
WIDTHS = {"softmax": (64, 1024, 8192), "layer_norm": (768,), "bias_residual_layer_norm": (1024,), "gelu": (1024,), "row_sum": (32, 4096),
          "column_sum": (256, 2048), "adam": (1024,)}


def generated():
    """Names of graphs of about each size, in every family and width."""
    names = []
    for family, widths in WIDTHS.items():
        for width in widths:
            one = graphs.compulsory_bytes(f"{family}_2x{width}") - graphs.compulsory_bytes(f"{family}_1x{width}")
            rows = sorted({max(1, round(size / one)) for size in SIZES})
            names += [f"{family}_{count}x{width}" for count in rows]
    return names


def measured(chosen, name, planner):
    path = graphs.write(name, chosen.out / "graphs")
    document = common.stitchwork(chosen, "run", path, "--planner", planner, "--backend", "cuda", "--device", chosen.device, "--repeats", "20",
                                 timeout=200)
    kernels = [{field: kernel[field] for field in ("name", "grid", "block", "grid_barriers", "registers", "time_us", "predicted_us")}
               for kernel in document["kernels"]]
    return {"compulsory_bytes": graphs.compulsory_bytes(name), "kernels": kernels, "whole": document["repeated"]}


def fit_line(points):
    """(c, k) of y = c + k x with the least squares."""
    n, sx, sy = len(points), sum(x for x, _ in points), sum(y for _, y in points)
    sxx, sxy = sum(x * x for x, _ in points), sum(x * y for x, y in points)
    k = (n * sxy - sx * sy) / (n * sxx - sx * sx)
    return (sy - k * sx) / n, k


def constants(raw, peak_gb_s, sms):
    """{field of the device file: (value, what was measured)} from the raw numbers at hand."""
    found = {}
    if launches := raw.get("launches"):
        step = launches["spin_step_us"] - launches["spin_us"] + launches["events_alone_us"]
        kernel = max(0.0, launches["empty_by_events_us"] - launches["events_alone_us"])
        found["launch_us"] = (kernel, "an empty kernel between two events, less two events alone")
        found["launch_gap_us"] = (max(0.0, launches["empty_in_a_row_us"] - kernel),
                                  f"a step of 1000 empty kernels in a row less launch_us (between kernels of 20 us: {step:.2f} us a step)")
    if rows := raw.get("barriers"):
        full = [(row["blocks"], row["per_barrier_us"]) for row in rows if row["threads"] == 1024]
        c, k = fit_line(full)
        found["grid_barrier_us"] = (c, "slope over 100 barriers of one launch, blocks of 1024 threads; fitted c + k x blocks")
        found["grid_barrier_us_per_block"] = (k, f"as grid_barrier_us, {full[0][0]} to {full[-1][0]} blocks")
    if rows := raw.get("copies"):
        best = max(rows, key=lambda row: row["gb_s"] if row["bytes"] >= 1 << 30 else 0)
        found["dram_efficiency"] = (best["gb_s"] / peak_gb_s, f"copy of {best['bytes'] >> 20} MiB read and written, {best['by']}: {best['gb_s']:.0f} GB/s")
    if rows := raw.get("inflight"):
        top = max(row["gb_s"] for row in rows)
        few = [row for row in rows if row["gb_s"] < 0.5 * top]
        if few:
            latency = common.median([sms * row["bytes_per_sm"] / row["gb_s"] for row in few])
            found["dram_latency_ns"] = (latency, "bytes in flight over bandwidth, where that is below half of the largest")
        enough = min(row["bytes_per_sm"] for row in rows if row["gb_s"] >= 0.98 * top)
        found["max_inflight_bytes_per_sm"] = (enough, f"fewest bytes in flight with 98 % of the largest read bandwidth, {top:.0f} GB/s")
    if rows := raw.get("l2"):
        best = max(rows, key=lambda row: row["gb_s"])
        found["l2_gb_s"] = (best["gb_s"], f"{best['bytes'] >> 20} MiB read 100 times past L1")
    return found


def write_device(chosen, results, folder):
    """The device file with the measured values in the place of the assumed ones."""
    raw = {part: results.records[part]["value"] for part in PARTS if "value" in results.records.get(part, {})}
    document = json.loads((common.ROOT / f"occupancy_model/devices/{chosen.device}.json").read_text())
    state = common.gpu_state()
    origin = f"measured by scripts/gpu/calibration.py on {state.get('name', '?')}, driver {state.get('driver_version', '?')}"
    found = constants(raw, document["dram_gb_s"]["value"], document["sms"]["value"])
    rows = []
    for field, (value, how) in found.items():
        value = round(value) if isinstance(document[field]["value"], int) and value >= 10 else float(f"{value:.5g}")
        rows.append([field, document[field]["value"], value, how])
        document[field] = {"value": value, "source": f"{origin}: {how}"}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in document.items()]
    (folder / f"{chosen.device}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    text = "# Calibration\n\n" + common.table(["constant", "assumed", "measured", "how"], rows)
    if "barriers" in raw:
        text += "\n## Grid barriers (AStitch, Table 6, is `one_us` at 1024 threads)\n\n" + common.table(
            list(raw["barriers"][0]), [list(row.values()) for row in raw["barriers"]])
    if "copies" in raw:
        text += "\n## Copies\n\n" + common.table(list(raw["copies"][0]), [list(row.values()) for row in raw["copies"]])
    if "instructions" in raw:
        warps = list(next(iter(raw["instructions"].values())))
        text += "\n## Warp instructions an SM and clock, by resident warps\n\n" + common.table(
            ["instruction", *map(str, warps)], [[name, *row.values()] for name, row in raw["instructions"].items()])
    (folder / "calibration.md").write_text(text)


def main():
    parser = common.options(__doc__)
    chosen = common.begin(parser)
    names = [(f"{name} {planner}", (name, planner)) for name in generated() for planner in ("astitch",)]
    if chosen.dry_run:
        print(f"  constants, through cupy.RawModule and CUDA events: {', '.join(PARTS)}")
        print(f"  {len(names)} generated kernels of {', '.join(WIDTHS)}, {SIZES[0] >> 10} KB to {SIZES[-1] >> 30} GB: "
              f"{chosen.program} run GRAPH.hlo --backend cuda --device {chosen.device} --repeats 20 --json")
        return 0
    results = common.Results(chosen.out / "calibration.jsonl", chosen.retry)
    if any(not results.done(part) for part in PARTS):
        try:
            import microbench
            bench = microbench.Bench()
        except Exception as error:  # CuPy missing, no driver, a kernel it cannot compile
            results.add("bench", {"error": common.one_line(str(error)) or type(error).__name__})
            print(f"  constants are not measured: {results.records['bench']['error']}")
        else:
            def constant(part):
                try:
                    value = getattr(bench, part)()
                except Exception as error:  # CuPy's errors have no common base
                    raise Failed(f"{type(error).__name__}: {common.one_line(str(error))}") from None
                return {"value": value, "gpu": common.gpu_state()}

            if common.sweep(chosen, results, [(part, part) for part in PARTS], constant):
                return common.TIME_IS_OUT
            write_device(chosen, results, common.results_folder(chosen))
    times = common.Results(chosen.out / "kernel_times.jsonl", chosen.retry)
    return common.sweep(chosen, times, names, lambda item: measured(chosen, *item))


if __name__ == "__main__":
    sys.exit(main())
