"""What the pieces of scripts/gpu/all share: options, results that resume, the program, the time limit."""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import cuda_libraries

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIME_IS_OUT = 9  # exit code: what is left is done by the next call
PLANNERS = ("unfused", "xla", "xla+atm", "tvm", "tvm-duplicating", "astitch-no-dominant-merging", "astitch", "auto")


class Failed(Exception):
    """An item that failed, in one line; it is recorded and the sweep goes on."""


class TimeIsOut(Exception):
    """The piece's time ended within an item: nothing is recorded, the next call does it."""


_end = None  # of the piece, by time.monotonic()


def within(timeout):
    """(seconds that may be waited, whether the end of the piece cut them short)."""
    left = timeout if _end is None else max(1.0, _end - time.monotonic())
    return min(timeout, left), left < timeout


def find_program():
    """The bundle's wrapper, else what was built here; a packed bundle is unpacked first."""
    bundle = ROOT / "build/bundle"
    if not bundle.exists() and bundle.with_suffix(".tar.gz").exists():
        subprocess.run(["tar", "-C", bundle.parent, "-xzf", bundle.with_suffix(".tar.gz")], check=True)
    for program in (bundle / "stitchwork", *(ROOT / "build" / preset / "cli/stitchwork" for preset in ("release", "dev"))):
        if program.exists():
            return program
    return None


def options(description):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("-o", "--out", type=pathlib.Path, default=ROOT / "build/gpu", help="folder of the results")
    parser.add_argument("--program", type=pathlib.Path, default=None, help="stitchwork; default: build/bundle/stitchwork, else build/*")
    parser.add_argument("--device", default="h200")
    parser.add_argument("--minutes", type=float, default=8.5, help="after these no further item is begun")
    parser.add_argument("--dry-run", action="store_true", help="print the items and what each would run")
    parser.add_argument("--retry", action="store_true", help="do again what failed")
    parser.add_argument("--items", default="", help="only those whose key contains one of these words, joined by commas")
    return parser


def begin(parser, arguments=None):
    """Parsed options with `program` and the time at which no further item begins."""
    chosen = parser.parse_args(arguments)
    chosen.program = chosen.program or find_program()
    if chosen.program is None:
        sys.exit("no stitchwork: make build/bundle with scripts/bundle, or name one with --program")
    global _end
    chosen.deadline = time.monotonic() + 60 * chosen.minutes
    _end = chosen.deadline + 20  # what an item under way may take beyond it
    os.environ.setdefault("STITCHWORK_CUDA_LIBRARIES", ":".join(cuda_libraries.folders()))  # else the bundle asks at every run
    if not chosen.dry_run:
        results_folder(chosen)
    return chosen


class Results:
    """A JSON line for each item, flushed as it is written; `key` tells items apart. The last line of a key counts."""

    def __init__(self, path, retry=False):
        self.path, self.retry, self.records = pathlib.Path(path), retry, {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                try:
                    record = json.loads(line)
                except ValueError:
                    continue  # the line a stop cut short
                self.records[record["key"]] = record

    def done(self, key):
        return key in self.records and not (self.retry and "error" in self.records[key])

    def add(self, key, record):
        record = {"key": key, **record}
        self.records[key] = record
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def failed(self):
        return [record for record in self.records.values() if "error" in record]


def sweep(chosen, results, items, action, jobs=1):
    """Runs action(item) for each (key, item) without a result; a Failed is recorded. The exit code of the piece."""
    words = [word for word in chosen.items.split(",") if word]
    items = [(key, item) for key, item in items if not words or any(word in key for word in words)]
    left = [(key, item) for key, item in items if not results.done(key)]

    def one(key, item):
        if time.monotonic() > chosen.deadline:
            return None
        begun = time.monotonic()
        try:
            record = action(item)
        except Failed as failure:
            record = {"error": str(failure)}
        except TimeIsOut:
            # What began late has more time in the next call; what had most of this one will not do.
            if begun > chosen.deadline - 50 * chosen.minutes:
                return None
            record = {"error": f"takes longer than a whole piece of {chosen.minutes:.3g} minutes"}
        return key, {**record, "seconds": round(time.monotonic() - begun, 2)}

    finished = 0

    def outcomes():
        if jobs == 1:  # in this thread: CUDA libraries keep state by thread
            yield from (one(key, item) for key, item in left)
            return
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for future in concurrent.futures.as_completed([pool.submit(one, key, item) for key, item in left]):
                yield future.result()

    for outcome in outcomes():
        if outcome is None:
            continue
        key, record = outcome
        results.add(key, record)
        finished += 1
        if "error" in record:
            print(f"  {key}: {record['error']}", flush=True)
    print(f"  {results.path.name}: {len(items) - len(left) + finished} of {len(items)} done, "
          f"{len(results.failed())} failed, {finished} in this call", flush=True)
    return 0 if finished == len(left) else TIME_IS_OUT


def command(words, timeout=120, environment=None):
    """The completed process; Failed where it takes longer."""
    timeout, cut = within(timeout)
    try:
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout,
                              env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        raise TimeIsOut() if cut else Failed(f"took longer than {timeout} s: {' '.join(map(str, words[:4]))} ...") from None
    except OSError as error:
        raise Failed(f"{words[0]}: {error.strerror}") from None


def one_line(text):
    """The first line that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:500]


def stitchwork(chosen, *words, timeout=120, may_fail=False):
    """The document that `stitchwork WORDS --json` prints. Failed with its message, unless a document came with a failed check."""
    with tempfile.TemporaryDirectory() as folder:
        store = ["--db", os.path.join(folder, "runs.db")] if words[0] == "run" else []
        done = command([chosen.program, *words, *store, "--json"], timeout)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        raise Failed(one_line(done.stderr) or f"exit code {done.returncode} and no document") from None
    if "error" in document:
        raise Failed(one_line(document["error"]["message"]))
    if done.returncode != 0 and not may_fail:
        raise Failed(f"exit code {done.returncode}: {one_line(done.stderr)}")
    return document


def datasets(chosen):
    """[{name, kind, large, ops, dtype, ...}], sorted by name."""
    return stitchwork(chosen, "datasets")["datasets"]


def small_models(chosen):
    """Micro graphs and the models small enough to be executed by the CPU reference."""
    return [d["name"] for d in datasets(chosen) if d["kind"] == "micro" or d["name"].endswith("_tiny")]


def gpu_state():
    """Name, driver, clocks and power of the GPU by nvidia-smi; {} where there is none."""
    if not shutil.which("nvidia-smi"):
        return {}
    base = ("name", "driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm", "power.draw", "temperature.gpu")
    for fields in ((*base, "clocks_event_reasons.active"), base, base[:2]):  # names that a driver does not know fail the whole query
        done = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip():
            return dict(zip(fields, (value.strip() for value in done.stdout.splitlines()[0].split(","))))
    return {}


def environment(chosen):
    """Where and with what something was measured."""
    version = command([chosen.program, "--version"]).stdout.splitlines()
    return {"gpu": gpu_state(), "date": datetime.date.today().isoformat(), "stitchwork": version[0] if version else "",
            "packages": {name: package_version(name) for name in ("jax", "jaxlib", "torch", "triton", "cupy-cuda13x", "numpy")}}


def package_version(name):
    from importlib import metadata
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def slug(text):
    """A name for a folder: "NVIDIA H200" is nvidia-h200."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def over_tree(chosen, folder, *more):
    """OUT/tree/FOLDER/<gpu>/...: what is laid over the repository when results are taken home."""
    path = chosen.out.joinpath("tree", folder, slug(gpu_state().get("name", "cpu")), *more)
    path.mkdir(parents=True, exist_ok=True)
    return path


def results_folder(chosen):
    return over_tree(chosen, "experiments/results", datetime.date.today().isoformat())


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def geometric_mean(values):
    import math
    values = [value for value in values if value and value > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def table(heads, rows):
    """A Markdown table; numbers are set right and None is a dash."""
    def cell(value):
        return "-" if value is None else f"{value:.3g}" if isinstance(value, float) and abs(value) < 100 else \
            f"{value:,.0f}" if isinstance(value, float) else str(value)

    numeric = [all(isinstance(row[i], (int, float, type(None))) for row in rows) for i in range(len(heads))]
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join("---:" if n else "---" for n in numeric) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(cell, row)) + " |" for row in rows]) + "\n"
