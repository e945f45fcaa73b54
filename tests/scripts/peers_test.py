#!/usr/bin/env python3
"""scripts/peers without the compilers: what dump.json says of the compiler's own files."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts/peers"
DUMPS = ROOT / "tests/data/dumps"
sys.path.insert(0, str(SCRIPTS))
import hlo  # noqa: E402
import xla_calls  # noqa: E402
import xla_dump  # noqa: E402


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
        for dump in sorted(DUMPS.iterdir()):
            done = self.again(dump.name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads((self.folder / "dump.json").read_text()), json.loads((dump / "dump.json").read_text()), dump.name)

    def test_what_is_not_understood_is_one_line(self):
        for edits, part in (
                ({"thunks_txt": lambda t: t.replace("grid:", "blocks:")}, "no thunk as XLA of jaxlib 0.10 writes it"),
                ({"thunks_txt": lambda t: t.replace("001: kCustomKernel", "001: kWhile")}, "it runs a kWhile"),
                ({"thunks_txt": lambda t: t.replace("kCustomKernel", "kFft", 1).replace(" grid", " # grid", 1)}, "thunks of kind kFft are not known"),
                ({"thunks_txt": lambda t: t[t.index("\n") + 1:]}, "no thunk carries out input_reduce_fusion (fusion)"),
                ({"thunk_metadata_txt": lambda t: t.replace("input_reduce_fusion.1", "other")}, "'other', which the module's entry does not have"),
                ({"buffers_txt": lambda t: t.replace(" value:", " Value:")}, "no buffer assignment"),
                ({"buffers_txt": lambda t: t.replace("loop_power_fusion @0", "loop_power @0")}, "does not say where its operands and results lie"),
                ({"kernels0_ptx": lambda t: ""}, "no PTX file has its kernel"),
                ({"kernels1_ptx": lambda t: t.replace(".param .u64", ".param .u64 x,\n.param .u64", 1)}, "parameters"),
                ({"after_hlo": lambda t: t.replace("->f32[64,4096]{1,0}", "").replace("ROOT %loop_multiply_fusion = f32[64,4096]{1,0}",
                                                                                    "ROOT %loop_multiply_fusion = f32[64,4096]{0,1}")}, "only row-major"),
                ({"after_hlo": lambda t: ""}, "has no ENTRY computation")):
            done = self.again("fig7-a100", **edits)
            self.assertEqual(done.returncode, 1, part)
            self.assertIn(part, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_missing_files_are_named(self):
        self.again("fig7-a100")
        (self.folder / "thunks.txt").unlink()
        done = subprocess.run([sys.executable, SCRIPTS / "xla", "--again", self.folder], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("thunks.txt: No such file", done.stderr)


class Text(unittest.TestCase):
    def test_instructions(self):
        one = hlo.instruction('  ROOT %a.1 = (f32[2,3]{0,1:T(8)}, /*index=1*/s8[4]{0}) custom-call(%b, %c.2), custom_call_target="x(y", metadata={op_name="f/g{h}"}')
        self.assertEqual((one.name, one.op, one.root, one.is_tuple, one.operands, one.op_name), ("a.1", "custom-call", True, True, ["b", "c.2"], "f/g{h}"))
        self.assertEqual((one.shapes[0].in_memory, one.shapes[0].bytes, one.shapes[0].row_major, one.shapes[1].dims), ((3, 2), 24, False, (4,)))
        self.assertIsNone(hlo.instruction("}"))

    def test_constants(self):
        self.assertEqual(hlo.values("{ { 1, -2.5e-3 }, /*i1=1*/{ inf, true } }"), [1, -2.5e-3, float("inf"), 1])
        self.assertIsNone(hlo.values("{...}"))
        shape = hlo.Shape("s32", (2, 3), (0, 1))
        self.assertEqual(xla_dump.in_memory_order([1, 2, 3, 4, 5, 6], shape), [1, 4, 2, 5, 3, 6])
        self.assertEqual(xla_dump.packed("bf16", [1.0, -2.0], "c"), b"\x80\x3f\x00\xc0")

    def test_calls_that_nobody_knows_have_no_text(self):
        def gemm(epilogue, count):
            return hlo.instruction(f'%g = (f32[2,2]{{1,0}}, s8[4]{{0}}) custom-call({", ".join(["%a"] * count)}), custom_call_target="__cublas$lt$matmul", backend_config={{'
                                   f'"gemm_backend_config":{{"alpha_real":1,"beta":0,"epilogue":"{epilogue}","dot_dimension_numbers":{{}}}}}}')
        matrix = hlo.Shape("f32", (2, 2), (1, 0))
        self.assertIsNotNone(xla_calls.computes("__cublas$lt$matmul", gemm("RELU", 2), [matrix] * 2))
        self.assertIsNone(xla_calls.computes("__cublas$lt$matmul", gemm("GELU_AUX", 2), [matrix] * 2))
        self.assertIsNone(xla_calls.computes("__cublas$lt$matmul", gemm("DEFAULT", 3), [matrix] * 3))
        self.assertIsNone(xla_calls.computes("__cublas$unknown", gemm("DEFAULT", 2), [matrix] * 2))


if __name__ == "__main__":
    unittest.main()
