#!/usr/bin/env python3
"""The package on the command that STITCHWORK names; packages that are missing are skipped by name."""

import ast
import contextlib
import html
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import stitchwork
from stitchwork import command

os.environ.setdefault("JAX_PLATFORMS", "cpu")

SOFTMAX = """HloModule softmax
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[96,80] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  most = f32[96] reduce(x, low), dimensions={1}, to_apply=max
  spread = f32[96,80] broadcast(most), dimensions={0}
  shifted = f32[96,80] subtract(x, spread)
  e = f32[96,80] exponential(shifted)
  total = f32[96] reduce(e, zero), dimensions={1}, to_apply=sum
  wide = f32[96,80] broadcast(total), dimensions={0}
  ROOT y = f32[96,80] divide(e, wide)
}
"""


def missing(*packages):
    return [package for package in packages if importlib.util.find_spec(package) is None]


def rows(kernels):
    """Of a list or a DataFrame."""
    return kernels if isinstance(kernels, list) else kernels.to_dict("records")


@unittest.skipUnless(os.environ.get("STITCHWORK"), "STITCHWORK names no command")
class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        data = unittest.mock.patch.dict(os.environ, {"XDG_DATA_HOME": folder.name})  # of the store
        data.start()
        self.addCleanup(data.stop)
        self.model = self.folder / "softmax.hlo"
        self.model.write_text(SOFTMAX)

    def refused(self, line, function, *args, **kwargs):
        with self.assertRaises(stitchwork.Error) as raised:
            function(*args, **kwargs)
        self.assertIn(line, str(raised.exception))
        self.assertNotIn("\n", str(raised.exception))
        return raised.exception

    def test_kernels_are_those_of_the_command(self):
        for planner in ("astitch", "xla"):
            plan = stitchwork.plan(self.model, planner=planner, device="a100")
            wanted = command.document("plan", self.model, "--planner", planner, "--device", "a100")
            self.assertEqual(plan.document, wanted)
            self.assertEqual([row["name"] for row in rows(plan.kernels)], [k["name"] for k in wanted["kernels"]])
            self.assertEqual([row["ops"] for row in rows(plan.kernels)], [len(k["ops"]) for k in wanted["kernels"]])
            self.assertEqual(plan.predicted_us, wanted["predicted_us"])
        self.assertIn("by xla for a100", repr(plan))

    def test_knobs_and_options_are_handed_on(self):
        plan = stitchwork.plan(self.model, set={"mapping": "paper"}, options=["--tf32"], device="a100")
        self.assertEqual(plan.document["options"]["mapping"], "paper")
        self.assertIn("--what", self.refused("has no option", stitchwork.plan, self.model, options=["--what"]).message)

    @unittest.skipIf(missing("pandas"), "pandas is not installed")
    def test_kernels_are_a_data_frame(self):
        kernels = stitchwork.plan(self.model).kernels
        self.assertEqual(list(kernels.columns[:3]), ["id", "name", "ops"])
        self.assertGreater(kernels["predicted_us"].sum(), 0)

    def test_kernels_are_rows_without_pandas(self):
        with unittest.mock.patch.dict(sys.modules, {"pandas": None}):
            kernels = stitchwork.plan(self.model).kernels
        self.assertIsInstance(kernels, list)
        self.assertEqual(kernels[0]["id"], "k0")

    def test_explain_says_what_the_command_says(self):
        plan = stitchwork.plan(self.model)
        why = plan.explain("e")
        self.assertEqual((why["op"], why["opcode"]), ("e", "exponential"))
        self.assertEqual(str(why), command.text("explain", "--plan", plan.file, "e"))
        self.assertIn("exponential", str(why))
        self.refused("shifted", plan.explain, "shiftet")

    def test_diff_is_from_one_plan_to_the_other(self):
        one, other = stitchwork.plan(self.model), stitchwork.plan(self.model, planner="unfused")
        changes = one.diff(other)
        self.assertEqual(changes["a"]["memory_kernels"], len(one.kernels))
        self.assertEqual(changes["b"]["memory_kernels"], len(other.kernels))
        self.assertGreater(len(other.kernels), len(one.kernels))
        self.assertIn("unfused", str(one.diff(stitchwork.plan(self.model, planner="unfused"))), "files are kept as long")
        self.refused("diff compares plans of the same version of one model", one.diff, stitchwork.plan("fig7"))

    def test_run_is_checked(self):
        result = stitchwork.plan(self.model).run(options=["--seed", 7])
        self.assertTrue(result["check"]["ok"])
        self.assertEqual(result["kernels"][0]["method"], "simulated")
        self.assertIsNone(stitchwork.plan(self.model).run(check=False)["check"])

    def test_a_wrong_result_is_an_error(self):
        plan = stitchwork.plan(self.model)
        wrong = command.Document({"check": {"ok": False, "max_abs_error": 1.0}}, [])
        with unittest.mock.patch.object(command, "document", return_value=wrong):
            self.refused("the result is wrong", plan.run)
            self.assertIs(plan.run(check=False), wrong)

    def test_a_notebook_shows_the_page_or_says_why_not(self):
        plan = stitchwork.plan(self.model)
        with unittest.mock.patch.dict(os.environ, STITCHWORK_PAGE="/nonexistent"):
            self.assertIn("a page is made with it, and it is not there", plan._repr_html_())
        shown = plan._repr_html_()
        page = plan.page(self.folder / "page.html").read_text()
        self.assertIn("&lt;", shown)
        self.assertTrue(shown.startswith('<iframe srcdoc="'), shown[:40])
        self.assertIn(html.escape(page), shown)

    def test_a_saved_plan_is_one(self):
        plan = stitchwork.plan(self.model)
        self.assertEqual(stitchwork.Plan(plan.file).document, plan.document)
        self.refused("cannot be read as a plan", stitchwork.Plan, self.model)
        self.refused("cannot be read as a plan", stitchwork.Plan, "/nonexistent.json")
        (self.folder / "other.json").write_text("{}")
        self.refused("is no plan", stitchwork.Plan, self.folder / "other.json")

    def test_what_the_command_refuses_is_one_line(self):
        self.model.write_text(SOFTMAX.replace("divide(", "divode("))
        error = self.refused("did you mean divide?", stitchwork.plan, self.model)
        self.assertEqual((error.file, error.line, error.exit_code), (str(self.model), SOFTMAX[: SOFTMAX.index("divide")].count("\n") + 1, 1))
        self.assertTrue(str(error).startswith(f"{self.model}:{error.line}:{error.column}: "), error)
        self.refused("no such file or dataset", stitchwork.plan, "/nonexistent.hlo")
        self.assertEqual(self.refused("planner", stitchwork.plan, "fig7", planner="astich").exit_code, 1)
        self.refused("a file takes no arguments", stitchwork.plan, "fig7", 1.0)

    def test_a_command_that_is_not_there_is_said(self):
        with unittest.mock.patch.dict(os.environ, {"STITCHWORK": "/nonexistent/stitchwork"}):
            self.refused("STITCHWORK names the command", stitchwork.plan, "fig7")
        with unittest.mock.patch.dict(os.environ, {"PATH": ""}):
            del os.environ["STITCHWORK"]
            self.refused("is not on PATH", stitchwork.plan, "fig7")

    def test_one_that_dies_is_said(self):
        with unittest.mock.patch.dict(os.environ, {"STITCHWORK": "/bin/false"}):
            self.refused("ended with 1", stitchwork.plan, "fig7")

    def test_version_is_the_commands(self):
        self.assertIn(f"stitchwork {stitchwork.version()['version']} ", command.text("--version"))

    @unittest.skipIf(missing("jax"), "JAX is not installed")
    def test_a_jax_function_is_planned(self):
        import jax
        import jax.numpy as jnp

        plan = stitchwork.plan(lambda x, scale: jax.nn.softmax(x * scale), jnp.ones((96, 80)), 2.0, planner="xla")
        self.assertTrue(plan.run()["check"]["ok"])
        self.refused("cannot trace", stitchwork.plan, lambda x: float(x) + 1, jnp.ones(3))

    @unittest.skipUnless(missing("jax"), "JAX is installed")
    def test_without_jax_a_function_is_refused(self):
        self.refused("pip install jax", stitchwork.plan, abs, 1.0)


HERE = pathlib.Path(__file__).resolve().parent


def shown_by(source, namespace):
    """Runs a cell as a notebook does: the value of its last line, if that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), namespace) if last else None


@unittest.skipUnless(os.environ.get("STITCHWORK"), "STITCHWORK names no command")
class Notebook(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        data = unittest.mock.patch.dict(os.environ, {"XDG_DATA_HOME": folder.name, "PYTHONPATH": str(HERE)})
        data.start()
        self.addCleanup(data.stop)

    def test_every_cell_runs(self):
        cells = json.loads((HERE / "stitchwork.ipynb").read_text())["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        namespace, shown = {}, {}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for source in sources:
                shown[source] = shown_by(source, namespace)
        values = list(shown.values())
        self.assertIn("neighbours", printed.getvalue())
        self.assertGreaterEqual(len(shown), 7)
        self.assertGreater(values[0], 0)
        self.assertEqual(len(rows(values[1])), namespace["plan"].document["counts"]["memory_kernels"])
        self.assertTrue(values[4]["ok"])
        self.assertTrue(all(method == "simulated" for _, _, method in values[5]))
        self.assertTrue(values[-1]._repr_html_().startswith("<iframe srcdoc="))

    @unittest.skipIf(missing("nbclient", "nbformat", "ipykernel"), f"not installed: {' '.join(missing('nbclient', 'nbformat', 'ipykernel'))}")
    def test_a_kernel_of_jupyter_runs_it(self):
        import nbclient
        import nbformat

        notebook = nbformat.read(HERE / "stitchwork.ipynb", as_version=4)
        nbformat.validate(notebook)
        nbclient.NotebookClient(notebook, timeout=120).execute()
        page = notebook.cells[-2].outputs[0]["data"]
        self.assertIn("<iframe srcdoc=", page["text/html"])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"skipped {test}: {reason}")
    sys.exit(0 if result.wasSuccessful() else 1)
