# test_stub.py - fathom.pyi has the names and signatures of fathom.py; nothing public lacks a docstring.
# seconds: 3
import ast
import inspect
import os
import re
import subprocess
import sys
import typing
import unittest

import fathom
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STUB = os.path.join(os.path.dirname(os.path.abspath(fathom.__file__)), "fathom.pyi")
with open(STUB, encoding="utf-8") as f:
    TREE = ast.parse(f.read())
CLASSES = {n.name: n for n in TREE.body if isinstance(n, ast.ClassDef)}
FUNCTIONS = {n.name: n for n in TREE.body if isinstance(n, ast.FunctionDef)}
OBJECTS = {n.target.id: ast.unparse(n.annotation) for n in TREE.body if isinstance(n, ast.AnnAssign)}


def public_classes():
    """Classes of the module's own, and those of objects such as fathom.spatial."""
    for name in fathom.__all__:
        what = getattr(fathom, name)
        if isinstance(what, type):
            yield name, what
        elif not inspect.isroutine(what) and not isinstance(what, dict):
            yield type(what).__name__, type(what)


def members(cls):
    """{name: function or property} that the class itself makes public."""
    found = {}
    for name, what in vars(cls).items():
        what = getattr(what, "__func__", what)
        if not name.startswith("_") and (inspect.isfunction(what) or isinstance(what, property)):
            found[name] = what
    return found


def shape(function):
    """[(parameter, kind, default)]"""
    return [(p.name, p.kind.name, None if p.default is p.empty else repr(p.default))
            for p in inspect.signature(function).parameters.values()]


def shape_of_stub(node):
    """The same by the stub: parsed as a function of its own."""
    space = {}
    code = ast.unparse(ast.FunctionDef(name="f", args=node.args, body=[ast.Pass()], decorator_list=[], returns=None,
                                       lineno=1, type_params=[]))
    exec("from __future__ import annotations\n" + code, space)
    return shape(space["f"])


class Stub(unittest.TestCase):
    def test_names(self):
        stub = set(CLASSES) | set(FUNCTIONS) | set(OBJECTS)
        public = set(fathom.__all__)
        self.assertGreater(len(public), 100)
        self.assertEqual(public - stub, set())
        private = {type(getattr(fathom, name)).__name__ for name in OBJECTS if name in public}
        self.assertEqual({n for n in stub if not n.startswith("__")} - public - private, set())
        self.assertEqual(sorted(fathom.__all__), sorted(dir(fathom)))
        everything = {}
        exec("from fathom import *", everything)
        self.assertEqual(set(everything) - {"__builtins__"}, public)

    def test_signatures_of_functions(self):
        n = 0
        for name, node in FUNCTIONS.items():
            with self.subTest(function=name):
                self.assertEqual(shape_of_stub(node), shape(getattr(fathom, name)))
                n += 1
        self.assertGreater(n, 90)

    def test_members_of_classes(self):
        n = 0
        for name, cls in public_classes():
            nodes = {m.name: m for m in CLASSES[name].body if isinstance(m, ast.FunctionDef)}
            there = members(cls)
            with self.subTest(cls=name):
                self.assertEqual({m for m in nodes if not m.startswith("_")}, set(there))
            for member, what in there.items():
                with self.subTest(member=f"{name}.{member}"):
                    is_property = any(ast.unparse(d) == "property" for d in nodes[member].decorator_list)
                    self.assertEqual(is_property, isinstance(what, property))
                    if not is_property:  # the first is self, and in fathom.py the value
                        self.assertEqual(shape_of_stub(nodes[member])[1:], shape(what)[1:])
                    n += 1
            if cls.__init__ is not object.__init__ and not name.startswith("_") and not hasattr(cls, "_fields"):
                if "__init__" in vars(cls):
                    self.assertEqual(shape_of_stub(nodes["__init__"]), shape(cls.__init__), name)
        self.assertGreater(n, 140)

    def test_types_can_be_asked_for(self):
        functions = [getattr(fathom, name) for name in FUNCTIONS]
        functions += [f for _, cls in public_classes() for f in members(cls).values() if inspect.isfunction(f)]
        for function in functions:
            with self.subTest(function=function.__qualname__):
                hints = typing.get_type_hints(function)
                self.assertEqual(set(hints) - {"return"}, set(inspect.signature(function).parameters) - {"self"})

    def test_operators(self):
        in_stub = {m.name for m in CLASSES["Value"].body if isinstance(m, ast.FunctionDef) and m.name.startswith("__")}
        built = {name for name, f in vars(fathom.Value).items()
                 if name.startswith("__") and inspect.isfunction(f)
                 and f.__annotations__.get("return") != "NoReturn"} - {"__repr__"}
        self.assertEqual(in_stub, built)

    def test_attributes_are_there(self):
        for name, cls in public_classes():
            for m in CLASSES[name].body:
                if isinstance(m, ast.AnnAssign) and not hasattr(cls, "_fields"):
                    self.assertRegex(inspect.getsource(cls), rf"\b(self\.|out\.|p\.|\"){m.target.id}\b|{m.target.id}:",
                                     f"{name}.{m.target.id}")

    def test_both_are_made(self):
        for tool in ("gen_python", "gen_stub"):
            done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", tool), "--check"],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Docstrings(unittest.TestCase):
    def check(self, name, what, skip=()):
        doc = inspect.getdoc(what) or ""
        self.assertGreater(len(doc), 8, f"{name} has no docstring")
        self.assertNotIn("\n    \n", doc)
        if not inspect.isroutine(what):
            return 0
        missing = [p for p in inspect.signature(what).parameters
                   if p not in skip and not re.search(rf"\b{p}\b", doc)]
        self.assertEqual(missing, [], f"the docstring of {name} says nothing about them")
        return 1

    def test_functions(self):
        for name in FUNCTIONS:
            with self.subTest(function=name):
                self.check(name, getattr(fathom, name), {"a", "b", "v", "w", "re", "im"})

    def test_classes_and_methods(self):
        engine = {"context", "memory", "threads", "device", "self", "v", "a", "b"}
        for name, cls in public_classes():
            with self.subTest(cls=name):
                self.assertGreater(len(cls.__doc__ or ""), 20)
            for member, what in members(cls).items():
                skip = set(engine)
                if name in ("_Bragg", "_Ptycho", "_Splat", "_Spatial", "_Focus", "SplatModel", "SpatialFit"):
                    skip |= {"keys", "flags", "options", "compat", "quirks", "params", "scan", "model", "recon", "truth",
                             "path", "arrays", "raster", "camera", "background", "adata", "antialiased"}
                with self.subTest(member=f"{name}.{member}"):
                    self.check(f"{name}.{member}", what, skip)

    def test_builders_say_dtypes_and_gradients(self):
        n = 0
        builders = [getattr(fathom, name) for name, node in FUNCTIONS.items() if name != "assign"
                    and ast.unparse(node.returns) in ("Value", "tuple[Value, Value]")]
        for function in builders + [getattr(fathom.Value, m) for m in ("sum", "min", "max", "prod", "any", "all")]:
            with self.subTest(function=function.__name__):
                self.assertRegex(inspect.getdoc(function), r"dtypes: [a-z].*; gradient: (yes|no)$")
                n += 1
        self.assertGreater(n, 90)

    def test_what_they_say_is_so(self):
        """Dtypes in docstrings, tried on a few."""
        g = fathom.Graph(memory="64M", threads=1)
        g.axes(a=3)
        names = {"integers": "i32", "reals": "f32", "complex": "c64", "bool": "bool", "f32": "f32", "f64": "f64"}
        for function in ("exp", "abs", "sign", "isnan", "conj", "neg", "floor", "relu", "sqrt", "arg", "digamma"):
            said = re.search(r"dtypes: (.*);", getattr(fathom, function).__doc__).group(1)
            for word, dtype in names.items():
                x = g.input(f"{function}_{word}", np.ones(3, fathom.DTYPES[dtype][1]), "a")
                try:
                    getattr(fathom, function)(x)
                    taken = True
                except fathom.Error:
                    taken = False
                with self.subTest(function=function, dtype=dtype):
                    self.assertEqual(taken, said == "all" or word in said.split()
                                     or dtype in ("f32", "f64") and "reals" in said)


class Shown(unittest.TestCase):
    """What a session prints when somebody types a name."""

    def test_reprs(self):
        g = fathom.Graph(memory="64M", threads=2)
        g.axes(cell=5, dim=2)
        x = g.input("x", np.ones((5, 2), "f4"), "cell dim")
        plan = g.plan(x.sum())
        self.assertEqual(repr(x), "x f32 [cell=5 dim=2]")
        self.assertRegex(repr(g), r"^<fathom.Graph: graph of 3 values over 2 axes, on cpu>$")
        self.assertRegex(repr(plan), r"^<fathom.Plan: \d+ steps, [\d.]+ [KM]?i?B and [\d.]+ [KM]?i?B of yours>$")
        self.assertEqual(repr(g.context), "<fathom.Context on cpu, 2 threads>")
        self.assertEqual(repr(g.context.tensor((2, 3))), "<fathom.Tensor f32 [2, 3]>")
        self.assertEqual(repr(fathom.Source((3,), "f8", None)), "<fathom.Source f8 [3]>")
        for what in (g, plan):
            self.assertEqual(str(what), what.text)
            self.assertTrue(what._repr_html_().startswith("<pre>") and "<fathom" not in what._repr_html_())
        self.assertIn("x", g.text)
        context = fathom.Context(memory="1M")
        context.close()
        self.assertEqual(repr(context), "<fathom.Context, closed>")


if __name__ == "__main__":
    unittest.main()
