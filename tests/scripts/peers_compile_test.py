#!/usr/bin/env python3
"""scripts/peers with the compilers: run by a Python that has their packages (scripts/peers/*-requirements.txt); what is missing is skipped by name.

STITCHWORK names the program.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOFTMAX = ROOT / "examples/triton/softmax.py"
PRODUCT = """HloModule product

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }

ENTRY product {
  x = f32[24,40] parameter(0)
  w = f32[40,24] parameter(1)
  zero = f32[] constant(0)
  table = f32[3,8] constant({ {1,2,3,4,5,6,7,8}, {8,7,6,5,4,3,2,1}, {0,1,0,1,0,1,0,1} })
  flat = f32[24] reshape(table)
  scale = f32[24,24] broadcast(flat), dimensions={1}
  dot = f32[24,24] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  scaled = f32[24,24] multiply(dot, scale)
  sums = f32[24] reduce(scaled, zero), dimensions={0}, to_apply=add
  turned = f32[24,24] transpose(scaled), dimensions={1,0}
  ROOT out = (f32[24,24], f32[24]) tuple(turned, sums)
}
"""
CONVOLUTIONS = """HloModule convolutions

ENTRY convolutions {
  x = f32[1,8,12,1] parameter(0)
  w = f32[3,3,1,3] parameter(1)
  v = f32[3,3,3,4] parameter(2)
  one = s32[] constant(1)
  ones = s32[2] broadcast(one), dimensions={}
  first = s32[1] slice(ones), slice={[0:1]}
  number = f32[1] convert(first)
  edge = f32[] reshape(number)
  first_conv = f32[1,8,12,3] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  wide = f32[1,10,14,3] pad(first_conv, edge), padding=0_0x1_1x1_1x0_0
  up = f32[1,10,14,3] tanh(wide)
  ROOT second = f32[1,8,12,4] convolution(up, v), window={size=3x3}, dim_labels=b01f_01io->b01f
}
"""
MODULE = """import torch
def layer():
    return torch.nn.Sequential(torch.nn.LayerNorm(24), torch.nn.Linear(24, 16), torch.nn.GELU()), [torch.randn(8, 24)]
"""


def absent(*packages):
    return next((f"{name} is not installed" for name in packages if importlib.util.find_spec(name) is None), None if os.environ.get("STITCHWORK") else "STITCHWORK names no command")


class Peers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def peer(self, name, *words, code=0):
        done = subprocess.run([sys.executable, ROOT / "scripts/peers" / name, *map(str, words), "-o", self.folder / "dump"], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def checked(self, *words):
        done = subprocess.run([os.environ["STITCHWORK"], *map(str, words), "--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return json.loads(done.stdout)


@unittest.skipIf(absent("triton"), absent("triton"))
class Triton(Peers):
    LAUNCH = (f"{SOFTMAX}:softmax_kernel", "out=f32[13,97]", "x=f32[13,97]", "n=97", "BLOCK=128", "--grid", "13", "--result", "out")

    def test_a_launch_is_right_by_its_model(self):
        for target in ("v100", "a100", "h100", "b200"):
            self.peer("triton", *self.LAUNCH, "--model", "softmax_tiny", "--target", target)
            self.assertTrue(self.checked("run", self.folder / "dump", "--check")["check"]["ok"], target)

    def test_a_launch_is_right_by_numpy(self):
        self.peer("triton", *self.LAUNCH, "--reference", f"{SOFTMAX}:reference")
        self.checked("ptx", "run", self.folder / "dump/program.json")

    def test_what_is_wrong_is_one_line(self):
        launch = list(self.LAUNCH)
        for words, part in (([*launch, "--model", "layer_norm_tiny"], "its parameters are"), ([*launch, "y=1"], "has no parameter 'y'"),
                            ([w for w in launch if w != "n=97"], "no value of n"), ([*launch[:-1], "z"], "--result z"),
                            ([w.replace("=128", "=100") for w in launch], "refuses softmax_kernel"),
                            ([launch[0].replace("softmax_kernel", "other"), *launch[1:]], "has no kernel 'other'")):
            said = self.peer("triton", *words, code=1)
            self.assertIn(part, said)
            self.assertEqual(said.count("\n"), 1, said)


@unittest.skipIf(absent("torch", "triton"), absent("torch", "triton"))
class Inductor(Peers):
    def test_products_and_constants_of_hlo(self):
        (self.folder / "product.hlo").write_text(PRODUCT)
        self.peer("inductor", self.folder / "product.hlo")
        ran = self.checked("run", self.folder / "dump", "--check")
        self.assertTrue(ran["check"]["ok"])
        self.assertEqual(ran["counts"]["library_calls"], 1)
        self.assertEqual([step["ops"] for step in ran["steps"] if step["kind"] == "call"], [["dot"]])

    def test_convolutions_lie_in_memory_as_the_card_has_them_and_numbers_are_followed(self):
        (self.folder / "convolutions.hlo").write_text(CONVOLUTIONS)
        self.peer("inductor", self.folder / "convolutions.hlo")
        ran = self.checked("run", self.folder / "dump", "--check")
        self.assertTrue(ran["check"]["ok"])
        self.assertEqual(ran["counts"]["library_calls"], 2)

    def test_the_best_configuration_is_no_slower(self):
        times = []
        for which in ("first", "best"):
            self.peer("inductor", "layer_norm_grad_tiny", "--config", which)
            ran = self.checked("run", self.folder / "dump", "--check")
            self.assertTrue(ran["check"]["ok"])
            times.append(ran["total_us"])
        self.assertLessEqual(times[1], times[0] + 1e-9)
        configs = json.loads((self.folder / "dump/configs.json").read_text())
        self.assertTrue(all(len(tried) > 1 for tried in configs.values()))

    @unittest.skipIf(absent("onnxscript"), absent("onnxscript"))
    def test_a_module_of_torch(self):
        (self.folder / "layer.py").write_text(MODULE)
        self.peer("inductor", f"{self.folder}/layer.py:layer")
        self.assertTrue(self.checked("run", self.folder / "dump", "--check")["check"]["ok"])


class Datasets(Peers):
    """Every small dataset, as a compiler made it, is right by our reference; what it refuses is named."""

    def every(self, peer):
        models = sorted({path.name.split(".")[0] for path in (ROOT / "datasets").glob("*_tiny.json")})
        done = subprocess.run([sys.executable, ROOT / "scripts/peers/all", *models, "-o", self.folder, "--peers", peer, "--targets", "a100"], capture_output=True, text=True)
        print("\n".join(line for line in done.stdout.splitlines() + done.stderr.splitlines() if f", {peer}, " in line))
        dumps = sorted(path.parent for path in self.folder.glob(f"{peer}/*/*/dump.json"))
        self.assertGreaterEqual(len(dumps), 30)
        for dump in dumps:
            with self.subTest(dump.name):
                self.assertTrue(self.checked("run", dump, "--check", "--db", self.folder / "runs.db")["check"]["ok"])

    @unittest.skipIf(absent("jax", "jax_plugins"), absent("jax", "jax_plugins"))
    def test_by_xla(self):
        self.every("xla")

    @unittest.skipIf(absent("torch", "triton"), absent("torch", "triton"))
    def test_by_inductor(self):
        self.every("inductor")


if __name__ == "__main__":
    unittest.main()
