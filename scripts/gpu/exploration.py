#!/usr/bin/env python3
"""Mini-batches of training steps explored on the GPU, beside what modelled mini-batches choose, run there.

Writes OUT/exploration.jsonl (a line a model and planner) and exploration.md in OUT/tree/experiments/results/<gpu>/<date>.
"""
import os
import sys
import tempfile

import common

MODELS = ("scrnn_tiny", "stacked_lstm_tiny", "bert_layer", "bert_train_tiny")
PLANNERS = ("astra-fk", "astra")
BATCHES = 250  # of a GPU's minutes; products and their kernels come first


def explored(chosen, model, planner):
    """Measured mini-batches, and the modelled exploration's plan run in the same call: one source of times."""
    shared = (model, "--planner", planner, "--device", chosen.device)
    measured = common.stitchwork(chosen, "explore", *shared, "--times", "measured", "--check", "--batches", str(BATCHES), timeout=400)
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "plan.json")
        modelled = common.stitchwork(chosen, "explore", *shared, "-o", plan, timeout=200)
        run = common.stitchwork(chosen, "run", "--plan", plan, "--device", chosen.device, "--backend", "cuda", "--cache", "warm", "--check",
                                timeout=200)
    best = measured["best"]
    kernels = sorted(set(best["bindings"].values()) & set(measured["product_kernels"])) if best else []
    return {"minibatches": len(measured["minibatches"]), "done": measured["done"], "first_us": measured["first_us"],
            "best_us": measured["best_us"], "points_overhead": measured["points_overhead"], "kernels": kernels,
            "modelled_us": modelled["best_us"], "modelled_plan_us": (run.get("repeated") or {}).get("stream_us")}


def report(results, path):
    rows = [[key, r["minibatches"], "yes" if r["done"] else "no", r["first_us"], r["best_us"], r["first_us"] / r["best_us"],
             r["modelled_plan_us"], r["modelled_us"], 100 * r["points_overhead"], ", ".join(r["kernels"])]
            for key, r in ((record["key"], record) for record in results.records.values() if "minibatches" in record)]
    heads = ["model, planner", "mini-batches", "all tried", "first us", "best us", "first / best", "the modelled choice, run, us",
             "as it was modelled, us", "events cost, %", "kernels of products"]
    path.write_text("# Mini-batches explored on the GPU\n\n" + common.table(heads, rows))


def main():
    chosen = common.begin(common.options(__doc__))
    items = [(f"{model} {planner}", (model, planner)) for model in MODELS for planner in PLANNERS]
    if chosen.dry_run:
        print(f"  {len(items)} items, {', '.join(MODELS)} by {' and '.join(PLANNERS)}: {chosen.program} explore MODEL --times measured --check")
        print(f"  --batches {BATCHES}, and the plan of {chosen.program} explore MODEL run with --backend cuda")
        return 0
    results = common.Results(chosen.out / "exploration.jsonl", chosen.retry)
    code = common.sweep(chosen, results, items, lambda item: explored(chosen, *item))
    report(results, common.results_folder(chosen) / "exploration.md")
    return code


if __name__ == "__main__":
    sys.exit(main())
