"""What the scripts of all peers share: a dump's document (docs/peers.md), HLO's names of types, the command stitchwork."""

import json
import os
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "python"))
import cards  # noqa: E402
from stitchwork import command  # noqa: E402

SCHEMA = "stitchwork.peer-dump/1"


class NotUnderstood(Exception):
    """What is given or what a compiler wrote cannot be a dump; one line says why."""


def write(folder, *, peer, versions, flags, target, model, parameters, results, program, **more):
    """Writes dump.json; modules are those that the steps name."""
    card = cards.CARDS[target]
    modules = sorted({step["module"] for step in program["steps"] if "module" in step})
    document = {"schema": SCHEMA, "peer": peer, "versions": versions, "flags": flags, "target": target, "device": card["device"],
                "compute_capability": list(card["cc"]), "model": model, **more, "parameters": parameters, "results": results,
                "program": {"modules": modules, **program}}
    (folder / "dump.json").write_text(json.dumps(document, indent=1) + "\n")


def write_bytes(file, data):
    """An .npy file of u8."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(data)},), }}".ljust(117) + "\n"
    file.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def empty_folder(folder):
    """For a dump: what an earlier one left is gone, other files stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in (*folder.glob("*.ptx"), *folder.glob("*.npy"), folder / "dump.json", folder / "program.json"):
        file.unlink(missing_ok=True)


def stitchwork(*words):
    """Standard output of the command: the one that STITCHWORK names, that of a build here, or that of PATH."""
    built = sorted(ROOT.glob("build/*/cli/stitchwork"), key=lambda file: file.stat().st_mtime)
    if built:
        os.environ.setdefault("STITCHWORK", str(built[-1]))
    try:
        return command.text(*words)
    except command.Error as error:
        raise NotUnderstood(error) from error


def model_text(model, *options):
    """A model that stitchwork reads (HLO, ONNX, a dataset's name) as the HLO that it prints, on which nothing was rewritten."""
    return stitchwork("plan", model, "--planner", "unfused", "--dump=graph", *options)


def without_debug(ptx):
    """PTX without its lines of source and DWARF sections."""
    ptx = re.sub(r"^\s*\.(?:loc|file)\b.*\n", "", ptx, flags=re.M)
    return re.sub(r"^\s*\.section\s+\.debug_\w+\s*\{.*?^\s*\}\n", "", ptx, flags=re.M | re.S)


def one_line(error):
    """What an exception of somebody else's says, without its lines of context."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def main(name, run):
    """The scripts' ends: 0, or 1 with one line."""
    try:
        run()
    except NotUnderstood as error:
        sys.exit(f"{name}: {error}")
    except Exception as error:  # a compiler's own: one line
        sys.exit(f"{name}: {one_line(error)}")
