#!/usr/bin/env python3
"""The scripts for a GPU box, as far as a machine without one goes: on a GPU that is the simulator, and beside JAX on the CPU.

STITCHWORK names the program, STITCHWORK_ON_FAKE_GPU the one whose GPU is the simulator, STITCHWORK_JAX_PYTHON an interpreter with JAX.
What is missing is skipped with its name.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts/gpu"
sys.path.insert(0, str(SCRIPTS))
import calibration  # noqa: E402
import common  # noqa: E402
import graphs  # noqa: E402
import kernel_names  # noqa: E402
import microbench  # noqa: E402
import worker  # noqa: E402

PROGRAM, FAKE = os.environ.get("STITCHWORK"), os.environ.get("STITCHWORK_ON_FAKE_GPU")
PIECES = ("correctness", "calibration", "peers", "counters", "exploration", "dumps")


def jax_python():
    named = os.environ.get("STITCHWORK_JAX_PYTHON")
    return named or (sys.executable if importlib.util.find_spec("jax") else None)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def script(self, name, *words, program=PROGRAM, python=sys.executable, expect=0):
        shell = ["bash"] if name == "all" else [python]
        path = SCRIPTS / (name if name == "all" else f"{name}.py")
        done = subprocess.run([*shell, path, "-o", self.out, "--program", program or "none", *words], capture_output=True, text=True,
                              env={**os.environ, "PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def lines(self, name):
        return [json.loads(line) for line in (self.out / name).read_text().splitlines()]


@unittest.skipUnless(PROGRAM, "STITCHWORK names no program")
class All(Case):
    def test_a_dry_run_lists_every_piece_with_minutes_and_inputs_and_writes_nothing(self):
        said = self.script("all", "--dry-run")
        for piece in PIECES:
            self.assertRegex(said, rf"(?m)^{piece}: .*\(expected: \d+ min.*\)$")
        for word in ("softmax_16384x8192", "compute-sanitizer --tool memcheck", "ncu --kernel-name k", "bert_tiny", "cupy.RawModule"):
            self.assertIn(word, said)
        self.assertEqual(list(self.out.iterdir()), [])

    def test_one_piece_can_be_named(self):
        said = self.script("all", "--dry-run", "--only", "counters")
        self.assertIn("counters:", said)
        self.assertNotIn("peers:", said)

    def test_an_unknown_piece_is_refused_with_those_there_are(self):
        self.assertIn("no piece timing; there are: correctness", self.script("all", "--only", "timing", expect=2))

    @unittest.skipIf(common.gpu_state(), "there is a GPU")
    def test_without_a_gpu_one_line_says_so(self):
        self.assertEqual(self.script("all", expect=1).count("\n"), 1)


@unittest.skipUnless(FAKE, "STITCHWORK_ON_FAKE_GPU names no program")
class OnAFakeGpu(Case):
    def test_correctness_checks_every_planner_and_resumes(self):
        words = ("--items", "softmax_tiny ,fig5 ", "--jobs", "2")
        self.assertIn("18 of 18 done, 0 failed, 18 in this call", self.script("correctness", *words, program=FAKE))
        self.assertIn("18 of 18 done, 0 failed, 0 in this call", self.script("correctness", *words, program=FAKE))
        runs = self.lines("correctness.jsonl")
        self.assertEqual({run["key"].split()[1] for run in runs}, set(common.PLANNERS))
        self.assertTrue(all(run["ok"] and run["max_rel_error"] < 1e-4 for run in runs))

    def test_what_fails_is_recorded_in_one_line_and_the_sweep_goes_on(self):
        words = ("--items", "fig5 xla+atm,fig5 tvm-dup", "--device", "v100")
        said = self.script("correctness", *words, program=FAKE)
        self.assertIn("2 of 2 done, 2 failed", said)
        for run in self.lines("correctness.jsonl"):
            self.assertIn("the plan is for v100-sxm2", run["error"])
        self.assertIn("2 failed, 2 in this call", self.script("correctness", *words, "--retry", program=FAKE))

    def test_when_time_is_out_the_rest_is_left_for_the_next_call(self):
        said = self.script("correctness", "--items", "fig5 ", "--minutes", "0", program=FAKE, expect=common.TIME_IS_OUT)
        self.assertIn("0 of 8 done", said)

    def stub(self, name, body):
        """A program of that name, found before any other."""
        path = self.out / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/usr/bin/env bash\n{body}\n")
        path.chmod(0o755)
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{path.parent}:{before}"
        self.addCleanup(os.environ.__setitem__, "PATH", before)

    # Writes --log-file: one launch in which every metric is 100, and runs what follows the options.
    NCU = """
for ((i = 1; i <= $#; ++i)); do
  case "${!i}" in
    --log-file) ((++i)); log=${!i} ;;
    --metrics) ((++i)); metrics=${!i}; rest=$((i + 1)); break ;;
  esac
done
"${@:rest}" >/dev/null 2>&1 || exit 1
{ printf '==PROF== Connected\\n"ID","Kernel Name"'; printf ',"%s"' ${metrics//,/ }
  printf '\\n"",""'; for m in ${metrics//,/ }; do printf ',"unit"'; done
  printf '\\n"0","k"'; for m in ${metrics//,/ }; do printf ',"100"'; done; echo; } >"$log"
"""

    def test_results_of_a_gpu_are_packed_as_they_lie_in_the_repository(self):
        self.stub("nvidia-smi", 'echo "NVIDIA H200, 580.159, 1980, 3201, 1980, 100, 30, 0x0"')
        self.script("all", "--only", "correctness", "--items", "fig5 astitch", "--pack", str(self.out / "one.tar.gz"), program=FAKE)
        listed = subprocess.run(["tar", "-tzf", self.out / "one.tar.gz"], capture_output=True, text=True).stdout
        self.assertRegex(listed, r"(?m)^./tree/experiments/results/nvidia-h200/[\d-]+/correctness.jsonl.gz$")
        self.assertIn("./correctness.jsonl\n", listed)

    def test_counters_stand_beside_those_of_nsight_compute(self):
        self.stub("ncu", self.NCU)
        self.script("counters", "--items", "softmax_tiny astitch", program=FAKE)
        kernel = self.lines("counters.jsonl")[0]["kernels"][0]
        self.assertEqual(set(kernel["simulated"]), set(kernel["measured"]))
        self.assertEqual(kernel["measured"]["gld_transactions"], 100)
        self.assertAlmostEqual(kernel["measured"]["achieved_occupancy"], 1)
        table = next(self.out.glob("tree/experiments/results/*/*/counters.md")).read_text()
        ratio = kernel["simulated"]["gld_transactions"] / 100
        self.assertIn(f"| `gld_transactions` | `l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum` | 1 | {ratio:.2f} |", table)

    def test_a_run_stores_the_counters_that_nsight_compute_reads(self):
        self.stub("ncu", self.NCU)
        words = [FAKE, "run", "softmax_tiny", "--backend", "cuda", "--device", "h200", "--counters", "--json", "--db", str(self.out / "runs.db")]
        done = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        counters = json.loads(done.stdout)["kernels"][0]["counters"]
        self.assertEqual(counters["gld_transactions"], 100)
        self.assertAlmostEqual(counters["achieved_occupancy"], 1)

    def test_where_counters_cannot_be_read_one_line_says_why(self):
        self.stub("ncu", 'echo "==ERROR== ERR_NVGPUCTRPERM: no permission to read counters" >&2; exit 1')
        said = self.script("counters", program=FAKE, expect=1)
        self.assertIn("counters cannot be read here: ncu profiled nothing: ==ERROR== ERR_NVGPUCTRPERM", said)

    def test_mini_batches_are_explored_beside_what_modelled_ones_choose(self):
        self.script("exploration", "--items", "scrnn_tiny astra-fk", program=FAKE)
        (record,) = self.lines("exploration.jsonl")
        self.assertGreater(record["minibatches"], 60)
        self.assertLess(record["best_us"], record["first_us"])
        self.assertLess(abs(record["points_overhead"]), 0.01)
        table = next(self.out.glob("tree/experiments/results/*/*/exploration.md")).read_text()
        self.assertIn("scrnn_tiny astra-fk", table)

    def test_compute_sanitizer_judges_a_sample(self):
        self.stub("compute-sanitizer", """
while [[ $1 == -* ]]; do [[ $1 == --tool ]] && tool=$2; shift 2; done
"$@" >/dev/null || exit 1
echo '========= COMPUTE-SANITIZER'
[ "$tool" = racecheck ] || { echo '========= ERROR SUMMARY: 0 errors'; exit 0; }
echo '========= Error: Race reported'
echo '========= RACECHECK SUMMARY: 1 hazard displayed'
exit 86
""")
        said = self.script("correctness", "--items", "softmax_tiny astitch", program=FAKE)
        self.assertIn("softmax_tiny astitch racecheck: exit code 86: Error: Race reported", said)
        self.assertIn("4 of 4 done, 1 failed", said)

    def test_where_compute_sanitizer_does_not_work_its_sample_is_skipped(self):
        self.stub("compute-sanitizer", 'echo "========= COMPUTE-SANITIZER"; echo "========= Error: Device not supported"; exit 1')
        said = self.script("correctness", "--items", "softmax_tiny astitch", program=FAKE)
        self.assertIn("compute-sanitizer does not work here: Error: Device not supported", said)

    def test_calibration_finds_the_constants_of_the_machine_and_writes_a_device_file(self):
        import fake_cupy
        with mock.patch.dict(sys.modules, cupy=fake_cupy), mock.patch.object(
                sys, "argv", ["", "-o", str(self.out), "--program", FAKE, "--items", ",".join((*calibration.PARTS, "softmax_2x64 "))]):
            self.assertEqual(calibration.main(), 0)
        self.assertEqual([line for line in self.lines("calibration.jsonl") if "error" in line], [])
        path = next(self.out.glob("tree/experiments/results/*/*/h200.json"))
        device = json.loads(path.read_text())
        for field, value in {"launch_us": 2.0, "grid_barrier_us": 0.5, "grid_barrier_us_per_block": 0.001, "dram_efficiency": 4000 / 4800,
                             "dram_latency_ns": 500, "l2_gb_s": 8000}.items():
            self.assertLess(abs(device[field]["value"] / value - 1), 0.05, field)
            self.assertTrue(device[field]["source"].startswith("measured by scripts/gpu/calibration.py on "))
        done = subprocess.run([PROGRAM, "devices"], capture_output=True, text=True, env={**os.environ, "STITCHWORK_DEVICES": str(path.parent)})
        self.assertIn("NVIDIA H200", done.stdout, done.stderr)
        self.assertIn("| dram_efficiency | 0.877 |", (path.parent / "calibration.md").read_text())

    def test_generated_kernels_are_timed(self):
        class Chosen:
            program, device, out = FAKE, "h200", self.out

        record = calibration.measured(Chosen, "softmax_8x64", "astitch")
        self.assertEqual(record["compulsory_bytes"], 8 * 8 * 64)
        self.assertGreater(record["kernels"][0]["time_us"], 0)
        self.assertGreater(record["whole"]["graph_us"], 0)


@unittest.skipUnless(PROGRAM, "STITCHWORK names no program")
class Graphs(Case):
    def test_every_family_runs_and_equals_the_reference(self):
        class Chosen:
            program = PROGRAM

        for family in graphs.FAMILIES:
            path = graphs.write(f"{family}_9x70", self.out)
            document = common.stitchwork(Chosen, "run", path, "--device", "h200", "--check")
            self.assertTrue(document["check"]["ok"], family)

    def test_compulsory_bytes_are_those_of_inputs_and_outputs(self):
        import peers

        class Chosen:
            program = PROGRAM

        for family in graphs.FAMILIES:
            name = f"{family}_9x70"
            document = common.stitchwork(Chosen, "inputs", graphs.write(name, self.out), "-o", self.out / name)
            moved = sum(peers.bytes_of(p["shape"]) for p in document["parameters"]) + peers.bytes_of(document["result"])
            self.assertEqual(graphs.compulsory_bytes(name), moved, family)

    def test_generated_graphs_go_from_1_kb_to_1_gb(self):
        sizes = [graphs.compulsory_bytes(name) for name in calibration.generated()]
        self.assertGreater(len(sizes), 100)
        self.assertLess(min(sizes), 2000)
        self.assertTrue(0.9e9 < max(sizes) < 1.2e9)

    def test_bandwidth_is_measured_on_tensors_of_256_mb_and_more(self):
        import peers
        for name in peers.BANDWIDTH:
            _, rows, columns = graphs.split(name)
            self.assertGreaterEqual(4 * rows * columns, 256 << 20, name)


@unittest.skipUnless(PROGRAM, "STITCHWORK names no program")
class Bundle(Case):
    def test_it_runs_with_the_machines_loader_and_where_the_c_library_is_older_with_its_own(self):
        folder = self.out / "bundle"
        done = subprocess.run([ROOT / "scripts/bundle", "--no-kernels", "--program", PROGRAM, "-o", folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"[\d.]+ MiB, [\d.]+ MiB as .tar.gz, of at most 64 MiB")
        stubs = self.out / "bin"
        stubs.mkdir()
        for version in (None, "2.17"):
            if version:
                (stubs / "getconf").write_text(f"#!/bin/sh\necho glibc {version}\n")
                (stubs / "getconf").chmod(0o755)
            environment = {"PATH": f"{stubs}:/usr/bin:/bin", "HOME": str(self.out)}
            done = subprocess.run([folder / "stitchwork", "plan", "fig7", "--device", "h200"], capture_output=True, text=True, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("plan of fig7 for h200 by astitch", done.stdout)
            done = subprocess.run([folder / "stitchwork", "run", "fig7", "--backend", "cuda", "--db", self.out / "runs.db"],
                                  capture_output=True, text=True, env={**environment, "STITCHWORK_CUDA_DRIVER": "/none/libcuda.so.1"})
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertIn("no CUDA driver", done.stderr)

    def test_a_missing_program_is_named(self):
        done = subprocess.run([ROOT / "scripts/bundle", "--program", "/none", "-o", self.out / "bundle"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("no program at /none", done.stderr)


class Numbers(unittest.TestCase):
    def test_constants_come_back_from_numbers_made_with_them(self):
        raw = {"launches": {"events_alone_us": 1.0, "empty_by_events_us": 3.0, "empty_in_a_row_us": 2.5, "spin_us": 21.0, "spin_step_us": 22.0},
               "barriers": [{"blocks": b, "threads": 1024, "per_barrier_us": 0.5 + 0.001 * b} for b in (1, 50, 264)],
               "copies": [{"bytes": 1 << 33, "by": "kernel", "gb_s": 4000.0}, {"bytes": 1 << 20, "by": "kernel", "gb_s": 9000.0}],
               "inflight": [{"bytes_per_sm": q, "gb_s": min(100 * q / 500, 4000.0)} for q in (512, 4096, 16384, 32768, 65536)],
               "l2": [{"bytes": 1 << 24, "gb_s": 8000.0}]}
        found = {name: value for name, (value, _) in calibration.constants(raw, 4800, 100).items()}
        self.assertAlmostEqual(found["launch_us"], 2.0)
        self.assertAlmostEqual(found["launch_gap_us"], 0.5)
        self.assertAlmostEqual(found["grid_barrier_us"], 0.5)
        self.assertAlmostEqual(found["grid_barrier_us_per_block"], 0.001)
        self.assertAlmostEqual(found["dram_efficiency"], 4000 / 4800)
        self.assertAlmostEqual(found["dram_latency_ns"], 500)
        self.assertEqual(found["max_inflight_bytes_per_sm"], 32768)
        self.assertEqual(found["l2_gb_s"], 8000)

    def test_the_barrier_that_is_timed_is_that_of_generated_code(self):
        self.assertIn("atom.add.u64", microbench.barrier_source())
        self.assertIn(microbench.barrier_source(), microbench.source())

    def test_kernels_of_a_trace_are_told_apart(self):
        for name, kind in {"nvjet_tst_128x64": "library", "sm90_xmma_gemm_f32": "library", "triton_poi_fused_add_0": "memory",
                           "loop_convert_fusion_3": "memory", "Memcpy DtoD (Device -> Device)": "copy", "Memset (Device)": "copy",
                           "input_reduce_fusion": "memory", "void cutlass::Kernel2": "library"}.items():
            self.assertEqual(kernel_names.kind(name), kind, name)

    def test_a_trace_is_summed_for_one_run(self):
        events = [("a", 0, 4), ("gemm", 5, 7), ("a", 10, 14), ("gemm", 15, 18)]
        found = worker.summary(events, 2)
        self.assertEqual((found["span_us"], found["memory_us"], found["library_us"], found["memory_count"]), (7.5, 4, 2.5, 1))

    def test_the_side_by_side_table_has_both_times_kernels_clocks_and_the_part_of_a_copy(self):
        import peers
        ours = {"times": [], "counts": {"kernels": 1, "library_calls": 0}, "median": {"off_us": 120.0, "on_us": 110.0, "memory_us": 100.0}}
        xla = {"times": [], "counts": {"kernels": 3}, "median": {"off_us": 300.0, "on_us": 250.0}, "outputs_agree": True,
               "trace": {"span_us": 220.0, "memory_us": 200.0, "memory_count": 2.0}}
        name = peers.BANDWIDTH[0]

        class Results:
            records = {name: {"key": name, "bytes": 1, "reference": "XLA (JAX)", "copy_us": 99.0, "clocks": [{"clocks.sm": "1980"}],
                              "variants": {"ours auto": {**ours, "outputs_agree": True}, "XLA (JAX)": xla}}}

            def failed(self):
                return []

        class Chosen:
            device, cpu, tf32 = "h200", False, False

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(common, "environment", return_value={"gpu": {}}):
            folder = pathlib.Path(folder)
            text = peers.report(Chosen, Results(), folder).read_text()
            document = json.loads((folder / "peers.json").read_text())
        self.assertIn(f"| {name} | ours auto | 120 | 110 | - | 100 | 1 | 90 | yes |", text)
        self.assertIn(f"| {name} | XLA (JAX) | 300 | 250 | 220 | 200 | 2 | 45 | reference |", text)
        self.assertIn("| XLA (JAX) | 1 | 2 | 2 |", text)  # memory-intensive time over ours
        self.assertIn("Ours (auto): median 90.0 %, least 90.0 %", text)
        self.assertEqual((document["tf32"], document["workloads"][name]["clocks"]), (False, [{"clocks.sm": "1980"}]))
        self.assertEqual(peers.precision(Chosen), {"NVIDIA_TF32_OVERRIDE": "0"})

    def test_a_piece_that_shares_a_call_leaves_the_others_their_time(self):
        said = {}
        for only in ("correctness,calibration", "correctness"):
            with tempfile.TemporaryDirectory() as folder:
                scripts = pathlib.Path(folder)
                for piece in PIECES:
                    (scripts / f"{piece}.py").write_text("import sys\nprint('minutes', sys.argv[sys.argv.index('--minutes') + 1])\n")
                (scripts / "all").write_text((SCRIPTS / "all").read_text())
                (scripts / "nvidia-smi").write_text("#!/bin/sh\n")
                (scripts / "nvidia-smi").chmod(0o755)
                done = subprocess.run(["bash", scripts / "all", "--only", only, "--minutes", "9", "-o", scripts / "out"], text=True,
                                      capture_output=True, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
                said[only] = [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("minutes")]
        self.assertEqual(said["correctness"], [8.5])
        self.assertEqual(said["correctness,calibration"], [5.0, 8.5])

    def test_outputs_are_judged_as_run_judges_them(self):
        numpy = importlib.util.find_spec("numpy")
        if numpy is None:
            self.skipTest("NumPy is not installed")
        import numpy as np
        import peers
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = pathlib.Path(folder) / "a", pathlib.Path(folder) / "b"
            for path, shift in ((ours, 1e-6), (theirs, 0.0)):
                path.mkdir()
                np.save(path / "out0.npy", np.linspace(1, 2, 9, dtype=np.float32) + np.float32(shift))
            self.assertTrue(peers.difference(ours, theirs)[0])
            np.save(ours / "out0.npy", np.linspace(1, 2.1, 9, dtype=np.float32))
            self.assertFalse(peers.difference(ours, theirs)[0])
            np.save(ours / "out0.npy", np.linspace(1, 2, 9, dtype=np.float32) * np.float32(1.005))
            self.assertEqual([peers.difference(ours, theirs, dtype)[0] for dtype in ("f32", "f16")], [False, True])
            np.save(ours / "out0.npy", np.full(9, np.nan, np.float32))
            self.assertFalse(peers.difference(ours, theirs)[0])


@unittest.skipUnless(PROGRAM, "STITCHWORK names no program")
class BesideJax(Case):
    def setUp(self):
        super().setUp()
        if jax_python() is None:
            self.skipTest("JAX is not installed, and STITCHWORK_JAX_PYTHON names no interpreter that has it")

    def test_xla_compiles_the_same_file_and_agrees(self):
        self.script("peers", "--cpu", "--torch", "", "--ours", "auto,xla", "--rounds", "2", "--items", "softmax_tiny,layer_norm_grad_tiny,row_tiny",
                    "--minutes", "5", python=jax_python())
        for record in self.lines("peers.jsonl"):
            self.assertEqual(record["reference"], "XLA (JAX)")
            for planner in ("auto", "xla"):
                row = record["variants"][f"ours {planner}"]
                self.assertTrue(row["outputs_agree"], record["key"])
                self.assertEqual(len(row["times"]), 2)
            self.assertGreater(record["variants"]["XLA (JAX)"]["counts"]["kernels"], 0)
        tables = list(self.out.glob("tree/experiments/results/cpu/*/peers.md"))
        self.assertIn("| softmax_tiny | XLA (JAX) |", tables[0].read_text())

    def test_optimised_texts_are_kept_and_can_be_drawn(self):
        self.script("dumps", "--cpu", "--items", "softmax_tiny", "--jobs", "1", python=jax_python())
        folder = self.out / "tree/datasets/dumps/cpu"
        counts = json.loads((folder / "kernels.json").read_text())["workloads"]["softmax_tiny"]
        self.assertGreater(counts["xla"]["fusions"], 0)
        self.assertEqual(counts["ours"]["auto"]["kernels"], 1)
        done = subprocess.run([PROGRAM, "plan", folder / "softmax_tiny.hlo.gz", "--planner", "imported"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
