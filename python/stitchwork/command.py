"""Runs the command and reads its documents."""

import json
import os
import pathlib
import shutil
import subprocess


class Error(Exception):
    """What the command refused, in its one line (where, what, what to do).

    file, line, column, message, hint are its parts, exit_code is the command's (1: bad input, 2: wrong usage).
    """

    def __init__(self, text, exit_code=1, **parts):
        super().__init__(text)
        self.exit_code = exit_code
        for part in ("file", "line", "column", "message", "hint"):
            setattr(self, part, parts.get(part))


class Document(dict):
    """A document of the command (docs/schema/); str() is what the command prints without --json."""

    def __init__(self, content, words, held=()):
        super().__init__(content)
        self._words = words
        self._held = held  # whose files the words name

    def __str__(self):
        return text(*self._words)


def version():
    """The document of `stitchwork --version`."""
    return document("--version")


def document(*words, held=()):
    """The document that the command prints; it keeps `held`, whose files the words name. Raises Error."""
    words = [str(word) for word in words]
    done = _run([*words, "--json"])
    try:
        content = json.loads(done.stdout)
    except ValueError:
        content = None
    if isinstance(content, dict) and "error" in content:
        raise _error(content["error"], done.returncode)
    if content is None:
        raise Error(_last_line(done.stderr) or f"{_program()} {' '.join(words)}: ended with {done.returncode}", done.returncode)
    return Document(content, words, held)


def text(*words):
    """What the command prints. Raises Error."""
    done = _run([str(word) for word in words])
    if done.returncode == 2 or (done.returncode and not done.stdout):
        raise Error(_last_line(done.stderr), done.returncode)
    return done.stdout


def _error(error, exit_code):
    place = [str(error[part]) for part in ("file", "line", "column") if error[part]]
    line = ": ".join(filter(None, [":".join(place), error["message"].replace("\n", " ")]))
    return Error("; ".join(filter(None, [line, error["hint"]])), exit_code, **error)


def _last_line(output):
    lines = output.strip().splitlines()
    return lines[-1].removeprefix("stitchwork: ") if lines else ""


def _run(words):
    program = _program()
    try:
        return subprocess.run([program, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Error(f"{program}: {error.strerror}; STITCHWORK names the command") from error


def _program():
    given = os.environ.get("STITCHWORK")
    if given:
        return given
    beside = pathlib.Path(__file__).resolve().parents[4] / "bin" / "stitchwork"  # of PREFIX/share/stitchwork/python/stitchwork
    found = shutil.which("stitchwork") or (str(beside) if beside.is_file() else None)
    if found is None:
        raise Error("the command stitchwork is not on PATH; install it (README.md), or let STITCHWORK name it")
    return found
