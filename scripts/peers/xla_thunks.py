"""The thunks of an executable of XLA:GPU, as thunks.txt has them: one a line, what a thunk runs further in, in parts ("condition:", "body:", "branch_0:").

Which instruction a thunk carries out says thunk_metadata.txt.
"""

import dataclasses
import re

from dump import NotUnderstood

LINE = re.compile(r"(\s*)(\d+): (\w+)\s+\[.*?\](?:\s+(\S+))?(?: grid: \[(\d+), (\d+), (\d+)\] threads: \[(\d+), (\d+), (\d+)\]\s+shared_memory: (\d+) bytes)?")
LABEL = re.compile(r"(\s*)(condition|body|branch_\d+):\s*$")


@dataclasses.dataclass
class Thunk:
    kind: str
    name: str  # of a kernel its entry
    grid: list
    block: list
    shared_bytes: int
    instruction: str
    depth: int  # spaces before it
    parts: dict = dataclasses.field(default_factory=dict)  # name -> thunks; "" of a thunk that does not name them
    part: str = ""  # that is being read

    def inner(self):
        return self.parts.get("", [])


def instructions(text):
    """By number of the thunk."""
    metadata = [dict(re.findall(r'(\w+): "?([^"\n]*)"?', part)) for part in text.split("thunk_metadata {")[1:]]
    return {int(m["thunk_id"]): m.get("profile_annotation", "") for m in metadata if "thunk_id" in m}


def sequence(text, metadata, file):
    """The outermost thunks, in order."""
    named = instructions(metadata)
    outer = Thunk("", "", [], [], 0, "", -1)
    around = [outer]  # the thunk read last, and those that it is in
    for line in text.split("\n"):
        if not line.strip():
            continue
        if label := LABEL.match(line):
            # That of a condition is not indented; it is directly behind its loop.
            while label[2] != "condition" and len(around) > 1 and around[-1].depth >= len(label[1]):
                around.pop()
            around[-1].part = label[2]
            around[-1].parts[label[2]] = []
            continue
        m = LINE.match(line)
        if not m or (m[3] == "kCustomKernel" and m[5] is None):
            raise NotUnderstood(f"{file}: '{line.strip()[:80]}' is no thunk as XLA of jaxlib 0.10 writes it")
        size = [int(x) for x in m.groups()[4:10]] if m[5] else [0] * 6
        thunk = Thunk(m[3], m[4], size[:3], size[3:], int(m[11] or 0), named.get(int(m[2]), ""), len(m[1]))
        while around[-1].depth >= thunk.depth:
            around.pop()
        around[-1].parts.setdefault(around[-1].part, []).append(thunk)
        around.append(thunk)
    return outer.inner()


def without_sequences(thunks):
    """A thunk that only runs others one after another is those."""
    for thunk in thunks:
        if thunk.kind == "kSequential":
            yield from without_sequences(thunk.inner())
        else:
            yield thunk
