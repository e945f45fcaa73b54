#!/usr/bin/env python3
"""scripts/peers without the compilers: what dump.json says of the compiler's own files."""

import itertools
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts/peers"
DUMPS = ROOT / "tests/data/dumps"
sys.path.insert(0, str(SCRIPTS))
import aten_calls  # noqa: E402
import dump as peer_dump  # noqa: E402
import hlo  # noqa: E402
import xla_calls  # noqa: E402
import xla_dump  # noqa: E402
import xla_thunks  # noqa: E402


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "dump"

    def again(self, dump, **edits):
        """dump.json made anew of a copy whose files are edited (text -> text)."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(DUMPS / dump, self.folder)
        for file, change in edits.items():
            path = self.folder / file.replace("_txt", ".txt").replace("_hlo", ".hlo").replace("_ptx", ".ptx")
            path.write_text(change(path.read_text()))
        return subprocess.run([sys.executable, SCRIPTS / "xla", "--again", self.folder], capture_output=True, text=True)


class Dumps(Case):
    def test_the_committed_ones_are_what_the_script_makes(self):
        for dump in sorted(file.parent for file in DUMPS.glob("*/thunks.txt")):
            done = self.again(dump.name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads((self.folder / "dump.json").read_text()), json.loads((dump / "dump.json").read_text()), dump.name)

    def test_what_is_not_understood_is_one_line(self):
        for edits, part in (
                ({"thunks_txt": lambda t: t.replace("grid:", "blocks:")}, "no thunk as XLA of jaxlib 0.10 writes it"),
                ({"thunks_txt": lambda t: t.replace("001: kCustomKernel", "001: kWhile")}, "input_reduce_fusion: how often this loop runs is only known"),
                ({"thunks_txt": lambda t: t.replace("001: kCustomKernel", "001: kConditional")}, "which branch of this conditional runs is only known"),
                ({"thunks_txt": lambda t: t.replace("kCustomKernel", "kFft", 1).replace(" grid", " # grid", 1)}, "thunks of kind kFft are not known"),
                ({"thunks_txt": lambda t: t[t.index("\n") + 1:]}, "no thunk carries out input_reduce_fusion (fusion)"),
                ({"thunk_metadata_txt": lambda t: t.replace("input_reduce_fusion.1", "other")}, "'other', which its computation does not have"),
                ({"buffers_txt": lambda t: t.replace(" value:", " Value:")}, "no buffer assignment"),
                ({"buffers_txt": lambda t: t.replace("loop_power_fusion @0", "loop_power @0")}, "does not say where its operands and results lie"),
                ({"kernels0_ptx": lambda t: ""}, "no PTX file has its kernel"),
                ({"kernels1_ptx": lambda t: t.replace(".param .u64", ".param .u64 x,\n.param .u64", 1)}, "parameters"),
                ({"after_hlo": lambda t: ""}, "has no ENTRY computation")):
            done = self.again("fig7-a100", **edits)
            self.assertEqual(done.returncode, 1, part)
            self.assertIn(part, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_results_have_the_layout_of_the_module(self):
        done = self.again("fig7-a100", after_hlo=lambda t: t.replace("ROOT %loop_multiply_fusion = f32[64,4096]{1,0}", "ROOT %loop_multiply_fusion = f32[64,4096]{0,1}"))
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads((self.folder / "dump.json").read_text())
        self.assertEqual([place.get("layout") for place in document["results"]], [[0, 1]])
        self.assertTrue(all("layout" not in place for place in document["parameters"]))

    def test_missing_files_are_named(self):
        self.again("fig7-a100")
        (self.folder / "thunks.txt").unlink()
        done = subprocess.run([sys.executable, SCRIPTS / "xla", "--again", self.folder], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("thunks.txt: No such file", done.stderr)


class Thunks(unittest.TestCase):
    TEXT = """001: kCopy         [source | next=2] kCopy
002: kWhile        [prev=001 (1) | sink        ]
condition:
    003: kCustomKernel [source | sink] compare grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
  body:
    004: kConditional [source | sink]
      branch_0:
      branch_1:
        005: kSequential [source | sink]
            006: kCopy [source | sink] kCopy
            007: kCopy [source | sink] kCopy
    008: kWhile      [prev=003 (1) | sink        ]
condition:
      body:
        009: kCopy [source | sink] kCopy
010: kCopy         [source | next=2] kCopy
"""

    def test_are_in_what_runs_them(self):
        def told(thunks):
            return [(thunk.instruction, {part: told(inner) for part, inner in thunk.parts.items()}) for thunk in thunks]
        metadata = "".join(f'thunk_metadata {{\n thunk_info {{\n profile_annotation: "i{n}"\n thunk_id: {n}\n }}\n}}\n' for n in range(1, 11))
        found = xla_thunks.sequence(self.TEXT, metadata, "thunks.txt")
        self.assertEqual(told(found), [("i1", {}), ("i2", {
            "condition": [("i3", {})],
            "body": [("i4", {"branch_0": [], "branch_1": [("i5", {"": [("i6", {}), ("i7", {})]})]}), ("i8", {"condition": [], "body": [("i9", {})]})]}), ("i10", {})])
        inner = found[1].parts["body"][0].parts["branch_1"]
        self.assertEqual([thunk.instruction for thunk in xla_thunks.without_sequences(inner)], ["i6", "i7"])

    def test_slices_begin_where_the_trip_says(self):
        def one(text):
            return hlo.instruction(text)
        whole = hlo.Shape("f32", (10, 4, 8), (2, 1, 0))
        by_name = {"i": one("%i = s32[] parameter(0)"), "z": one("%z = s32[] constant(0)"), "c": one("%c = s32[] constant(7)")}
        config = ', dynamic_slice_sizes={1,4,8}, backend_config={"dynamic_slice_config":{"loop_index":"1","byte_offset":"1152","byte_stride":"-128"}}'
        self.assertEqual(xla_dump.offset(one("%d = f32[1,4,8]{2,1,0} dynamic-slice(%x, %i, %z, %z)" + config), by_name, whole, (5, 2)), 1152 - 2 * 128)
        with self.assertRaisesRegex(peer_dump.NotUnderstood, "its slice is of loop 1 around it; there are 1"):
            xla_dump.offset(one("%d = f32[1,4,8]{2,1,0} dynamic-slice(%x, %i, %z, %z)" + config), by_name, whole, (5,))
        plain = one("%d = f32[4,4,8]{2,1,0} dynamic-slice(%x, %c, %z, %z), dynamic_slice_sizes={4,4,8}")
        self.assertEqual(xla_dump.offset(plain, by_name, whole, ()), 6 * 128)  # where it still fits
        with self.assertRaisesRegex(peer_dump.NotUnderstood, "only known when it runs"):
            xla_dump.offset(one("%d = f32[1,4,8]{2,1,0} dynamic-slice(%x, %i, %z, %z)"), by_name, whole, (5,))
        self.assertEqual(xla_dump.offset(one("%s = f32[2,4,8]{2,1,0} slice(%x), slice={[3:5], [0:4], [0:8]}"), by_name, whole, ()), 3 * 128)


    def test_a_copy_of_a_slice_begins_where_the_slice_does(self):
        lowering = xla_dump.Lowering.__new__(xla_dump.Lowering)
        lowering.parts = hlo.computations("""HloModule m

rows (p: f32[10,4,8]) -> f32[3,4,8] {
  %p = f32[10,4,8]{2,1,0} parameter(0)
  ROOT %s = f32[3,4,8]{2,1,0} slice(%p), slice={[7:10], [0:4], [0:8]}
}

computed (p: f32[10,4,8]) -> f32[3,4,8] {
  %p = f32[10,4,8]{2,1,0} parameter(0)
  %s = f32[3,4,8]{2,1,0} slice(%p), slice={[7:10], [0:4], [0:8]}
  ROOT %n = f32[3,4,8]{2,1,0} negate(%s)
}

ENTRY %main (x: f32[10,4,8]) -> f32[3,4,8] {
  %x = f32[10,4,8]{2,1,0} parameter(0)
  %whole = f32[10,4,8]{2,1,0} copy(%x)
  %plain = f32[2,4,8]{2,1,0} slice(%x), slice={[3:5], [0:4], [0:8]}
  %other = f32[3,4,8]{2,1,0} fusion(%x), kind=kLoop, calls=%computed
  ROOT %fused = f32[3,4,8]{2,1,0} fusion(%x), kind=kLoop, calls=%rows
}
""")
        ops = {one.name: one for one in lowering.parts["ENTRY"]}
        x = xla_dump.Leaf((), (5, 256, 1280), hlo.Shape("f32", (10, 4, 8), (2, 1, 0)))
        self.assertEqual(lowering.copied(ops["whole"], x), (5, 256, 1280))
        self.assertEqual(lowering.copied(ops["plain"], x), (5, 256 + 3 * 128, 256))
        self.assertEqual(lowering.copied(ops["fused"], x), (5, 256 + 7 * 128, 384))
        with self.assertRaisesRegex(peer_dump.NotUnderstood, "other: a copy of more than a slice is not known"):
            lowering.copied(ops["other"], x)


class Text(unittest.TestCase):
    def test_arrays_of_tuples(self):
        self.assertEqual([(path, shape.dims) for path, shape in hlo.leaves("(f32[2]{0}, (s8[4,5]{1,0}, (), pred[]), /*index=2*/f32[3])")],
                         [((0,), (2,)), ((1, 0), (4, 5)), ((1, 2), ()), ((2,), (3,))])
        self.assertEqual([path for path, _ in hlo.leaves("f32[2,3]{1,0:T(8,128)}")], [()])

    def test_instructions(self):
        one = hlo.instruction('  ROOT %a.1 = (f32[2,3]{0,1:T(8)}, /*index=1*/s8[4]{0}) custom-call(%b, %c.2), custom_call_target="x(y", metadata={op_name="f/g{h}"}')
        self.assertEqual((one.name, one.op, one.root, one.is_tuple, one.operands, one.op_name), ("a.1", "custom-call", True, True, ["b", "c.2"], "f/g{h}"))
        self.assertEqual((one.shapes[0].in_memory, one.shapes[0].bytes, one.shapes[0].row_major, one.shapes[1].dims), ((3, 2), 24, False, (4,)))
        self.assertIsNone(hlo.instruction("}"))

    def test_instructions_as_stitchwork_prints_them(self):
        parts = hlo.computations("HloModule m\n\nsum {\n  a = f32[] parameter(0)\n  ROOT b = f32[] add(a, a)\n}\n\nENTRY main {\n  x = f32[4]{0} parameter(0)\n"
                                 "  zero = f32[] constant(0)\n  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=sum\n}\n")
        self.assertEqual([one.operands for one in parts["ENTRY"]], [[], [], ["x", "zero"]])
        self.assertEqual((parts["sum"][1].op, parts["sum"][1].operands), ("add", ["a", "a"]))

    def test_ptx_without_debug(self):
        ptx = ".version 8.0\n\t.file\t1 \"a.py\"\n.entry k()\n{\n\t.loc\t1 2 3\n\tret;\n}\n\t.section\t.debug_info\n\t{\n.b8 1\n\t}\n"
        self.assertEqual(peer_dump.without_debug(ptx), ".version 8.0\n.entry k()\n{\n\tret;\n}\n")

    def test_constants(self):
        self.assertEqual(hlo.values("{ { 1, -2.5e-3 }, /*i1=1*/{ inf, true } }"), [1, -2.5e-3, float("inf"), 1])
        self.assertIsNone(hlo.values("{...}"))

    def test_zeros_keep_their_sign(self):
        self.assertEqual(hlo.with_negative_zeros("c-0 = f32[2,2] constant({ { -0, 0 }, { -0.5, -0 } }), padding=-0_1, x = constant(-0)"),
                         "c-0 = f32[2,2] constant({ { -0.0, 0 }, { -0.5, -0.0 } }), padding=-0_1, x = constant(-0.0)")
        shape = hlo.Shape("s32", (2, 3), (0, 1))
        self.assertEqual(xla_dump.in_memory_order([1, 2, 3, 4, 5, 6], shape), [1, 4, 2, 5, 3, 6])
        self.assertEqual(xla_dump.packed("bf16", [1.0, -2.0], "c"), b"\x80\x3f\x00\xc0")

    @staticmethod
    def gemm(epilogue, count, dimensions=""):
        return hlo.instruction(f'%g = (f32[2,2]{{1,0}}, s8[4]{{0}}) custom-call({", ".join(["%a"] * count)}), custom_call_target="__cublas$lt$matmul", backend_config={{'
                               f'"gemm_backend_config":{{"alpha_real":1,"beta":0,"epilogue":"{epilogue}","dot_dimension_numbers":{{{dimensions}}}}}}}')

    @unittest.skipUnless(os.environ.get("STITCHWORK"), "STITCHWORK names no command")
    def test_an_epilogue_of_gelu_is_its_approximation_by_tanh(self):
        matrix, bias = hlo.Shape("f32", (2, 2), (1, 0)), hlo.Shape("f32", (2,), (0,))
        contraction = '"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]'
        a, b, c = [1.0, -2.0, 0.5, 3.0], [0.25, 1.0, -1.0, 0.5], [0.5, -4.0]
        product = [sum(a[2 * i + k] * b[2 * k + j] for k in (0, 1)) for i in (0, 1) for j in (0, 1)]
        for epilogue, operands, added in (("GELU", [matrix] * 2, [0, 0]), ("BIAS_GELU", [matrix, matrix, bias], c)):
            text, count = xla_calls.computes("__cublas$lt$matmul", self.gemm(epilogue, len(operands), contraction), operands)
            self.assertEqual(count, 1)
            buffers = {name: {"type": "f32", "shape": [len(v)], "fill": {"values": v}} for name, v in (("a", a), ("b", b), ("c", c), ("r", [0.0] * 4))}
            buffers["r"]["save"] = "r.npy"
            step = {"call": "gemm", "computes": text, "operands": ["a", "b", "c"][:len(operands)], "results": ["r"]}
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "program.json"
                file.write_text(json.dumps({"schema": "stitchwork.ptx-program/1", "device": "a100", "modules": [], "buffers": buffers, "steps": [step]}))
                done = subprocess.run([os.environ["STITCHWORK"], "ptx", "run", file], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr + text)
                found = struct.unpack("<4f", (pathlib.Path(folder) / "r.npy").read_bytes()[-16:])
            for i, x in enumerate(product):
                x += added[i % 2]
                self.assertAlmostEqual(found[i], 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))), places=5)

    def test_calls_that_nobody_knows_have_no_text(self):
        gemm, matrix = self.gemm, hlo.Shape("f32", (2, 2), (1, 0))
        self.assertIsNotNone(xla_calls.computes("__cublas$lt$matmul", gemm("RELU", 2), [matrix] * 2))
        self.assertIsNone(xla_calls.computes("__cublas$lt$matmul", gemm("GELU_AUX", 2), [matrix] * 2))
        self.assertIsNone(xla_calls.computes("__cublas$lt$matmul", gemm("DEFAULT", 3), [matrix] * 3))
        self.assertIsNone(xla_calls.computes("__cublas$unknown", gemm("DEFAULT", 2), [matrix] * 2))


@unittest.skipUnless(os.environ.get("STITCHWORK"), "STITCHWORK names no command")
class AtenCalls(unittest.TestCase):
    """What a library call computes of tensors as torch strides them, carried out by the evaluator, against sums of products here."""

    def run_call(self, name, operands, result, more, memory):
        """`memory`: what the result's elements and those between them were before. What they are then."""
        text, gaps = aten_calls.computes(name, operands, [result], more)
        values = [[(7 * i + 3 * o) % 5 - 2 for i in range(view.span)] for o, view in enumerate(operands)]
        buffers = {f"p{o}": {"type": "f32", "shape": [len(v)], "fill": {"values": v}} for o, v in enumerate(values)}
        buffers["r"] = {"type": "f32", "shape": [len(memory)], "fill": {"values": memory}, "save": "r.npy"}
        places = [f"p{o}" for o in range(len(operands))]
        step = {"call": name, "computes": text, "operands": places + ["r"] * gaps, "results": ["r"]}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "program.json"
            file.write_text(json.dumps({"schema": "stitchwork.ptx-program/1", "device": "a100", "modules": [], "buffers": buffers, "steps": [step]}))
            done = subprocess.run([os.environ["STITCHWORK"], "ptx", "run", file], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr + text)
            data = (pathlib.Path(folder) / "r.npy").read_bytes()
        return values, list(struct.unpack(f"<{len(memory)}f", data[-4 * len(memory):]))

    @staticmethod
    def at(view, values, *index):
        return values[sum(i * s for i, s in zip(index, view.stride))]

    def view(self, size, stride):
        return aten_calls.View("f32", size, stride)

    def check(self, name, operands, result, value, more=None):
        memory = [100 + i for i in range(result.span)]
        values, found = self.run_call(name, operands, result, more or {}, memory)
        for index in itertools.product(*map(range, result.size)):
            memory[sum(i * s for i, s in zip(index, result.stride))] = value(values, *index)
        self.assertEqual(found, memory, (name, operands, result))

    def test_products_of_any_strides(self):
        left = [self.view((3, 4), s) for s in ((4, 1), (1, 3), (9, 1), (9, 2), (0, 1), (1, 7))]
        right = [self.view((4, 5), s) for s in ((5, 1), (1, 4), (11, 2))]
        into = [self.view((3, 5), s) for s in ((5, 1), (1, 3), (8, 1), (1, 4), (12, 2))]
        for number, (a, b) in enumerate(itertools.product(left, right)):
            self.check("mm", [a, b], into[number % len(into)],
                       lambda v, i, j, a=a, b=b: sum(self.at(a, v[0], i, k) * self.at(b, v[1], k, j) for k in range(4)))

    def test_products_of_batches(self):
        a, b = self.view((2, 3, 4), (4, 8, 1)), self.view((2, 4, 5), (24, 1, 5))
        for result in (self.view((2, 3, 5), (15, 5, 1)), self.view((2, 3, 5), (5, 10, 1)), self.view((2, 3, 5), (40, 6, 1))):
            self.check("bmm", [a, b], result, lambda v, n, i, j: sum(self.at(a, v[0], n, i, k) * self.at(b, v[1], n, k, j) for k in range(4)))

    def test_products_with_what_is_added(self):
        a, b, result = self.view((3, 4), (4, 1)), self.view((4, 5), (1, 4)), self.view((3, 5), (5, 1))
        for added, stride in (((5,), (1,)), ((3, 1), (1, 1)), ((3, 5), (1, 3)), ((1, 5), (5, 1))):
            c = self.view(added, stride)

            def value(v, i, j, c=c):
                index = (i, j)[2 - len(c.size):]
                one = self.at(c, v[0], *(0 if n == 1 else x for n, x in zip(c.size, index)))
                return 2 * sum(self.at(a, v[1], i, k) * self.at(b, v[2], k, j) for k in range(4)) + 3 * one
            self.check("addmm", [c, a, b], result, value, {"alpha": 2, "beta": 3})

    def test_convolutions(self):
        x, w, bias = self.view((2, 4, 7), (28, 7, 1)), self.view((6, 2, 3), (6, 3, 1)), self.view((6,), (1,))
        # stride 2, padding 1, dilation 2, 2 groups: 3 places
        self.check("convolution", [x, w, bias], self.view((2, 6, 3), (18, 3, 1)),
                   lambda v, n, o, p: self.at(bias, v[2], o) + sum(self.at(x, v[0], n, o // 3 * 2 + i, 2 * p + 2 * k - 1) * self.at(w, v[1], o, i, k)
                                                                   for i in range(2) for k in range(3) if 0 <= 2 * p + 2 * k - 1 < 7),
                   {"arguments": [[2], [1], [2], False, [0], 2]})
        # transposed: stride 2, padding 1, one more behind: 14 places
        w = self.view((4, 5, 3), (15, 3, 1))
        self.check("convolution", [x, w], self.view((2, 5, 14), (70, 14, 1)),
                   lambda v, n, o, p: sum(self.at(x, v[0], n, i, q) * self.at(w, v[1], i, o, p + 1 - 2 * q)
                                          for i in range(4) for q in range(7) if 0 <= p + 1 - 2 * q < 3),
                   {"arguments": [[2], [1], [1], True, [1], 1]})

    def test_others_have_no_text(self):
        view = self.view((2, 2), (2, 1))
        self.assertIsNone(aten_calls.computes("_softmax", [view], [view], {}))
        self.assertIsNone(aten_calls.computes("topk", [view], [view, aten_calls.View("s64", (2, 2), (2, 1))], {"k": 2, "dim": 0, "largest": True}))


if __name__ == "__main__":
    unittest.main()
