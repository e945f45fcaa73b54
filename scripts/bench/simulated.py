"""Runs of `stitchwork` in the simulator, for the scripts beside this file."""
import json, os, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def document(program, *arguments):
    """What a command prints under --json; ends the script with its error where it fails."""
    command = [program, *arguments, "--json"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: {result.stdout}{result.stderr}")
    return json.loads(result.stdout)


def run(program, workload, device, planner, store, *more):
    return document(program, "run", workload, "--planner", planner, "--device", device, "--db", store, *more)


def micro_graphs(program):
    return [d["name"] for d in document(program, "datasets")["datasets"] if d["kind"] == "micro"]
