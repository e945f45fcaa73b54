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


def xprof(module, *launches):
    """A profile in XProf's form, of launches: begin and duration in us, kernel, HLO op."""
    named = lambda what, tid, name: {"ph": "M", "pid": 1, "tid": tid, "name": what, "args": {"name": name}}
    return json.dumps({"traceEvents": [named("process_name", 0, "/device:GPU:0"), named("thread_name", 7, "Stream #7(Compute)")] + [
        {"ph": "X", "pid": 1, "tid": 7, "ts": at, "dur": us, "name": kernel, "args": {"hlo_module": module, "hlo_op": op}}
        for at, us, kernel, op in launches]})


class InBrowser(unittest.TestCase):
    """Pages of a folder of the class's own, which `make` fills."""
    @classmethod
    def setUpClass(cls):
        program = browser.find()
        if program is None:
            raise unittest.SkipTest("no Chromium here (Debian: chromium): the page is not opened")
        cls.folder = tempfile.TemporaryDirectory()
        cls.make(pathlib.Path(cls.folder.name))
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

    def found(self, query):
        self.ask(f"(() => {{ const q = document.getElementById('query'); q.value = {json.dumps(query)}; stitchwork.search(); }})()")
        return self.ask("(stitchwork.found || []).map((n) => stitchwork.plan.nodes[n].label)")


class Page(InBrowser):
    @classmethod
    def make(cls, folder):
        cls.file = folder / "page.html"
        cls.ran = folder / "run.json"
        cls.ran.write_text(stitchwork("run", MODEL, "--planner", "astitch", "--json"))
        # One op is a kernel of a name, one kernel is nobody's.
        cls.profiled = folder / "trace.json"
        cls.profiled.write_text(xprof(MODEL, (10, 4.25, "wrapped_power", "power.1"), (20, 2, "nobodys", "nobodys")))
        stitchwork("view", MODEL, "--planners", "astitch,xla", "--run", str(cls.ran), "--profile", str(cls.profiled), "-o", str(cls.file))
        cls.plans = {p: document("plan", MODEL, "--planner", p) for p in ("astitch", "xla")}

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
        plan = self.plans["astitch"]
        with_scheme = {op for k in plan["kernels"] for op, s in k["schemes"].items() if s == "regional"}
        self.assertTrue(with_scheme)
        self.assertEqual(set(self.found("scheme:regional")), with_scheme)
        kernel = plan["kernels"][0]
        self.assertEqual(self.found(f"kernel:{kernel['id']}"), [f"{kernel['id']} {kernel['name']}"])
        self.assertTrue(all(label.startswith("reduce") for label in self.found("op:reduce")) and self.found("op:reduce"))
        self.assertEqual(self.found("dtype:f64"), [])
        self.assertIn("no filter 'colour'", (self.found("colour:red"), self.ask("document.getElementById('found').textContent"))[1])
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
        self.assertEqual(len(kinds), sum(len(said[key]) for key in ("boundaries", "changed", "removed", "added", "moved", "products")))
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


def large_model(softmaxes):
    """HLO of 4 ops a softmax (without its maximum), one behind the other, and a loop in their middle."""
    ops, last = ["p = f32[4,8] parameter(0)", "zero = f32[] constant(0)", "start = s32[] constant(0)"], "p"
    for i in range(softmaxes):
        if i == softmaxes // 2:
            ops += [f"carry = (s32[], f32[4,8]) tuple(start, {last})", "loop = (s32[], f32[4,8]) while(carry), condition=cond, body=body",
                    "looped = f32[4,8] get-tuple-element(loop), index=1"]
            last = "looped"
        ops += [f"e{i} = f32[4,8] exponential({last})", f"r{i} = f32[4] reduce(e{i}, zero), dimensions={{1}}, to_apply=sum",
                f"b{i} = f32[4,8] broadcast(r{i}), dimensions={{0}}", f"d{i} = f32[4,8] divide(e{i}, b{i})"]
        last = f"d{i}"
    return "\n".join(["HloModule large",
                      "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }",
                      "cond { c = (s32[], f32[4,8]) parameter(0)  i = s32[] get-tuple-element(c), index=0  n = s32[] constant(5)  ROOT less = pred[] compare(i, n), direction=LT }",
                      "body { c2 = (s32[], f32[4,8]) parameter(0)  i2 = s32[] get-tuple-element(c2), index=0  one = s32[] constant(1)  next = s32[] add(i2, one)",
                      "  x = f32[4,8] get-tuple-element(c2), index=1  y = f32[4,8] tanh(x)  ROOT t = (s32[], f32[4,8]) tuple(next, y) }",
                      "ENTRY main {", *ops, f"ROOT out = f32[4,8] negate({last})", "}", ""])


class Excerpt(InBrowser):
    """A page of a model of 12,000 ops around its loop: a plan of a file, which rewrote the model, and a planner's, which ran and was profiled."""
    @classmethod
    def make(cls, folder):
        cls.model, cls.file, files = folder / "large.hlo", folder / "page.html", {}
        cls.model.write_text(large_model(3000))
        for planner in ("korch", "xla"):
            files[planner] = folder / f"{planner}.json"
            files[planner].write_text(stitchwork("plan", str(cls.model), "--planner", planner, "--json"))
        cls.plans = {planner: json.loads(file.read_text()) for planner, file in files.items()}
        cls.ran, profile = folder / "run.json", folder / "trace.json"
        cls.ran.write_text(stitchwork("run", str(cls.model), "--planner", "xla", "--json"))
        profile.write_text(xprof("large", (10, 4.25, "on_the_page", "r1400"), (20, 2, "elsewhere", "r2900"), (30, 1, "nobodys", "nobodys")))
        stitchwork("view", str(cls.model), "--plan", str(files["korch"]), "--planners", "xla", "--run", str(cls.ran), "--profile", str(profile),
                   "--around", "loop", "-o", str(cls.file))

    def test_it_says_what_it_leaves_out(self):
        told, plan = self.details(), self.plans["korch"]
        excerpt = self.ask("stitchwork.plan.excerpt")
        self.assertEqual(excerpt["of_steps"], len(plan["steps"]))
        self.assertLess(excerpt["steps"], excerpt["of_steps"])
        self.assertIn(f"{excerpt['steps']:,} steps of {len(plan['steps']):,}", told)
        self.assertIn("--around OP", told)
        self.assertIn(f"{plan['predicted_us']:.1f} µs modelled", told)
        self.assertIn("of the steps on this page", (self.browser.click_on("[data-tab='timeline']"), self.ask("document.getElementById('pane').innerText"))[1])

    def test_the_table_has_the_whole_plans_numbers_of_the_steps_shown(self):
        for planner, plan in self.plans.items():
            self.open(f"#plan={planner}")
            steps = {s["id"]: s for s in plan["steps"]}
            rows = self.ask("[...document.querySelectorAll('#pane tr[data-i]')].map((r) => [r.dataset.key, r.cells[2].innerText.trim()])")
            entry = [(key, time) for key, time in rows if key in steps]
            self.assertTrue(entry)
            for key, time in entry:
                self.assertEqual(time, f"{steps[key]['predicted_us']:.2f}", key)

    def test_why_is_as_explain_has_it_and_a_link_survives_a_reload(self):
        for planner, op in (("xla", "r1400"), ("korch", "d1501"), ("xla", "loop"), ("xla", "y")):
            self.open(f"#plan={planner}&op={op}")
            told, said = self.details(), document("explain", str(self.model), op, "--planner", planner)
            self.assertTrue(told.startswith(op), told[:60])
            self.assertTrue(said["placements"] or said["neighbours"])
            for at in said["placements"]:
                for text in (at["scheme"], at["role"], at["mapping"], at["kernel"]):
                    self.assertIn(text, told)
            for neighbour in said["neighbours"]:
                self.assertIn(" ".join(neighbour["refusal"]["why"].split()), told)
            address = self.ask("location.hash")
            self.browser.reload()
            self.assertEqual((self.ask("location.hash"), self.details()), (address, told))

    def test_search_and_links_say_what_is_not_on_the_page(self):
        self.assertEqual(self.found("d1501"), ["d1501"])
        self.browser.key("Escape")
        self.assertEqual(self.found("d2900"), [])
        self.assertEqual(self.ask("document.getElementById('found').textContent"), "not on this page")
        self.open("#op=d2900")
        self.assertIn("The link's op d2900 is not on this page", self.details())
        self.browser.reload()
        self.assertIn("The link's op d2900 is not on this page", self.details())
        self.assertEqual(self.ask("location.hash"), "#op=d2900")
        self.browser.click_on("#pane tr[data-i]")
        self.browser.key("Escape")
        self.assertNotIn("The link's", self.details())
        self.assertNotIn("d2900", self.ask("location.hash"))

    def test_a_rewriting_leads_to_its_op(self):
        self.open("#tab=rewritings&op=d1501")
        ours = self.ask("[...document.querySelectorAll('#pane tr[data-i]')].length")
        self.assertGreater(ours, 0)
        self.browser.click_on("#pane tr[data-i]")
        self.assertIn(self.plans["korch"]["rewrites"][0]["rule"], self.details())

    def test_runs_and_profiles_stand_beside_the_steps_shown(self):
        self.open("#plan=xla&op=r1400")
        step = next(s for s in json.loads(self.ran.read_text())["steps"] if s["id"] == self.selected_rows()[0])
        heads = self.ask("[...document.querySelectorAll('#pane th')].map((h) => h.innerText.replace(/[▾▴]/, '').trim())")
        cells = self.ask("[...document.querySelector('#pane tr.selected').cells].map((c) => c.innerText.trim())")
        self.assertEqual(dict(zip(heads, cells))["time"], f"{step['time_us']:.2f} µs")
        self.open("#plan=xla&tab=profile")
        rows = self.ask("[...document.querySelectorAll('#pane tr[data-i]')].map((r) => [...r.cells].map((c) => c.innerText.trim()))")
        self.assertEqual([(row[1], row[2]) for row in rows], [("on_the_page", "4.25"), ("nobodys", "1.00")])
        told = self.ask("document.querySelector('#pane pre').innerText")
        self.assertIn("launches of the steps on this page", told)
        self.assertIn("3 launches", told)
        self.browser.click_on("#pane tr[data-i='0']")
        self.assertIn("imported", self.details())

    def test_an_op_that_is_not_there_is_one_line(self):
        page = self.file.with_name("none.html")
        said = subprocess.run([STITCHWORK, "view", str(self.model), "--planners", "xla", "--around", "nosuch", "-o", str(page)], capture_output=True, text=True, check=False)
        self.assertEqual((said.returncode, said.stdout, said.stderr.count("\n")), (1, "", 1))
        self.assertIn("'nosuch'", said.stderr)
        self.assertFalse(page.exists())



class LongSource(InBrowser):
    """A kernel with more lines than are put into the page at once."""
    OPS = 600

    @classmethod
    def make(cls, folder):
        names = [f"v{k}" for k in range(cls.OPS)]
        lines = [f"  {'ROOT ' if k == cls.OPS - 1 else ''}{name} = f32[64,128] {'tanh' if k % 2 else 'negate'}({names[k - 1] if k else 'p'})" for k, name in enumerate(names)]
        (folder / "long.hlo").write_text("HloModule long\nENTRY main {\n  p = f32[64,128] parameter(0)\n" + "\n".join(lines) + "\n}\n")
        cls.file = folder / "long.html"
        stitchwork("view", folder / "long.hlo", "--planners", "xla", "-o", str(cls.file))

    def test_the_selected_op_is_there_at_once_and_the_text_is_whole_in_the_end(self):
        here = "document.querySelector('#codetext a.here')?.dataset.op"
        for op in (f"v{self.OPS // 2}", "v3", f"v{self.OPS - 2}"):
            self.ask(f"stitchwork.selectOp({json.dumps(op)}, stitchwork.plan, {{from: 'link'}})")
            self.assertEqual(self.ask(here), op)
        self.browser.wait("!stitchwork.source.pieces.missing.size")
        self.assertEqual(self.ask(here), f"v{self.OPS - 2}")
        text = self.ask("stitchwork.plan.source(0).pieces.map((piece) => piece.text).join('')")
        lines = self.ask("[...document.querySelectorAll('#codetext .line')].map((line) => line.textContent)")
        self.assertGreater(len(lines), 256)
        self.assertEqual(lines, [line or " " for line in text.split("\n")])


if __name__ == "__main__":
    unittest.main(verbosity=2)
