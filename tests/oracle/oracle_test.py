"""Tests of the oracle itself: what it must call different, and what rounding excuses. Without JAX they are skipped by name.

    python3 tests/oracle/oracle_test.py
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import importlib.util

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
HAVE_JAX = importlib.util.find_spec("jax") is not None
HAVE_PROGRAM = "STITCHWORK" in os.environ or any((ROOT / "build" / preset / "cli/stitchwork").exists() for preset in ("release", "dev"))

if HAVE_JAX:
    import jax
    import jax.numpy as jnp
    import ml_dtypes
    import numpy as np

    import cases
    import judge
    import random_control
    import rounding
    import xla_cpu


def reference(fn, *inputs):
    return judge.Reference(xla_cpu.normalised(xla_cpu.text_of(fn, inputs)), list(inputs))


def changed(outputs, index, change):
    copies = [np.array(o) for o in outputs]
    copies[0].flat[index] = change(copies[0].flat[index])
    return copies


@unittest.skipUnless(HAVE_JAX, "jax is not installed: pip install -r scripts/oracle-requirements.txt")
class Judge(unittest.TestCase):
    def setUp(self):
        self.x = np.random.default_rng(0).normal(size=(4, 50)).astype(np.float32)

    def different(self, fn, inputs, index, change):
        ref = reference(fn, *inputs)
        return judge.judge(changed(ref.expected, index, change), ref).different

    def test_the_same_bits_agree(self):
        ref = reference(lambda x: (jnp.exp(x), x.argmax(1)), self.x)
        verdict = judge.judge(ref.expected, ref)
        self.assertEqual((verdict.different, verdict.allowed, verdict.elements), (0, 0, 204))

    def test_moved_values_must_have_the_same_bits(self):
        nudge = lambda v: np.nextafter(v, np.float32(9))
        self.assertEqual(self.different(lambda x: x[::-1].T, (self.x,), 7, nudge), 1)
        self.assertEqual(self.different(lambda x: jnp.maximum(x, 0), (self.x,), 7, nudge), 1)

    def test_a_sum_may_round_otherwise_and_not_more(self):
        nudge = lambda v: np.nextafter(v, np.float32(9))
        self.assertEqual(self.different(lambda x: x.sum(1), (self.x,), 2, nudge), 0)
        self.assertEqual(self.different(lambda x: x.sum(1), (self.x,), 2, lambda v: v * np.float32(1 + 1e-4)), 1)

    def test_a_small_element_beside_a_large_one_has_a_bound_of_its_own(self):
        x = np.array([1e-6, 1e6], np.float32)
        self.assertEqual(self.different(lambda x: x * 3, (x,), 0, lambda v: v * np.float32(1.001)), 1)

    def test_noise_of_a_sum_that_is_zero_is_excused_and_a_value_is_not(self):
        def sums(x):
            return (x - x.mean(1, keepdims=True)).sum(1)
        self.assertEqual(self.different(sums, (self.x,), 0, lambda v: -v), 0)
        self.assertEqual(self.different(sums, (self.x,), 0, lambda v: v + np.float32(0.01)), 1)

    def test_an_integer_is_exact_unless_rounding_decides_it(self):
        counts = lambda x: (x > 0.3).sum(1)
        self.assertEqual(self.different(counts, (self.x,), 1, lambda v: v + 1), 1)
        third = np.full((4, 9), 1 / 9, np.float32)
        self.assertEqual(self.different(lambda x: jnp.floor(x.sum(1)).astype(jnp.int32), (third,), 0, lambda v: 1 - v), 0)

    def test_nan_infinity_and_the_sign_of_zero_count(self):
        x = np.array([np.nan, np.inf, 0.0, 1.0], np.float32)
        twice = lambda x: x * 2
        for index, value in ((0, 1.0), (1, np.float32(3e38)), (1, -np.inf), (1, np.nan), (2, -0.0), (3, np.nan), (3, np.inf)):
            self.assertEqual(self.different(twice, (x,), index, lambda v, w=value: np.float32(w)), 1, (index, value))

    def test_a_flushed_subnormal_is_a_difference(self):
        x = np.array([1e-40, 1.0], np.float32)
        self.assertEqual(self.different(lambda x: x[::-1], (x,), 1, lambda v: np.float32(0)), 1)

    def test_bfloat16_products_are_compared_in_their_own_precision(self):
        x = self.x.astype(ml_dtypes.bfloat16)
        step = lambda v: (np.array(v).view(np.uint16) + np.uint16(1)).view(ml_dtypes.bfloat16)
        self.assertEqual(self.different(lambda x: x * x, (x,), 3, step), 1)

    def test_other_shapes_are_a_difference(self):
        ref = reference(lambda x: x + 1, self.x)
        self.assertEqual(judge.judge([ref.expected[0][:1]], ref).different, 1)


@unittest.skipUnless(HAVE_JAX, "jax is not installed: pip install -r scripts/oracle-requirements.txt")
class Rounding(unittest.TestCase):
    def test_loops_branches_reductions_and_products_are_perturbed_and_run(self):
        def fn(x):
            y = jax.lax.fori_loop(0, 3, lambda i, c: jax.lax.cond(i > 1, jnp.sin, lambda c: c * 1.1, c), x)
            return y @ y.T, jnp.cumsum(y, 1), y.sum(), jnp.zeros(5).at[jnp.array([1, 1])].add(y[0, :2])
        x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
        ref = reference(fn, x)
        first, second = ref.samples(2)
        for output, (expected, a, b) in enumerate(zip(ref.expected, first, second)):
            self.assertTrue((a != b).any(), output)
            np.testing.assert_allclose(a, expected, rtol=1e-4, atol=1e-5)

    def test_a_seed_gives_the_same_text(self):
        text = xla_cpu.normalised(xla_cpu.text_of(lambda x: jnp.exp(x).sum(), [np.ones(3, np.float32)]))
        self.assertEqual(rounding.perturbed(text, 1), rounding.perturbed(text, 1))
        self.assertNotEqual(rounding.perturbed(text, 1), rounding.perturbed(text, 2))


@unittest.skipUnless(HAVE_JAX, "jax is not installed: pip install -r scripts/oracle-requirements.txt")
class Cases(unittest.TestCase):
    def test_the_test_set_has_names_of_its_own_and_shapes(self):
        found = cases.functions()
        self.assertGreaterEqual(len(found), 150)
        self.assertEqual(len({c.name for c in found}), len(found))

    def test_a_seed_gives_the_same_random_function(self):
        for seed in range(5):
            texts = [xla_cpu.text_of(*random_control.function(seed)) for _ in range(2)]
            self.assertEqual(*texts)

    def test_random_functions_hold_loops_and_branches(self):
        text = "".join(xla_cpu.text_of(*random_control.function(seed)) for seed in range(12))
        for op in (" while(", " conditional(", " call("):
            self.assertIn(op, text)

    def test_a_tuple_parameter_becomes_its_parts(self):
        text = """HloModule m

ENTRY e {
  n = s32[] parameter(1)
  p = (f32[2], (s32[], f32[3])) parameter(0)
  i = (s32[], f32[3]) get-tuple-element(p), index=1
  ROOT r = s32[] get-tuple-element(i), index=0
}
"""
        flat = cases.without_tuple_parameters(text)
        run = xla_cpu.compiled(flat)
        self.assertEqual(run([np.zeros(2, np.float32), np.int32(7), np.zeros(3, np.float32), np.int32(5)])[0], 7)


class Script(unittest.TestCase):
    def call(self, *words):
        return subprocess.run([sys.executable, str(ROOT / "scripts/oracle"), *words], capture_output=True, text=True, check=False)

    def test_without_jax_it_says_what_to_install(self):
        done = subprocess.run([sys.executable, "-S", "-E", str(ROOT / "scripts/oracle")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("pip install -r", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    @unittest.skipUnless(HAVE_JAX, "jax is not installed")
    def test_a_name_that_matches_nothing_is_an_error_of_one_line(self):
        done = self.call("--functions", "no_such_function")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))

    @unittest.skipUnless(HAVE_JAX and HAVE_PROGRAM, "jax or the program is not there")
    def test_a_case_that_does_not_end_costs_no_other(self):
        endless = """HloModule m
condition { s = s32[] parameter(0)  z = s32[] constant(0)  ROOT c = pred[] compare(s, z), direction=GE }
body { s = s32[] parameter(0)  o = s32[] constant(1)  ROOT x = s32[] xor(s, o) }
ENTRY main { p = s32[] parameter(0)  a = s32[] abs(p)  ROOT w = s32[] while(a), condition=condition, body=body }
"""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "a.hlo").write_text(endless)
            pathlib.Path(folder, "b.hlo").write_text("HloModule m\nENTRY main { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }\n")
            done = self.call("--hlo", folder, "--planners", "xla", "--device", "v100", "--timeout", "10", "--work", folder + "/work")
        self.assertEqual(done.returncode, 1)
        self.assertIn("a: not judged [xla/v100]\n    XLA and the runs did not finish in 20 s", done.stdout)
        self.assertIn("2 cases, 2 runs: 1 agrees, 1 not judged", done.stdout)


if __name__ == "__main__":
    unittest.main()
