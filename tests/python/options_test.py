"""Options are the program's flags: the types that editors see, the documentation and the program name the same."""
import ast
import pathlib
import re
import unittest

import support
from support import run_gopt

import gopt
from gopt import _native, options

# Flags that Python has as something else, and options that are no flags.
COMMANDS = {"optimize": (options.OptimizeOptions, gopt.optimize, {"trace", "quiet"}),
            "compare": (options.CompareOptions, gopt.compare, {"inputs"}),
            "load": (options.LoadOptions, gopt.load, None)}


def flags(command):
    return {name.replace("-", "_") for name, _ in _native.flags(command)}


class Options(unittest.TestCase):
    def test_types_name_the_flags(self):
        for command, (typed, _, _) in COMMANDS.items():
            with self.subTest(command):
                self.assertEqual(set(typed.__annotations__), flags(command) - {"inputs"})

    def test_the_program_has_them(self):
        for command, (_, _, others) in COMMANDS.items():
            if others is None:
                continue
            printed = run_gopt(command, "--help").stdout
            shown = {name.replace("-", "_") for name in re.findall(r"--([a-z][a-z-]+)", printed)} - {"help", "help_all"}
            with self.subTest(command):
                self.assertLessEqual(flags(command), shown)

    def test_they_are_documented(self):
        for command, (_, function, _) in COMMANDS.items():
            for name in flags(command):
                self.assertRegex(function.__doc__, rf"\n    {name}: \w")

    def test_the_stub_is_of_the_module(self):
        stub = ast.parse(pathlib.Path(gopt.__file__).with_name("_native.pyi").read_text(encoding="utf-8"))
        named = {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        self.assertEqual(named, {name for name in vars(_native) if not name.startswith("__")})
        for node in stub.body:
            if isinstance(node, ast.ClassDef) and node.name in ("Model", "Optimized"):
                methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
                self.assertEqual(methods, {name for name in vars(getattr(_native, node.name)) if name[0] != "_"})
        self.assertTrue(pathlib.Path(gopt.__file__).with_name("py.typed").exists())


if __name__ == "__main__":
    support.main()
