#!/usr/bin/env python3
"""What docs_test.py takes for the same, and what it writes where something else came out."""

import unittest

from docs_test import File, read, refreshed, same


class Elision(unittest.TestCase):
    def test_lines_are_compared_exactly(self):
        self.assertTrue(same(["a  b", "c"], ["a  b", "c"]))
        self.assertFalse(same(["a b"], ["a  b"]))
        self.assertFalse(same(["a"], ["a", "b"]))
        self.assertFalse(same(["a", "b"], ["a"]))
        self.assertFalse(same([], ["a"]))

    def test_dots_stand_for_lines(self):
        self.assertTrue(same(["a", "...", "z"], ["a", "b", "c", "z"]))
        self.assertTrue(same(["...", "m", "..."], ["a", "m", "z"]))
        self.assertFalse(same(["a", "...", "z"], ["a", "b", "y"]))
        self.assertFalse(same(["...", "n", "..."], ["a", "m", "z"]))
        self.assertFalse(same(["a", "...", "a"], ["a"]))
        self.assertTrue(same(["a long ..."], ["a long line"]))
        self.assertFalse(same(["a long ..."], ["a short line"]))

    def test_a_tilde_stands_for_a_word(self):
        self.assertTrue(same(["k0    ~ us"], ["k0  1.5 us"]))
        self.assertFalse(same(["k0    ~ us"], ["k1  1.5 us"]))
        self.assertFalse(same(["k0    ~ us"], ["k0  1.5 us more"]))
        self.assertTrue(same(["(error ~, of ~ ..."], ["(error 1e-7, of 2 in all"]))
        self.assertFalse(same(["(error ~, of 2)"], ["(error 1e-7 of 2)"]))
        self.assertFalse(same(["k0 ~ ..."], ["k0"]))

    def test_refreshing_keeps_how_much_is_shown(self):
        self.assertEqual(refreshed(["a 1   ~", "...", "z"], ["b 1 2.5", "m", "y"]), ["b 1   ~", "...", "y"])
        self.assertEqual(refreshed(["a", "...", "kernel k3 x", "...", "z"], ["a", "b", "kernel k3 y", "c", "z"]),
                         ["a", "...", "kernel k3 y", "...", "z"])
        self.assertEqual(refreshed(["old"], ["new", "lines"]), ["new", "lines"])
        for shown, printed in ((["a", "...", "q", "...", "z"], ["a", "z"]), (["x"], []), (["a ..."], ["b c d"])):
            self.assertTrue(same(refreshed(shown, printed), printed), (shown, printed))

    def test_commands_and_files_are_found(self):
        text = "Try `stitchwork info fig7` or `stitchwork plan MODEL`.\n```json e.json\n{}\n```\n```console\n$ one\nout\n$ two  # exits with 3\n```\n"
        prose, file, one, two = read(text.split("\n"))
        self.assertEqual((prose.text, prose.shown), ("stitchwork info fig7", None))
        self.assertEqual(file, File(2, "e.json", "{}\n"))
        self.assertEqual((one.text, one.shown, one.code, one.line), ("one", ["out"], 0, 6))
        self.assertEqual((two.shown, two.code), ([], 3))
        self.assertIsNone(read(["`stitchwork info fig7`"]))


if __name__ == "__main__":
    unittest.main()
