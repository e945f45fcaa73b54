"""A framework in a process of its own, driven by JSON lines: what it breaks is its own, and its flags are of the whole process.

serve() is the worker's side, Worker the caller's. A request is {"do": NAME, ...}; the answer {"value": ...} or {"error": "one line"}.
"""

import json
import os
import select
import subprocess
import sys
import time

import common
import kernel_names


def serve(handlers):
    """Answers requests with handlers[NAME](**rest) until its input ends. What libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"value": handlers[request.pop("do")](**request)}
        except Exception as error:  # whatever a framework throws is the item's failure
            answer = {"error": f"{type(error).__name__}: {common.one_line(str(error))}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


class Worker:
    """Starts the script when it is first asked; a worker that dies or takes too long is started anew for the next request."""

    def __init__(self, name, python, script, environment, log):
        self.name, self.words, self.log, self.process = name, [str(python), str(script)], log, None
        self.environment = {**os.environ, **environment}

    def ask(self, do, timeout=240, **request):
        if self.process is None:
            with open(self.log, "a") as errors:
                self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                                                env=self.environment)
        timeout, cut = common.within(timeout)
        try:
            self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], timeout)
            line = self.process.stdout.readline() if ready else None
        except OSError:
            line = ""
        if line is None:
            self.stop()
            raise common.TimeIsOut() if cut else common.Failed(f"{self.name}: {do} took longer than {timeout:.0f} s")
        if not line:
            self.stop()
            raise common.Failed(f"{self.name}: ended during {do}; see {self.log}")
        answer = json.loads(line)
        if "error" in answer:
            raise common.Failed(f"{self.name}: {answer['error']}")
        return answer["value"]

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def repeated(run, wait, seconds=0.2, most=2000):
    """Microseconds a call of run(), many in a row with one wait in the end."""
    run()
    wait()
    begin = time.perf_counter()
    run()
    wait()
    one = time.perf_counter() - begin
    times = max(5, min(most, int(seconds / max(one, 1e-7))))
    begin = time.perf_counter()
    for _ in range(times):
        run()
    wait()
    return 1e6 * (time.perf_counter() - begin) / times


def summary(events, runs):
    """What a trace of `runs` runs, each waited for, holds of one run. Events are (name, begin, end) in microseconds.

    Span is the median over runs from the first begin to the last end; kernels are memory-intensive, library calls or copies.
    """
    totals = {}
    for name, begin, end in events:
        count, us = totals.get(name, (0, 0.0))
        totals[name] = (count + 1, us + end - begin)
    rows = [{"name": name, "count": count / runs, "us": us / runs, "kind": kernel_names.kind(name)} for name, (count, us) in totals.items()]
    rows.sort(key=lambda row: -row["us"])
    result = {"span_us": common.median(spans(events, runs)), "kernels": rows}
    for kind in ("memory", "library", "copy"):
        result[f"{kind}_us"] = sum(row["us"] for row in rows if row["kind"] == kind)
        result[f"{kind}_count"] = sum(row["count"] for row in rows if row["kind"] == kind)
    return result


def spans(events, runs):
    """First begin to last end of each run: every run has as many events as the others, in time's order."""
    events = sorted(events, key=lambda event: event[1])
    each = max(1, len(events) // runs)
    parts = [events[i : i + each] for i in range(0, each * runs, each)]
    return [max(end for _, _, end in part) - part[0][1] for part in parts if part]
