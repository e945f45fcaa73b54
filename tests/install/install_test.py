#!/usr/bin/env python3
"""An installation works from any folder, wherever it lies, without sources and build. BUILD and SOURCE name those; what a
machine lacks is skipped by name."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE = pathlib.Path(os.environ["BUILD"]), pathlib.Path(os.environ["SOURCE"])


def run(*words, cwd=None, code=0, env=None):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=cwd, env=env)
    if done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="stitchwork-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        installed = cls.folder / "installed"
        run("cmake", "--install", BUILD, "--prefix", installed, "--strip")
        cls.prefix = cls.folder / "moved"  # nothing depends on where it was installed
        installed.rename(cls.prefix)
        cls.home = cls.folder / "home"
        cls.home.mkdir()

    def stitchwork(self, *words, code=0):
        env = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        return run(self.prefix / "bin/stitchwork", *words, cwd=self.home, code=code, env=env)

    def files(self, pattern):
        return sorted(self.prefix.glob(pattern))

    def one(self, pattern):
        found = self.files(pattern)
        self.assertEqual(len(found), 1, f"{pattern}: {found}")
        return found[0]

    def test_nothing_that_is_run_names_sources_or_build(self):
        programs = [*self.files("bin/*"), *self.files("lib/**/*.so"), *self.files("lib/**/*.cmake")]
        self.assertGreater(len(programs), 3)
        for program in programs:
            content = program.read_bytes()
            for folder in (SOURCE, BUILD):
                at = content.find(str(folder).encode() + b"/")
                self.assertEqual(at, -1, f"{program.name}: {content[at : at + 100]}")

    def test_data_are_those_installed(self):
        datasets = json.loads(self.stitchwork("datasets", "--json"))["datasets"]
        self.assertEqual(
            {d["name"] for d in datasets},
            {file.stem for file in (SOURCE / "datasets").glob("*.json")},
        )
        # What only the installation has is found: it is not the sources' that is read.
        for ending in (".hlo", ".json"):
            shutil.copy(SOURCE / f"datasets/fig7{ending}", self.prefix / f"share/stitchwork/datasets/mine{ending}")
        self.assertEqual(json.loads(self.stitchwork("plan", "mine", "--json"))["model"]["path"], "mine")
        experiment = json.loads((SOURCE / "experiments/planners/models.json").read_text())
        experiment.update(workloads=["mine"], devices=["t4"])
        (self.prefix / "share/stitchwork/experiments/planners/mine.json").write_text(json.dumps(experiment))
        for name in ("planners/mine.json", "experiments/planners/mine.json"):
            self.assertIn("mine, ", self.stitchwork("experiment", "run", name, "--dry-run"))
        papers = {file.parent.name for file in (SOURCE / "experiments").glob("*/paper.json")}
        self.assertEqual({file.parent.name for file in self.files("share/stitchwork/experiments/*/paper.json")}, papers)

    def test_what_a_page_is_made_of_is_installed(self):
        self.assertIn("Mike Bostock", self.one("share/stitchwork/page/d3.licence").read_text())
        self.stitchwork("view", "fig7", "-o", "page.html")
        self.assertIn("<title>fig7 on Tesla V100", (self.home / "page.html").read_text())

    def test_what_draws_is_found_where_it_was_built(self):
        if not list(BUILD.glob("lib/**/stitchwork_figures.so")):
            self.skipTest("built without Qt")
        self.one("lib/**/stitchwork_figures.so")

    def test_the_example_is_built_and_prints_the_kernels_of_the_plan(self):
        example = self.one("share/doc/stitchwork/examples/find_package")
        build = self.folder / "example"
        run("cmake", "-S", example, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        for planner in ("astitch", "xla"):
            plan = json.loads(self.stitchwork("plan", "fig7", "--planner", planner, "--json"))
            printed = run(build / "kernels_of", self.one("share/stitchwork/datasets/fig7.hlo"), planner)
            kernels = [line.split(":")[0] for line in printed.splitlines() if not line.startswith(" ")]
            self.assertEqual(kernels, [f"{k['id']} {k['name']}" for k in plan["kernels"]])
            self.assertEqual(printed.count("\n  "), sum(len(k["ops"]) for k in plan["kernels"]))
        refused = subprocess.run([build / "kernels_of", "/nonexistent.hlo"], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("/nonexistent.hlo", refused.stderr)

    def commands(self, words=()):
        """Every command's words."""
        yield words
        listed = False
        for line in self.stitchwork(*words, "--help").splitlines():
            if re.match("subcommands:", line, re.IGNORECASE):
                listed = True
            elif listed and re.match("  [a-z]", line):
                yield from self.commands((*words, line.split()[0]))

    def test_every_command_has_a_page_and_no_other(self):
        wanted = {"-".join(("stitchwork", *words)) + ".1" for words in self.commands()}
        self.assertGreater(len(wanted), 30)
        self.assertEqual({page.name for page in self.files("share/man/man1/*")} - {"stitchwork-gui.1"}, wanted)

    def test_pages_are_read_without_warnings(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        for page in self.files("share/man/man1/*"):
            done = subprocess.run(["groff", "-ww", "-man", "-Tutf8", "-Z", page], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)

    def shell(self, name):
        if not shutil.which(name):
            self.skipTest(f"{name} is not installed")
        return name

    def test_zsh_finds_its_completion(self):
        folder = self.one("share/zsh/site-functions/_stitchwork").parent
        script = f"fpath=({folder} $fpath); autoload -U compinit; compinit -u -D; print $_comps[stitchwork]"
        self.assertEqual(run(self.shell("zsh"), "-f", "-c", script, cwd=self.home), "_stitchwork\n")
        run("zsh", "-n", folder / "_stitchwork")

    def test_fish_completes_commands_and_planners(self):
        file = self.one("share/fish/vendor_completions.d/stitchwork.fish")
        env = {**os.environ, "HOME": str(self.home)}
        script = f"source {file} 2>&1; complete -C 'stitchwork expla'; complete -C 'stitchwork plan --planner astitch-n'"
        found = run(self.shell("fish"), "-c", script, cwd=self.home, env=env).splitlines()
        self.assertEqual(found[0].split("\t")[0], "explain")
        self.assertTrue(all(line.startswith("astitch-no-") for line in found[1:]), found)
        self.assertGreater(len(found), 1)

    def test_bash_completes_commands_and_planners(self):
        file = self.one("share/bash-completion/completions/stitchwork")

        def complete(*words):
            script = f'source {file}; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _stitchwork; echo "${{COMPREPLY[@]}}"'
            return run("bash", "-c", script, cwd=self.home).split()

        self.assertEqual(complete("stitchwork", "expla"), ["explain"])
        self.assertIn("astitch", complete("stitchwork", "plan", "--planner", "ast"))
        self.assertIn("fig7", complete("stitchwork", "plan", "fig"))


class Version(unittest.TestCase):
    """cmake/describe.cmake, on repositories of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def git(self, *words):
        identity = ["-c", "user.name=n", "-c", "user.email=e@e"]
        return run("git", *identity, "-C", self.folder, *words).strip()

    def described(self):
        script = self.folder / "print.cmake"
        script.write_text(
            f"include({SOURCE}/cmake/describe.cmake)\nstitchwork_describe({self.folder} 0.1.0)\n"
            'execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${STITCHWORK_VERSION} ${STITCHWORK_COMMIT} ${STITCHWORK_DIRTY}")'
        )
        return run("cmake", "-P", script).split()

    def commit(self):
        self.git("commit", "-q", "--allow-empty", "-m", "m")
        return self.git("rev-parse", "HEAD")

    def test_of_a_checkout(self):
        self.git("init", "-q")
        commit = self.commit()
        self.assertEqual(self.described(), [f"0.1.0+g{commit[:12]}", commit[:12], "false"])
        self.git("tag", "v0.2.0")
        self.assertEqual(self.described()[0], "0.2.0")
        commit = self.commit()
        self.assertEqual(self.described()[0], "0.2.0+1.g" + self.git("rev-parse", "--short", "HEAD"))
        (self.folder / "a").write_text("a")
        self.git("add", "a")
        self.assertEqual(self.described()[2], "true")

    def test_of_an_archive(self):
        self.git("init", "-q")
        shutil.copy(SOURCE / ".gitattributes", self.folder)
        (self.folder / "cmake").mkdir()
        shutil.copy(SOURCE / "cmake/VERSION", self.folder / "cmake")
        self.git("add", ".")
        commit = self.commit()
        self.assertIn("$Format", (self.folder / "cmake/VERSION").read_text())
        run("git", "-C", self.folder, "archive", "-o", self.folder / "a.tar", "HEAD")
        shutil.rmtree(self.folder / ".git")
        run("tar", "-C", self.folder, "-xf", self.folder / "a.tar")
        version, short, _ = self.described()
        self.assertTrue(commit.startswith(short), short)
        self.assertEqual(version, f"0.1.0+g{short}")

    def test_of_sources_of_unknown_origin(self):
        self.assertEqual(self.described(), ["0.1.0", "unknown", "false"])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"skipped {test}: {reason}")
    sys.exit(0 if result.wasSuccessful() else 1)
