"""That planning does not grow as the square of the graph: scripts/bench/scale at small sizes, a row a planner and shape."""
import math, os, subprocess, sys, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIZES = [10, 2500, 10000]
SHAPES = ["chain", "wide", "rows-columns", "slices", "random"]
PLANNERS = ["unfused", "xla", "xla-today", "tvm", "astitch", "auto", "fusionstitching", "fusionstitching-2018", "korch", "astra"]
# 4 times the ops take 4 times as long where time is linear, 16 times where it is quadratic. A choice between them: as
# measured once on two shared cores astra's random graphs took 7.8 times as long, the others 6.1 at most. Of 1,000 ops
# the start and the threads are as much as the planning.
MOST = 12
# Seconds of CPU that runs differ by for no reason; a choice.
NOISE = 0.03


def quadratic(seconds):
    """Of CPU at SIZES, the first of them what a start takes."""
    start, small, large = seconds
    return large - start > MOST * max(small - start, NOISE)


class Scale(unittest.TestCase):
    def test_what_is_quadratic_is_told(self):
        self.assertTrue(quadratic([0.03 + 1e-7 * n**2 for n in SIZES]))
        self.assertFalse(quadratic([0.03 + 1e-4 * n for n in SIZES]))
        self.assertFalse(quadratic([0.03 + 1e-5 * n * math.log(n) for n in SIZES]))

    def test_every_planner_and_shape_has_its_row(self):
        command = [sys.executable, os.path.join(ROOT, "scripts/bench/scale"), "--program", os.environ["STITCHWORK"],
                   "--sizes", ",".join(map(str, SIZES)), "--limit", "inf", "--seconds", "inf", "--stop", "300"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
        self.assertEqual(done.returncode, 0, done.stderr)
        head, *lines = done.stdout.splitlines()
        self.assertEqual(head.split(), ["shape", "planner", *(f"{size:,}" for size in SIZES), "exponents"])
        rows = {}
        for line in lines:
            shape, planner, *cells = line.split()
            self.assertNotIn((shape, planner), rows)
            rows[shape, planner] = cells
            exponents = [float(cell) for cell in cells[3 * len(SIZES):]]
            self.assertEqual(len(exponents), len(SIZES) - 1, line)
            self.assertTrue(all(map(math.isfinite, exponents)), line)
            cpu = [float(cell) for cell in cells[0:3 * len(SIZES):3]]
            with self.subTest(shape=shape, planner=planner):
                self.assertFalse(quadratic(cpu), line)
        self.assertEqual(set(rows), {(shape, planner) for shape in SHAPES for planner in PLANNERS})


if __name__ == "__main__":
    unittest.main()
