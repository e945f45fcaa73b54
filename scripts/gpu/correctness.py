#!/usr/bin/env python3
"""Every micro graph and tiny model under every planner on the GPU: outputs against the reference; compute-sanitizer over a sample.

Writes OUT/correctness.jsonl and OUT/sanitizer.jsonl.
"""
import os
import shutil
import sys
import tempfile

import common
from common import Failed

SAMPLE = ("softmax_tiny", "layer_norm_tiny", "layer_norm_grad_tiny", "column_sum_tiny", "row_tiny", "fig7", "adam_tiny", "bert_tiny",
          "attention_tiny", "moe_layer_tiny")
# Of options that change what runs on the GPU: dependent launches overlap only where kernels follow one another, as they do in repetitions.
DEPENDENT = ("--dependent-launch", "--repeats", "3", "--cache", "warm")
OPTIONS = [(model, planner, words) for models, planners, words in (
    (("softmax_tiny", "layer_norm_grad_tiny", "adam_tiny", "attention_tiny", "bert_tiny", "moe_layer_tiny"), ("astitch", "unfused"), DEPENDENT),
    (("crnn_tiny", "segformer_b0_tiny", "unet_block_tiny"), ("auto",), ("--convolutions", "patches", "--repeats", "3"))
) for model in models for planner in planners]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
REFUSED = ("Device not supported", "not supported on this", "Unable to find injection library")


def checked(chosen, model, planner, words=("--repeats", "0")):
    document = common.stitchwork(chosen, "run", model, "--planner", planner, "--backend", "cuda", "--device", chosen.device, "--check",
                                 *words, timeout=240, may_fail=True)
    if document["check"] is None:
        raise Failed("ran, but nothing was checked")
    record = {"ok": document["check"]["ok"], "max_rel_error": document["check"]["max_rel_error"], "counts": document["counts"],
              "grid_barriers": sum(kernel["grid_barriers"] for kernel in document["kernels"]), "host_calls": len(document["host_calls"]),
              "library": sorted({call["by"] for call in document["library_calls"]}),
              "compiler": document["compiler"]}
    if not record["ok"]:
        record["error"] = f"wrong: max rel error {record['max_rel_error']}"
    return record


def sanitized(chosen, model, planner, tool):
    with tempfile.TemporaryDirectory() as folder:
        done = common.command(["compute-sanitizer", "--tool", tool, "--target-processes", "all", "--error-exitcode", "86", chosen.program,
                               "run", model, "--planner", planner, "--backend", "cuda", "--device", chosen.device, "--repeats", "0",
                               "--json", "--db", os.path.join(folder, "runs.db")], timeout=300)
    lines = [line.removeprefix("========= ") for line in (done.stdout + done.stderr).splitlines() if line.startswith("=========")]
    summary = next((line for line in reversed(lines) if "SUMMARY" in line), "")
    if refusal := next((line for line in lines if any(words in line for words in REFUSED)), None):
        return {"skipped": refusal.strip()}
    if done.returncode != 0:
        found = next((line for line in lines if line.strip() and "COMPUTE-SANITIZER" not in line), common.one_line(done.stderr))
        raise Failed(f"exit code {done.returncode}: {found.strip()}")
    if not summary:
        raise Failed("compute-sanitizer printed no summary")
    return {"ok": True, "summary": summary}


def main():
    parser = common.options(__doc__)
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1), help="runs at a time")
    chosen = common.begin(parser)
    runs = [(f"{model} {planner}", (model, planner)) for model in common.small_models(chosen) for planner in common.PLANNERS]
    runs += [(f"{model} {planner} {words[0]}", (model, planner, words)) for model, planner, words in OPTIONS]
    checks = [(f"{model} {planner} {tool}", (model, planner, tool)) for model in SAMPLE for planner in ("astitch", "xla") for tool in TOOLS]
    if chosen.dry_run:
        print(f"  {len(runs)} runs, {chosen.jobs} at a time: {chosen.program} run {runs[0][1][0]} --planner {runs[0][1][1]} --backend cuda "
              f"--device {chosen.device} --check --repeats 0 --json; {len(OPTIONS)} of them with --dependent-launch or --convolutions patches")
        print(f"  {len(checks)} under compute-sanitizer --tool {'|'.join(TOOLS)}: {', '.join(SAMPLE)} under astitch and xla")
        return 0
    results = common.Results(chosen.out / "correctness.jsonl", chosen.retry)
    code = common.sweep(chosen, results, runs, lambda item: checked(chosen, *item), chosen.jobs)
    if not shutil.which("compute-sanitizer"):
        print("  compute-sanitizer is not here: its sample is skipped")
        return code
    results = common.Results(chosen.out / "sanitizer.jsonl", chosen.retry)
    refused = next((record["skipped"] for record in results.records.values() if "skipped" in record), None)
    if refused is None:
        code = max(code, common.sweep(chosen, results, checks[:1], lambda item: sanitized(chosen, *item)))
        refused = next((record["skipped"] for record in results.records.values() if "skipped" in record), None)
    if refused:
        print(f"  compute-sanitizer does not work here: {refused}")
        return code
    return max(code, common.sweep(chosen, results, checks, lambda item: sanitized(chosen, *item), max(1, chosen.jobs // 2)))


if __name__ == "__main__":
    sys.exit(main())
