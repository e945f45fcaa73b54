#!/usr/bin/env python3
"""What is captured can be opened and planned. STITCHWORK names the program; frameworks that are missing are skipped."""

import gzip
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from stitchwork_capture import CaptureError, capture_jax, capture_torch, capture_torch_training, convert_stablehlo

os.environ.setdefault("JAX_PLATFORMS", "cpu")


def missing(*packages):
    return [package for package in packages if importlib.util.find_spec(package) is None]


def stitchwork(*words):
    """Standard output of the program; "" where STITCHWORK is not set."""
    program = os.environ.get("STITCHWORK")
    if not program:
        return ""
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"stitchwork {' '.join(map(str, words))}: {done.stderr or done.stdout}")
    return done.stdout


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, path, ops=()):
        """Planned, run in the simulator and equal to the reference; `ops` are words of its graph."""
        if not os.environ.get("STITCHWORK"):
            return
        graph = stitchwork("plan", path, "--dump=graph")
        for op in ops:
            self.assertIn(op + "(", graph)
        self.assertIn("check: ok", stitchwork("run", path, "--check"))

    def refused(self, message, function, *args, **kwargs):
        with self.assertRaises(CaptureError) as raised:
            function(*args, **kwargs)
        self.assertIn(message, str(raised.exception))
        self.assertNotIn("\n", str(raised.exception))
        self.assertEqual(list(self.folder.iterdir()), [], "nothing is left behind")


@unittest.skipIf(missing("jax"), "JAX is not installed")
class Jax(Folder):
    def test_stablehlo_as_text_and_as_bytecode_is_what_was_lowered(self):
        import jax.export
        import jax.numpy as jnp

        function = jax.jit(lambda x: jnp.tanh(x @ x.T).sum(axis=0))
        shape = jax.ShapeDtypeStruct((4, 3), jnp.float32)
        (self.folder / "text.mlir").write_text(function.lower(shape).as_text())
        (self.folder / "bytes.mlirbc").write_bytes(jax.export.export(function)(shape).mlir_module_serialized)
        for module in ("text.mlir", "bytes.mlirbc"):
            path = convert_stablehlo(self.folder / module, self.folder / (module + ".hlo"))
            text = path.read_text()
            for op in ("dot(", "tanh(", "reduce("):
                self.assertIn(op, text)
            self.check(path, ["tanh"])
        (self.folder / "wrong.mlir").write_text("module { nonsense }")
        with self.assertRaisesRegex(CaptureError, "^[^\n]*wrong.mlir: jaxlib cannot convert it: [^\n]*$"):
            convert_stablehlo(self.folder / "wrong.mlir", self.folder / "wrong.hlo")
        with self.assertRaisesRegex(CaptureError, "absent.mlir: cannot be read"):
            convert_stablehlo(self.folder / "absent.mlir", self.folder / "wrong.hlo")
        self.assertFalse((self.folder / "wrong.hlo").exists())

    def test_a_function_is_captured(self):
        import jax
        import jax.numpy as jnp

        def layer(x, weights):
            return jax.nn.softmax(jnp.tanh(x @ weights["w"] + weights["b"]))

        path = capture_jax(layer, jnp.ones((5, 7)), {"w": jnp.ones((7, 3)), "b": jnp.ones(3)}, out=self.folder / "f.hlo")
        self.assertIn("tanh", path.read_text())
        self.check(path, ("dot", "tanh", "exponential", "reduce"))

    def test_shapes_are_enough_and_jitted_functions_and_gradients_are_taken(self):
        import jax
        import jax.numpy as jnp

        loss = jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)))
        path = capture_jax(loss, jax.ShapeDtypeStruct((4, 9), jnp.float32), out=self.folder / "g.hlo.gz")
        self.assertIn("cosine", gzip.decompress(path.read_bytes()).decode())
        self.check(path, ("cosine",))

    def test_a_large_constant_is_written_out(self):
        import jax.numpy as jnp
        import numpy as np

        table = np.arange(5000, dtype=np.float32)
        path = capture_jax(lambda x: x * jnp.asarray(table), jnp.ones(5000), out=self.folder / "c.hlo")
        self.check(path, ("multiply",))

    def test_the_tutorial_captures_its_sample(self):
        docs = pathlib.Path(__file__).resolve().parent.parent / "docs"
        if not (docs / "tutorial.md").is_file():
            self.skipTest("the documents are not beside this package")
        program = re.search(r"```python gated_mlp.py\n(.*?)```", (docs / "tutorial.md").read_text(), re.S)[1]
        environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).resolve().parent)}
        subprocess.run([sys.executable, "-c", program], cwd=self.folder, env=environment, check=True)
        ops = lambda file: sorted(re.findall(r" = (\w+\[[\d,]*\])\S* ([\w-]+)\(", file.read_text()))
        self.assertEqual(ops(self.folder / "gated_mlp.hlo"), ops(docs / "sample/gated_mlp/gated_mlp.hlo"))
        self.check(self.folder / "gated_mlp.hlo", ("dot", "rsqrt"))

    def test_mistakes_are_named(self):
        out = self.folder / "f.hlo"
        self.refused("cannot trace", capture_jax, lambda x: float(x), 1.0, out=out)
        self.refused("cannot be called", capture_jax, 3, out=out)
        self.refused("must end in .hlo", capture_jax, abs, 1.0, out=self.folder / "f.onnx")
        self.refused("no folder", capture_jax, abs, 1.0, out=self.folder / "none" / "f.hlo")


@unittest.skipIf(missing("torch", "onnx", "onnxscript"), f"not installed: {' '.join(missing('torch', 'onnx', 'onnxscript'))}")
class Torch(Folder):
    def test_a_module_is_captured_and_its_mode_restored(self):
        import torch

        module = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.Tanh(), torch.nn.Dropout(), torch.nn.Sigmoid())
        path = capture_torch(module, torch.ones(3, 7), out=self.folder / "m.onnx")
        self.assertTrue(module.training)
        self.check(path, ("dot", "tanh", "logistic"))

    def test_mistakes_are_named(self):
        import torch

        class Fails(torch.nn.Module):
            def forward(self, x):
                return x @ x

        self.refused("is no torch.nn.Module", capture_torch, torch.sin, torch.ones(2), out=self.folder / "m.onnx")
        self.refused("cannot export Fails", capture_torch, Fails(), torch.ones(2, 3), out=self.folder / "m.onnx")
        self.refused("must end in .onnx", capture_torch, Fails(), torch.ones(2, 3), out=self.folder / "m.hlo")
        mistaken = torch.nn.functional.mse_loss, torch.ones(2, 3), torch.ones(2, 2)
        self.refused("cannot export a step of Fails", capture_torch_training, Fails(), *mistaken, out=self.folder / "m.onnx")
        divided = torch.nn.Sequential(torch.nn.Conv1d(1, 1, 1), torch.nn.Flatten(0), torch.nn.Unflatten(0, (1, 3, 4)), torch.nn.AvgPool2d(2, divisor_override=3))
        self.refused("divisor_override", capture_torch_training, divided, torch.nn.functional.mse_loss, torch.ones(3, 1, 4), torch.ones(1, 1, 2), out=self.folder / "m.onnx")
        self.refused("is no torch.nn.Module", capture_torch_training, torch.sin, *mistaken, out=self.folder / "m.onnx")

    def has_the_gradients_of_torch(self, module, loss, x, y):
        import numpy

        module.eval()
        path = capture_torch_training(module, loss, x, y, out=self.folder / "step.onnx")
        if not os.environ.get("STITCHWORK"):
            return
        for i, value in enumerate([*module.parameters(), *module.buffers(), x, y]):
            numpy.save(self.folder / f"{i}.npy", value.detach().numpy())
        ran = stitchwork("run", path, "--check", "--inputs", self.folder, "--outputs", self.folder)
        self.assertIn("check: ok", ran)
        right = [loss(module(x), y)]
        right[0].backward()
        right += [p.grad for p in module.parameters()]
        for i, value in enumerate(right):
            given = numpy.load(self.folder / f"out{i}.npy")
            numpy.testing.assert_allclose(given, value.detach().numpy(), rtol=1e-4, atol=1e-6)

    def test_a_training_step_has_the_gradients_of_torch(self):
        import torch
        from torch import nn

        torch.manual_seed(1)
        loss, y = nn.functional.cross_entropy, torch.tensor([2, 0])
        norm = nn.utils.parametrizations.weight_norm
        with self.subTest("convolution in groups"):
            module = nn.Sequential(nn.Conv1d(4, 8, 3, stride=2, groups=4, padding=1), nn.BatchNorm1d(8), nn.GELU(), nn.Flatten(), nn.Linear(40, 3))
            self.has_the_gradients_of_torch(module, loss, torch.randn(2, 4, 9), y)
        with self.subTest("transposed convolution"):
            module = nn.Sequential(
                nn.Conv2d(3, 4, 1), nn.ConvTranspose2d(4, 6, (3, 2), stride=(3, 2), groups=2, padding=1, output_padding=(2, 0), dilation=(1, 2)), nn.Flatten(), norm(nn.Linear(648, 3)))
            self.has_the_gradients_of_torch(module, loss, torch.randn(2, 3, 4, 5), y)
        with self.subTest("average pools"):
            module = nn.Sequential(
                nn.Conv2d(1, 2, 1), nn.AvgPool2d(3, 2, padding=1, ceil_mode=True), nn.Conv2d(2, 2, 1), nn.AvgPool2d((2, 3), ceil_mode=True, count_include_pad=False),
                nn.Flatten(), norm(nn.Linear(12, 3), dim=1))
            self.has_the_gradients_of_torch(module, loss, torch.randn(2, 1, 9, 10), y)


class Wrapped(Folder):
    def test_what_an_exporter_wraps_in_advice_is_quoted(self):
        class Module:
            training = False

            def eval(self):
                pass

            train = lambda self, mode: None
            __call__ = lambda self, *args: args

        def export(*_, **__):
            try:
                raise ValueError("aten.fft_rfft has no ONNX form\nat line 3")
            except ValueError as error:
                raise RuntimeError("Failed to export the model.\nRead our guide") from error

        class NoGrad:
            __enter__ = __exit__ = lambda *_: None

        torch = types.SimpleNamespace(
            nn=types.SimpleNamespace(Module=Module), no_grad=NoGrad, onnx=types.SimpleNamespace(export=export)
        )
        with unittest.mock.patch.dict(sys.modules, {"torch": torch}):
            self.refused("aten.fft_rfft has no ONNX form", capture_torch, Module(), 1.0, out=self.folder / "m.onnx")


class Missing(Folder):
    def test_a_missing_framework_is_named(self):
        for name, capture in (("jax", capture_jax), ("torch", capture_torch)):
            if missing(name):
                ending = {"jax": "hlo", "torch": "onnx"}[name]
                self.refused(f"pip install {name}", capture, abs, 1.0, out=self.folder / f"m.{ending}")


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"skipped {test}: {reason}")
    sys.exit(0 if result.wasSuccessful() else 1)
