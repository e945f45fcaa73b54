"""One case under planners and devices, against XLA."""

import collections
import dataclasses
import pathlib
import shutil

import judge
import program
import xla_cpu

# Outcomes of a run, from best to worst.
OUTCOMES = ("agrees", "agrees but for rounding", "refused as expected", "not judged", "false alarm", "refused", "differs")


@dataclasses.dataclass
class Row:
    """What one run gave: `outcome` of OUTCOMES, and what there is to say about it."""
    case: str
    planner: str
    device: str
    outcome: str
    said: str = ""
    elements: int = 0
    allowed: int = 0


def failed(row):
    return row.outcome in ("not judged", "false alarm", "refused", "differs")


def everywhere(case, planners, devices, outcome, said):
    return [Row(case.name, planner, device, outcome, said) for planner in planners for device in devices]


def compare(case, binary, planners, devices, work, seed=0, sanitize=False, timeout=60):
    """The rows of a case. `work`: a folder for its text and arrays, kept where something fails."""
    folder = pathlib.Path(work) / case.name.replace("/", "_")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "in").mkdir(parents=True)
    model = folder / "model.hlo"

    try:
        text = case.text()
        model.write_text(text)
        given = inputs_of(case, binary, model, folder / "in", seed)
        reference = judge.Reference(xla_cpu.normalised(text), given, seed)
        reference.expected  # a text that XLA cannot run is not judged
        for number, array in enumerate(reference.expected):
            program.save(folder / f"xla{number}.npy", array)
    except program.ProgramError as error:
        return everywhere(case, planners, devices, *refusal(case, str(error)))
    except Exception as error:  # whatever JAX and XLA raise about one case is that case's row
        return everywhere(case, planners, devices, "not judged", xla_cpu.first_line(error))

    rows, judged = [], {}
    for planner in planners:
        for device in devices:
            run = program.run(binary, model, planner, device, folder / f"{planner}-{device}", folder / "in", sanitize, timeout)
            if run.error:
                rows.append(Row(case.name, planner, device, *refusal(case, run.error)))
                continue
            # Planners often give the same bits: these are judged once.
            key = tuple((a.shape, a.dtype.name, a.tobytes()) for a in run.outputs)
            if key not in judged:
                judged[key] = judge.judge(run.outputs, reference)
            verdict = judged[key]
            outcome, said = "agrees but for rounding" if verdict.allowed else "agrees", ""
            if verdict.different:
                outcome, said = "differs", verdict.worst + ("; its own check says ok" if run.check_ok else "")
            elif not run.check_ok:
                outcome, said = "false alarm", "XLA agrees; its own check fails: " + run.check
            rows.append(Row(case.name, planner, device, outcome, said, verdict.elements, verdict.allowed))
    if not any(map(failed, rows)):
        shutil.rmtree(folder)
    return rows


def refusal(case, said):
    return ("refused as expected" if case.refused and case.refused in said else "refused"), said


def inputs_of(case, binary, model, folder, seed):
    """The case's own arrays, or those that the program draws; as .npy files in `folder` too."""
    if case.folder:
        for path in pathlib.Path(case.folder).glob("*.npy"):
            shutil.copy(path, folder)
        return [program.load(path) for path in sorted(folder.glob("*.npy"), key=lambda path: int(path.stem))]
    if case.inputs is None:
        return program.inputs(binary, model, folder, seed)
    for number, array in enumerate(case.inputs):
        program.save(folder / f"{number}.npy", array)
    return case.inputs


def table(rows):
    """The failures, one a cause within a case: runs that say the same share a line."""
    same = collections.OrderedDict()
    for row in filter(failed, rows):
        same.setdefault((row.case, row.outcome, row.said), []).append(row)
    lines = []
    for (case, outcome, said), group in same.items():
        lines.append(f"{case}: {outcome} [{' '.join(sorted({f'{row.planner}/{row.device}' for row in group}))}]\n    {said}")
    return "\n".join(lines)


def summary(rows):
    counts = collections.Counter(row.outcome for row in rows)
    parts = [f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]]
    elements, allowed = sum(row.elements for row in rows), sum(row.allowed for row in rows)
    return (f"{len({row.case for row in rows})} cases, {len(rows)} runs: {', '.join(parts)}; {elements} elements compared, "
            f"{allowed} of them equal only up to rounding")
