"""The page of `stitchwork view` in a browser, by clicks: it shows what `plan --json`, `explain --json` and `diff --json` print."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import browser

STITCHWORK = os.environ.get("STITCHWORK", "stitchwork")
MODEL = "fig7"


def stitchwork(*words):
    said = subprocess.run([STITCHWORK, *words], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    return said.stdout


def document(*words):
    return json.loads(stitchwork(*words, "--json"))


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = browser.find()
        if program is None:
            raise unittest.SkipTest("no Chromium here (Debian: chromium): the page is not opened")
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = pathlib.Path(cls.folder.name) / "page.html"
        cls.ran = pathlib.Path(cls.folder.name) / "run.json"
        cls.ran.write_text(stitchwork("run", MODEL, "--planner", "astitch", "--json"))
        # A profile of the model in XProf's form: one op is a kernel of a name, one kernel is nobody's.
        cls.profiled = pathlib.Path(cls.folder.name) / "trace.json"
        named = lambda what, tid, name: {"ph": "M", "pid": 1, "tid": tid, "name": what, "args": {"name": name}}
        cls.profiled.write_text(json.dumps({"traceEvents": [named("process_name", 0, "/device:GPU:0"), named("thread_name", 7, "Stream #7(Compute)")] + [
            {"ph": "X", "pid": 1, "tid": 7, "ts": at, "dur": us, "name": kernel, "args": {"hlo_module": "fig7", "hlo_op": op}}
            for at, us, kernel, op in ((10, 4.25, "wrapped_power", "power.1"), (20, 2, "nobodys", "nobodys"))]}))
        stitchwork("view", MODEL, "--planners", "astitch,xla", "--run", str(cls.ran), "--profile", str(cls.profiled), "-o", str(cls.file))
        cls.plans = {p: document("plan", MODEL, "--planner", p) for p in ("astitch", "xla")}
        cls.browser = browser.Browser(program)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.problems.clear()
        self.open("")

    def tearDown(self):
        self.assertEqual(self.browser.problems, [], "the page complains")

    def open(self, fragment):
        self.browser.open(self.file.as_uri() + fragment)

    def ask(self, expression):
        return self.browser.evaluate(expression)

    def details(self):
        return self.ask("document.getElementById('details').innerText.replace(/\\s+/g, ' ')")

    def selected_rows(self):
        return self.ask("[...document.querySelectorAll('#pane tr.selected')].map((r) => r.dataset.key)")

    def click_box(self, label, times=1):
        """In the graph that is in front, the box of that label, which is shown first."""
        self.browser.settle()
        at = self.ask(f"""(() => {{ const view = stitchwork.views.find((v) => v.plan === stitchwork.plan);
            const n = view.plan.nodes.find((n) => n.label === {json.dumps(label)}); return n ? view.locate(n.id) : null; }})()""")
        self.assertIsNotNone(at, label)
        self.browser.click(*at, times=times)

    def test_the_table_has_the_kernels_schemes_and_numbers_of_the_plan(self):
        for planner, plan in self.plans.items():
            self.browser.click_on(f"#plans [data-plan='{0 if planner == 'astitch' else 1}']")
            rows = self.ask("""[...document.querySelectorAll('#pane tr[data-i]')].map((r) => ({key: r.dataset.key,
                cells: [...r.cells].map((c) => c.innerText.trim()), badges: [...r.querySelectorAll('.badge')].map((b) => b.title)}))""")
            heads = self.ask("[...document.querySelectorAll('#pane th')].map((h) => h.innerText.replace(/[▾▴]/, '').trim())")
            self.assertEqual(sorted(r["key"] for r in rows), sorted(s["id"] for s in plan["steps"]))
            cells = {r["key"]: dict(zip(heads, r["cells"])) for r in rows}
            badges = {r["key"]: r["badges"] for r in rows}
            for step in plan["steps"]:
                self.assertEqual(cells[step["id"]]["µs"], f"{step['predicted_us']:.2f}")
            for kernel in plan["kernels"]:
                row = cells[kernel["id"]]
                self.assertEqual(row["name"], kernel["name"])
                self.assertEqual(row["ops"], str(len(kernel["ops"])))
                self.assertEqual(row["grid"], f"{kernel['grid']:,}")
                self.assertEqual(row["block"], f"{kernel['block']:,}")
                self.assertEqual(row["limited by"], kernel["time_parts"]["limited_by"])
                counts = {}
                for scheme in kernel["schemes"].values():
                    counts[scheme] = counts.get(scheme, 0) + 1
                self.assertEqual({b.split(":")[0]: int(b.split()[1].replace(",", "")) for b in badges[kernel["id"]]}, counts)
            self.assertEqual(self.ask("stitchwork.plan.plan"), plan)

    def test_why_has_the_reasons_of_explain_and_what_would_change_them(self):
        for planner in ("astitch", "xla"):
            for op in [k["outputs"][0] for k in self.plans[planner]["kernels"]][:3]:
                self.open(f"#plan={planner}&op={op}")
                said, told = document("explain", MODEL, op, "--planner", planner), self.details()
                for at in said["placements"]:
                    for text in (at["scheme"], at["role"], at["mapping"], at["kernel"]):
                        self.assertIn(text, told)
                for neighbour in said["neighbours"]:
                    for text in (neighbour["where"], neighbour["refusal"]["rule"], neighbour["refusal"]["why"], neighbour["needs"]):
                        self.assertIn(" ".join(text.split()), told)
                for refusal in said["refusals"]:
                    self.assertIn(refusal["decision"]["why"], told)
                    self.assertIn(refusal["needs"], told)
                if said["decisions"]:
                    self.browser.click_on("#details .decisions summary")
                shown = self.ask("[...document.querySelectorAll('#details .decisions .verdict code')].map((c) => c.textContent)")
                self.assertEqual(shown, [d["rule"] for d in said["decisions"]])

    def test_what_is_selected_in_the_graph_is_followed_by_all_and_survives_a_reload(self):
        kernel = self.plans["astitch"]["kernels"][0]
        self.click_box(f"{kernel['id']} {kernel['name']}")
        self.assertEqual(self.selected_rows(), [kernel["id"]])
        self.assertIn(f"{kernel['id']} {kernel['name']}", self.details())
        self.assertIn("__global__", self.ask("document.getElementById('codetext').textContent"))
        self.assertIn(kernel["name"], self.ask("document.querySelector('#outline .selected').textContent"))
        self.assertEqual(self.ask("location.hash"), f"#kernel={kernel['id']}")
        before = self.details()
        self.browser.reload()
        self.assertEqual(self.details(), before)
        self.assertEqual(self.selected_rows(), [kernel["id"]])
        # An op, by its name in the generated source; and back.
        op = kernel["outputs"][0]
        self.browser.click_on(f"#codetext a[data-op='{op}']")
        self.assertTrue(self.details().startswith(op))
        self.browser.reload()
        self.assertTrue(self.details().startswith(op))
        self.assertEqual(self.ask("document.querySelector('#codetext a.here').dataset.op"), op)
        self.ask("history.back()")
        self.browser.wait("location.hash.startsWith('#kernel=')")
        self.browser.settle()
        self.assertEqual(self.details(), before)

    def test_boxes_fold_and_unfold(self):
        kernel = self.plans["astitch"]["kernels"][0]
        count = "stitchwork.views[0].layout.boxes.length"
        folded = self.ask(count)
        self.click_box(f"{kernel['id']} {kernel['name']}", times=2)
        opened = self.ask(count)
        self.assertGreater(opened, folded)
        self.click_box(f"{kernel['id']} {kernel['name']}", times=2)
        self.assertEqual(self.ask(count), folded)
        self.browser.click_on("[data-level='3']")
        names = set(self.ask("stitchwork.views[0].layout.boxes.filter((b) => !b.open).map((b) => stitchwork.plan.nodes[b.node].label)"))
        self.assertTrue(set(op for k in self.plans["astitch"]["kernels"] for op in k["outputs"]) <= names)
        overlapping = self.ask("""(() => { const b = stitchwork.views[0].layout.boxes.filter((b) => !b.open).map((b) => b.rect); let n = 0;
            for (let i = 0; i < b.length; ++i) for (let j = 0; j < i; ++j) n += b[i].x < b[j].x + b[j].w && b[j].x < b[i].x + b[i].w && b[i].y < b[j].y + b[j].h && b[j].y < b[i].y + b[i].h;
            return n; })()""")
        self.assertEqual(overlapping, 0)

    def test_search_finds_by_words_and_filters(self):
        def found(query):
            self.ask(f"(() => {{ const q = document.getElementById('query'); q.value = {json.dumps(query)}; stitchwork.search(); }})()")
            return self.ask("(stitchwork.found || []).map((n) => stitchwork.plan.nodes[n].label)")
        plan = self.plans["astitch"]
        with_scheme = {op for k in plan["kernels"] for op, s in k["schemes"].items() if s == "regional"}
        self.assertTrue(with_scheme)
        self.assertEqual(set(found("scheme:regional")), with_scheme)
        kernel = plan["kernels"][0]
        self.assertEqual(found(f"kernel:{kernel['id']}"), [f"{kernel['id']} {kernel['name']}"])
        self.assertTrue(all(label.startswith("reduce") for label in found("op:reduce")) and found("op:reduce"))
        self.assertEqual(found("dtype:f64"), [])
        self.assertIn("no filter 'colour'", (found("colour:red"), self.ask("document.getElementById('found').textContent"))[1])
        # By keys: the first hit is selected.
        self.browser.key("Escape")
        self.ask("document.getElementById('query').value = ''")
        self.browser.key("/")
        for letter in "op:reduce":
            self.browser.key(letter)
        self.browser.key("Enter")
        self.assertTrue(self.details().startswith("reduce"), self.details()[:60])

    def test_columns_sort(self):
        ids = "[...document.querySelectorAll('#pane tr[data-i]')].map((r) => r.dataset.key)"
        times = {s["id"]: s["predicted_us"] for s in self.plans["xla"]["steps"]}
        self.browser.click_on("#plans [data-plan='1']")
        shown = [times[i] for i in self.ask(ids)]
        self.assertEqual(shown, sorted(shown, reverse=True))
        self.browser.click_on("#pane th:nth-child(3) button")
        shown = [times[i] for i in self.ask(ids)]
        self.assertEqual(shown, sorted(shown))

    def test_two_plans_beside_each_other_share_the_selection_and_show_the_difference(self):
        self.ask("(() => { const s = document.getElementById('beside'); s.value = '1'; s.dispatchEvent(new Event('change')); })()")
        self.browser.settle()
        self.assertEqual(self.ask("stitchwork.views.map((v) => v.plan.name)"), ["astitch", "xla"])
        op = self.plans["xla"]["kernels"][0]["outputs"][0]
        self.open(f"#beside=xla&op={op}")
        for view in self.ask("stitchwork.views.map((v) => v.plan.nodes[v.selected].label)"):
            self.assertEqual(view, op)
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for planner, plan in self.plans.items():
                files.append(f"{folder}/{planner}.json")
                pathlib.Path(files[-1]).write_text(json.dumps(plan))
            said = document("diff", *files)
        kinds = self.ask("[...document.querySelectorAll('#pane .change')].map((c) => c.textContent)")
        self.assertEqual(len(kinds), sum(len(said[key]) for key in ("boundaries", "changed", "removed", "added", "moved")))
        told = self.ask("document.getElementById('pane').innerText")
        for key in ("memory_kernels", "grid_barriers"):
            self.assertIn(str(said["a"][key]), told)
        if said["removed"]:
            self.assertIn(f"{said['removed'][0]['id']} {said['removed'][0]['name']}", told)

    def test_ops_of_a_rewritten_graph_are_found_by_their_origin(self):
        page = pathlib.Path(self.folder.name) / "rewritten.html"
        stitchwork("view", "softmax_block", "--planners", "korch,astitch", "-o", str(page))
        plan = document("plan", "softmax_block", "--planner", "korch")
        self.assertTrue(plan["rewrites"])
        self.browser.open(page.as_uri() + "#beside=astitch&tab=rewritings")
        self.assertEqual(self.ask("[...document.querySelectorAll('#pane tr[data-i]')].map((r) => r.cells[1].innerText)"),
                         [step["rule"] for step in plan["rewrites"] for _ in step["at"]])
        self.browser.click_on("#pane tr[data-i]")
        self.assertIn(plan["rewrites"][0]["rule"], self.details())
        self.assertIn("of the model", self.details())
        ours, others = self.ask("stitchwork.views.map((v) => v.plan.nodes[v.selected].label)")
        self.assertNotEqual(ours, others)
        self.assertIn(others, self.details())

    def test_a_runs_counters_and_times_are_colours_and_columns(self):
        run = json.loads(self.ran.read_text())
        self.assertIn("run:time", self.ask("[...document.getElementById('colour').options].map((o) => o.value)"))
        self.ask("(() => { const s = document.getElementById('colour'); s.value = 'run:time'; s.dispatchEvent(new Event('change')); })()")
        self.browser.settle()
        self.assertIn("simulated", self.ask("document.getElementById('legend').innerText"))
        heads = self.ask("[...document.querySelectorAll('#pane th')].map((h) => h.innerText.replace(/[▾▴]/, '').trim())")
        for row in self.ask("[...document.querySelectorAll('#pane tr[data-i]')].map((r) => [r.dataset.key, ...[...r.cells].map((c) => c.innerText.trim())])"):
            step = next(s for s in run["steps"] if s["id"] == row[0])
            self.assertEqual(row[1 + heads.index("time")], f"{step['time_us']:.2f} µs")

    def test_a_profiles_launches_stand_beside_the_steps_they_are_of(self):
        self.assertIn("run:profiled time", self.ask("[...document.getElementById('colour').options].map((o) => o.value)"))
        self.browser.click_on("[data-tab='profile']")
        rows = self.ask("[...document.querySelectorAll('#pane tr[data-i]')].map((r) => [...r.cells].map((c) => c.innerText.trim()))")
        self.assertEqual([row[1] for row in rows], ["wrapped_power", "nobodys"])
        self.assertEqual([row[2] for row in rows], ["4.25", "2.00"])
        self.assertEqual([row[5] for row in rows], ["instruction", ""])
        self.assertIn("the model has no instruction nobodys", rows[1][7])
        self.assertIn("all times are imported", self.ask("document.querySelector('#pane pre').innerText"))
        self.browser.click_on("#pane tr[data-i='0']")
        self.assertIn("imported", self.details())

    def test_every_figure_is_there_and_follows(self):
        kernel = self.plans["astitch"]["kernels"][0]["id"]
        for tab, wanted in (("timeline", "canvas.timeline"), ("roofline", "svg .mark"), ("memory", "svg .life"), ("decided", "tr[data-i]")):
            self.browser.click_on(f"[data-tab='{tab}']")
            self.assertGreater(self.ask(f"document.querySelectorAll('#pane {wanted}').length"), 0, tab)
        self.browser.click_on("[data-tab='timeline']")
        step = self.ask(f"stitchwork.plan.stepById.get('{kernel}')")
        self.browser.click(*self.ask(f"stitchwork.pane.locate({step})"))
        self.assertEqual(self.ask("location.hash"), f"#tab=timeline&kernel={kernel}")
        self.browser.click_on("[data-tab='roofline']")
        self.assertEqual(len(self.ask("[...document.querySelectorAll('.mark.selected')].map((m) => m.dataset.mark)")), 2)
        self.browser.click_on("#theme")
        self.browser.click_on("#theme")


if __name__ == "__main__":
    unittest.main(verbosity=2)
