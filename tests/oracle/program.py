"""The program under test: its inputs, its runs, what they say."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess

import ml_dtypes
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]


class ProgramError(Exception):
    """What the program said where it did not do what was asked, in one line."""


@dataclasses.dataclass
class Run:
    outputs: list  # NumPy arrays; empty where the run failed
    error: str = ""  # one line, where there are no outputs
    check_ok: bool = True  # what the program's own check says
    check: str = ""


def find():
    """$STITCHWORK, else what was built here."""
    named = os.environ.get("STITCHWORK")
    for path in [pathlib.Path(named)] if named else [ROOT / "build" / preset / "cli/stitchwork" for preset in ("release", "dev")]:
        if path.exists():
            return path.resolve()
    raise ProgramError(f"{named}: no such program" if named else "build stitchwork first (./scripts/test), or name one: STITCHWORK=path")


def call(program, *words, timeout):
    """(exit code, its JSON document or None, the line it printed where it failed)."""
    command = list(map(str, (program, *words, "--json")))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return None, None, f"hangs: no result after {timeout} s"
    if done.returncode < 0:
        return done.returncode, None, f"crashes: signal {-done.returncode}"
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = None
    if document and "error" in document:
        return done.returncode, None, re.sub(r"^\S*/", "", document["error"]["message"])
    return done.returncode, document, (done.stderr.strip().splitlines() or ["no message"])[-1]


def inputs(program, model, folder, seed, timeout=60):
    """The arrays that the program fills the model's parameters with, by parameter number."""
    code, document, said = call(program, "inputs", model, "-o", folder, "--seed", seed, timeout=timeout)
    if code != 0 or document is None:
        raise ProgramError(said)
    return [load(folder / row["file"]) for row in document["parameters"]]


def run(program, model, planner, device, folder, given, sanitize=False, timeout=60):
    """Runs the model on the inputs in `given`; its outputs stand in `folder` afterwards."""
    words = ["run", model, "--planner", planner, "--device", device, "--check", "--inputs", given, "--outputs", folder, "--db", folder / "runs.db"]
    if sanitize:
        words += ["--sanitize", "mem,race,sync,init"]
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("out*.npy"):
        old.unlink()
    code, document, said = call(program, *words, timeout=timeout)
    if document is None:
        return Run([], said)
    if document.get("findings"):
        finding = document["findings"][0]
        return Run([], "finding: " + (finding.get("message") or json.dumps(finding))[:200])
    count = len(list(folder.glob("out*.npy")))
    check = document.get("check") or {}
    run_ = Run([load(folder / f"out{i}.npy") for i in range(count)], check_ok=bool(check.get("ok")),
               check=" ".join(f"{key} {value}" for key, value in check.items() if key != "ok"))
    if code != 0 and run_.check_ok:
        run_.error = said
    return run_


def load(path):
    """An .npy file of the program; bfloat16 is the two-byte raw type there."""
    array = np.load(path)
    return array.view(ml_dtypes.bfloat16) if array.dtype == np.dtype("V2") else array


def save(path, array):
    np.save(path, array.view("V2") if array.dtype == ml_dtypes.bfloat16 else array)
