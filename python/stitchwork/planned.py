"""A model's plan as a value."""

import html
import json
import pathlib
import shutil
import tempfile
import weakref

import stitchwork_capture

from . import command


def plan(model, *args, planner="astitch", device="v100-sxm2", set=None, options=(), **kwargs):
    """Plans a model.

    model    a file (.hlo, .txt, .onnx, each also .gz), a dataset's name, a JAX function, or a torch.nn.Module
    args     of a function or module: arrays, jax.ShapeDtypeStruct (only shapes matter) or pytrees of them; kwargs likewise
    planner  a row of `stitchwork planners`; device one of `stitchwork devices`; set its knobs, {"mapping": "paper"}
    options  further words for `stitchwork plan`, as ("--dim", "batch=8")
    Returns a Plan. Raises Error.
    """
    folder = _Folder()
    file = folder.path / "plan.json"
    words = ["plan", _captured(model, args, kwargs, folder.path), "--planner", planner, "--device", device]
    for name, value in (set or {}).items():
        words += ["--set", f"{name}={value}"]
    command.document(*words, *options, "-o", file)
    return Plan(file, folder)


class Plan:
    """A plan, as `stitchwork plan` saves it. Plan("plan.json") is one saved before."""

    def __init__(self, file, _folder=None):
        self.file = pathlib.Path(file)
        self._folder = _folder  # of the file and of a captured model: both are there as long as the plan is
        try:
            self.document = json.loads(self.file.read_text())
        except (OSError, ValueError) as error:
            raise command.Error(f"{self.file}: cannot be read as a plan: {error}") from error
        if not isinstance(self.document, dict) or "kernels" not in self.document:
            raise command.Error(f"{self.file}: is no plan; `stitchwork plan MODEL -o {self.file.name}` saves one")

    @property
    def kernels(self):
        """A row a kernel in the plan's order: id, name, number of ops, launch (blocks, threads, bytes), predicted_us (modelled).

        A pandas.DataFrame where pandas can be imported, else a list of dicts.
        """
        rows = []
        for kernel in self.document["kernels"]:
            row = {name: value for name, value in kernel.items() if not isinstance(value, (list, dict))}
            rows.append({"id": row.pop("id"), "name": row.pop("name"), "ops": len(kernel["ops"]), **row})
        try:
            import pandas
        except ImportError:
            return rows
        return pandas.DataFrame(rows)

    @property
    def predicted_us(self):
        """Microseconds of all steps, modelled."""
        return self.document["predicted_us"]

    def explain(self, op):
        """Where an op is, how, and why: a Document; print it for the text. Raises Error naming a close op."""
        return command.document("explain", "--plan", self.file, op, held=[self])

    def diff(self, other):
        """From this plan to another of the same model: a Document; print it for the text."""
        return command.document("diff", self.file, other.file, held=[self, other])

    def run(self, check=True, backend="sim", options=()):
        """Compiles and executes the plan: the document of `stitchwork run`, counters and times of each kernel by method.

        check    compares with the reference; raises Error where the result is wrong
        options  further words for `stitchwork run`, as ("--seed", 3)
        """
        words = ["run", "--plan", self.file, "--backend", backend, *options]
        result = command.document(*words, *(["--check"] if check else []))
        if check and not result["check"]["ok"]:
            raise command.Error(f"{self.document['model']['path']}: the result is wrong: {result['check']}")
        return result

    def page(self, file):
        """Writes the page of `stitchwork view`: one HTML file, which needs no other."""
        command.document("view", "--plan", self.file, "-o", file)
        return pathlib.Path(file)

    def _repr_html_(self):
        with tempfile.TemporaryDirectory(prefix="stitchwork-") as folder:
            try:
                page = self.page(pathlib.Path(folder) / "page.html").read_text()
            except command.Error as error:
                return f"<pre>{html.escape(repr(self))}\n{html.escape(str(error))}</pre>"
        return f'<iframe srcdoc="{html.escape(page)}" style="width:100%;height:640px;border:0"></iframe>'

    def __repr__(self):
        counts = self.document["counts"]
        return (
            f"<stitchwork plan of {self.document['model']['path']} by {self.document['planner']} for {self.document['device']}: "
            f"{counts['memory_kernels']} memory kernels, {counts['library_calls']} library calls, {self.predicted_us:.1f} us modelled>"
        )


class _Folder:
    """A temporary folder that goes with the last who holds it."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="stitchwork-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _captured(model, args, kwargs, folder):
    """What the command takes as MODEL."""
    if isinstance(model, (str, pathlib.PurePath)):
        if args or kwargs:
            raise command.Error(f"{model}: a file takes no arguments; they are for functions")
        return model
    torch_module = any(cls.__module__.startswith("torch.nn") for cls in type(model).__mro__)
    try:
        if torch_module:
            return stitchwork_capture.capture_torch(model, *args, out=folder / "model.onnx", **kwargs)
        return stitchwork_capture.capture_jax(model, *args, out=folder / "model.hlo", **kwargs)
    except stitchwork_capture.CaptureError as error:
        raise command.Error(str(error)) from error
