#!/usr/bin/env python3
"""What the documents show is what comes out.

Each document with ```console blocks is followed from top to bottom in a folder of its own: a line `$ COMMAND` is run by a shell, and the
lines below it are what it prints. A fenced block with a file's name behind its language (```json edits.json) makes that file first, and the
models of docs/sample/gated_mlp/ lie in the folder. In output
  a line `...`               stands for any lines,
  ` ...` at a line's end     for the rest of the line,
  `~` in a word (`~`, `~,`)  for anything but a space: a time by the clock, a number of the compiler that is installed.
A file that the commands make and that lies beside the document or in images/, too, has to be the same there (of a page its data, as d3 is the
machine's; of an SVG its texts, as fonts are). Commands of stitchwork-gui are left out, and said so, where STITCHWORK_GUI names no program.
A command that answers by another exit code than 0 says so: `$ COMMAND  # exits with 3`. Commands in backquotes in the text of such a document
have to work, too, unless they are a name alone (`stitchwork view`) or have what the reader fills in (capitals, `...`).

    docs_test.py [DOCUMENT...]              compares
    docs_test.py --refresh [DOCUMENT...]    writes what comes out into the documents; look at `git diff` before committing

STITCHWORK names the command, STITCHWORK_GUI the workbench.
"""

import argparse
import base64
import dataclasses
import difflib
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / "docs/sample/gated_mlp"
LIMIT_S = 120  # of one command


@dataclasses.dataclass
class Command:
    line: int  # from 1
    text: str
    shown: list  # of the output; None: it only has to work
    first: int = 0  # of the output, an index into the document's lines

    @property
    def code(self):
        said = re.search(r"#.*\bexits with (\d+)", self.text)
        return int(said[1]) if said else 0


@dataclasses.dataclass
class File:
    line: int
    name: str
    text: str


def read(document):
    """Commands and files of a document in order; `document` is its lines. None where it shows no command."""
    found, fence, kept, begun = [], None, [], 0
    for number, line in enumerate(document):
        if line.startswith("```"):
            if fence is None:
                fence, kept, begun = line[3:].split(), [], number
                continue
            if len(fence) == 2:
                found.append(File(begun + 1, fence[1], "".join(text + "\n" for text in kept)))
            fence = None
        elif fence is None:
            for text in re.findall(r"`(stitchwork [^`]*)`", line):
                if not re.search(r"\b[A-Z]{2,}\b|\.\.\.|^stitchwork \w+$", text):
                    found.append(Command(number + 1, text, None))
        elif fence == ["console"]:
            if line.startswith("$ "):
                found.append(Command(number + 1, line[2:], [], number + 1))
            elif found and isinstance(found[-1], Command) and found[-1].shown is not None:
                if found[-1].text.endswith("\\") and not found[-1].shown:
                    found[-1].text += "\n" + line
                    found[-1].first = number + 1
                else:
                    found[-1].shown.append(line)
        else:
            kept.append(line)
    return found if any(isinstance(one, Command) and one.shown is not None for one in found) else None


def same_word(shown, printed):
    return re.fullmatch(re.escape(shown).replace(r"\~", r"\S+"), printed) is not None


def same_line(shown, printed):
    printed = printed.rstrip()
    begun = shown.removesuffix(" ...")
    if "~" not in begun:
        return printed == begun or (begun != shown and printed.startswith(begun))
    ours, theirs = begun.split(), printed.split()
    return (len(ours) == len(theirs) or (begun != shown and len(ours) < len(theirs))) and all(map(same_word, ours, theirs))


def parts_of(shown):
    """The lines between those that are `...`."""
    parts = [[]]
    for line in shown:
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def same(shown, printed):
    first, *rest = parts_of(shown)
    fits = lambda part, at: at + len(part) <= len(printed) and all(map(same_line, part, printed[at : at + len(part)]))
    if not fits(first, 0):
        return False
    at = len(first)
    if not rest:
        return at == len(printed)
    for part in rest[:-1]:
        at = next((i for i in range(at, len(printed)) if fits(part, i)), None)
        if at is None:
            return False
        at += len(part)
    end = len(printed) - len(rest[-1])
    return end >= at and fits(rest[-1], end)


def in_form_of(shown, printed):
    """A new line with the `~` and the ` ...` of the old one."""
    if shown.endswith(" ..."):
        return printed[: len(shown) - 4].rstrip() + " ..." if len(printed) > len(shown) - 4 else printed
    ours, theirs = shown.split(), list(re.finditer(r"\S+", printed))
    if "~" in shown and len(ours) == len(theirs):
        for word, place in reversed(list(zip(ours, theirs))):
            if "~" in word:
                printed = printed[: place.start()] + word.rjust(place.end() - place.start()) + printed[place.end() :]
    return printed.rstrip()


def refreshed(shown, printed):
    """The new output, as much of it shown as before."""
    printed = [line.rstrip() for line in printed]
    parts, out, at = parts_of(shown), [], 0
    if len(parts) == 1:
        like = dict(zip(range(len(printed)), shown)) if len(shown) == len(printed) else {}
        return [in_form_of(like.get(i, ""), line) for i, line in enumerate(printed)]
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if last:
            begin = max(at, len(printed) - len(part))
        elif number == 0:
            begin = 0
        else:  # where its first line went, or what is most like it
            rest = [" ".join(line.split()) for line in printed[at:]]
            near = difflib.get_close_matches(" ".join(part[0].split()), rest, 1, 0.3) if part else []
            begin = at + rest.index(near[0]) if near else at
        if begin > at:
            out.append("...")
        chosen = printed[begin:] if last else printed[begin : begin + len(part)]
        out += [in_form_of(old, new) for old, new in zip(part + [""] * len(chosen), chosen)]
        at = begin + len(chosen)
    return out


def contents(file):
    """What is compared: bytes, of a page the document in it."""
    data = file.read_bytes()
    page = re.search(rb'<script id="data"[^>]*>([^<]*)</script>', data) if file.suffix == ".html" else None
    if file.suffix == ".svg":
        return re.findall(rb">([^<>\n]+)</text>", data)
    return gzip.decompress(base64.b64decode(page[1])) if page else data


class Reader:
    """Follows documents, and collects what is wrong."""

    def __init__(self, refresh):
        self.refresh, self.wrong, self.ran = refresh, [], 0
        program = shutil.which(os.environ.get("STITCHWORK", "stitchwork"))
        if program is None:
            sys.exit("docs_test: set STITCHWORK to the command, for example STITCHWORK=build/release/cli/stitchwork")
        self.program = pathlib.Path(program).resolve()
        self.workbench = os.environ.get("STITCHWORK_GUI")

    def follow(self, path):
        text = path.read_text()
        document = text.split("\n")
        steps = read(document)
        if steps is None:
            return
        with tempfile.TemporaryDirectory(prefix="stitchwork-docs-") as folder:
            folder = pathlib.Path(folder)
            (folder / "bin").mkdir()
            (folder / "bin/stitchwork").symlink_to(self.program)
            if self.workbench:
                (folder / "bin/stitchwork-gui").symlink_to(pathlib.Path(self.workbench).resolve())
            work = folder / "work"
            work.mkdir()
            for model in MODELS.glob("*.hlo"):
                shutil.copy(model, work)
            changes = [change for step in steps if (change := self.step(path, step, folder, work))]
            self.compare_files(work, path.parent)
        for step, lines in reversed(changes):
            document[step.first : step.first + len(step.shown)] = lines
        if changes:
            path.write_text("\n".join(document))
            print(f"{path.relative_to(ROOT)}: {len(changes)} outputs refreshed")

    def compare_files(self, made, kept):
        for file in sorted(made.iterdir()):
            beside = next((folder / file.name for folder in (kept, kept / "images") if (folder / file.name).is_file()), None)
            if beside is None or contents(file) == contents(beside):
                continue
            if self.refresh:
                shutil.copy(file, beside)
                print(f"{beside.relative_to(ROOT)} refreshed")
            else:
                self.wrong.append(f"{beside.relative_to(ROOT)}: the commands of the document beside it make another one")

    def step(self, path, step, folder, work):
        where = f"{path.relative_to(ROOT)}:{step.line}"
        if isinstance(step, File):
            (work / step.name).write_text(step.text)
            return None
        if step.text.startswith("stitchwork-gui ") and not self.workbench:
            print(f"{where}: left out, there is no workbench here: $ {step.text}")
            return None
        environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "XDG_DATA_HOME": str(folder / "data")}
        begun = time.monotonic()
        ran = subprocess.run(["bash", "-o", "pipefail", "-c", step.text], cwd=work, env=environment, text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
        self.ran += 1
        if os.environ.get("DOCS_TEST_TIMES"):
            print(f"{time.monotonic() - begun:6.2f} s  {where}: {step.text}")
        printed = ran.stdout.split("\n")
        if printed[-1] == "":
            printed.pop()
        if ran.returncode != step.code:
            self.wrong.append(f"{where}: $ {step.text}\nexits with {ran.returncode}, not {step.code}:\n{ran.stdout}")
        elif step.shown is None or same(step.shown, printed):
            return None
        elif self.refresh:
            return step, refreshed(step.shown, printed)
        else:
            lines = difflib.unified_diff(step.shown, printed, "shown", "printed", lineterm="", n=1)
            self.wrong.append(f"{where}: $ {step.text}\n" + "\n".join(lines))
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="*", type=pathlib.Path, help="default: README.md, and all of docs/ and python/")
    parser.add_argument("--refresh", action="store_true")
    asked = parser.parse_args()
    documents = asked.documents or [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("python/*.md"))]
    reader = Reader(asked.refresh)
    for path in documents:
        reader.follow(path.resolve())
    for problem in reader.wrong:
        print(problem, file=sys.stderr)
    if reader.wrong:
        sys.exit(f"docs_test: {len(reader.wrong)} of {reader.ran} commands print something else; after a wanted change: "
                 "tests/docs/docs_test.py --refresh")
    print(f"docs_test: {reader.ran} commands")
    if not asked.documents and reader.ran < 10:
        sys.exit("docs_test: hardly any command was found: the documents are read wrongly")


if __name__ == "__main__":
    main()
