"""Solutions of exercises with one edit each: `python -m tests.notebook.mutants [NAME_OR_CHAPTER…]`.

A mutant that its check calls right is either another right answer or a hole in the check: those are
printed, each with the lines that were edited. It is a tool, no part of `make test`.

R. DeMillo, R. Lipton, F. Sayward, "Hints on Test Data Selection", Computer 11 (1978).
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 20  # for one mutant

OPERATORS: dict[type, tuple[type, ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div, ast.Add), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Div,), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,),
    ast.MatMult: (ast.Mult,), ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd, ast.BitXor), ast.BitXor: (ast.BitOr,)}
COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt,), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt,),
    ast.Eq: (ast.NotEq, ast.LtE), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,)}
NAMES = [("sum", "mean"), ("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"),
         ("zeros", "ones"), ("zeros_like", "ones_like"), ("sin", "cos"), ("exp", "expm1"),
         ("log", "log1p"), ("any", "all"), ("float32", "float64"), ("int32", "int64"),
         ("ceil", "floor"), ("add", "set"), ("start", "stop"), ("primals", "tangents"),
         ("append", "extend"), ("keys", "values"), ("cumsum", "cumprod"),
         ("jvp", "vjp"), ("jacfwd", "grad"), ("uniform", "normal"), ("shape", "size")]
OTHER_NAME = {x: y for pair in NAMES for x, y in (pair, pair[::-1])}


def edits(node: ast.AST, parameters: tuple[str, ...]) -> Iterator[Any]:
    """What may stand in place of a node; of a statement, a list of statements."""
    def but(**fields: Any) -> ast.AST:
        other = copy.copy(node)
        for name, value in fields.items():
            setattr(other, name, value)
        return other

    match node:
        case ast.BinOp(left, op, right):
            yield from (but(op=other()) for other in OPERATORS[type(op)])
            yield left
            yield right
            if isinstance(op, ast.Sub | ast.Div | ast.MatMult | ast.Pow | ast.FloorDiv):
                yield but(left=right, right=left)
        case ast.AugAssign(op=op):
            yield from (but(op=other()) for other in OPERATORS[type(op)])
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.Compare(ops=ops):
            for k, compared in enumerate(ops):
                yield from (but(ops=[*ops[:k], other(), *ops[k + 1:]])
                            for other in COMPARISONS[type(compared)])
        case ast.BoolOp(joined, values):
            yield but(op=ast.Or() if isinstance(joined, ast.And) else ast.And())
            if len(values) > 2:
                yield from (but(values=values[:k] + values[k + 1:]) for k in range(len(values)))
            else:
                yield from values
        case ast.Constant(bool() as value):
            yield but(value=not value)
        case ast.Constant(int() | float() as value):
            yield from (but(value=other) for other in (value + 1, value - 1))
            if isinstance(value, int):
                yield but(value=float(value))
        case ast.Call(func, args, keywords):
            for k in range(len(keywords)):
                yield but(keywords=keywords[:k] + keywords[k + 1:])
            if args and not isinstance(args[0], ast.Starred | ast.GeneratorExp):
                yield args[0]  # without the call
            for k in range(len(args) - 1):
                yield but(args=[*args[:k], args[k + 1], args[k], *args[k + 2:]])
            if len(args) > 1:
                yield but(args=args[:-1])
            if isinstance(func, ast.Attribute):  # without the method
                yield func.value
        case ast.IfExp(_, body, orelse):
            yield from (body, orelse)
        case ast.Subscript(value, index) if isinstance(node.ctx, ast.Load):
            yield value
            if isinstance(index, ast.Slice):
                yield from (but(slice=ast.Slice(*(None if k == gone else part for k, part in
                                                  enumerate(bounds))))
                            for bounds in [(index.lower, index.upper, index.step)]
                            for gone in range(3) if bounds[gone])
        case ast.Tuple(elements) | ast.List(elements) if isinstance(node.ctx, ast.Load):
            yield but(elts=elements[::-1])
        case ast.comprehension(ifs=[_, *_]):
            yield but(ifs=[])
        case ast.Attribute(attr=name) if name in OTHER_NAME:
            yield but(attr=OTHER_NAME[name])
        case ast.Name(name) if isinstance(node.ctx, ast.Load):
            if name in OTHER_NAME:
                yield but(id=OTHER_NAME[name])
            yield from (but(id=x) for x in parameters if x != name and name in parameters)
        case ast.If(_, body, orelse):
            yield from (body, orelse or [ast.Pass()])
        case ast.While() | ast.For():
            yield but(body=[*node.body, ast.Break()])
        case ast.With(body=body):
            yield body
        case ast.Expr() | ast.Assign() | ast.Raise():
            yield [ast.Pass()]
        case ast.FunctionDef(decorator_list=[_, *_]):
            yield but(decorator_list=[])


def mutants(text: str) -> Iterator[str]:
    """The solution with one edit, for each place and each edit.

    >>> print(*mutants("x + 1"), sep="; ")
    pass; x - 1; x; 1; x + 2; x + 0; x + 1.0
    """
    tree = ast.parse(text)
    seen = {ast.unparse(tree)}

    def visit(node: ast.AST, parameters: tuple[str, ...]) -> Iterator[str]:
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            parameters = tuple(x.arg for x in node.args.args)
        for name, value in ast.iter_fields(node):
            if name == "annotation" or name == "returns":
                continue
            places: list[tuple[Any, Any]] = [(value, k) for k in range(len(value))] if isinstance(
                value, list) else [(node, name)]
            for owner, key in places:
                child = owner[key] if isinstance(owner, list) else value
                if not isinstance(child, ast.AST):
                    continue
                for edit in edits(child, parameters):
                    if isinstance(owner, list):
                        owner[key:key + 1] = edit if isinstance(edit, list) else [edit]
                    else:
                        setattr(owner, key, edit)
                    mutant = ast.unparse(ast.fix_missing_locations(tree))
                    if isinstance(owner, list):
                        owner[key:key + (len(edit) if isinstance(edit, list) else 1)] = [child]
                    else:
                        setattr(owner, key, child)
                    if mutant not in seen:
                        seen.add(mutant)
                        yield mutant
                yield from visit(child, parameters)

    yield from visit(tree, ())


def edited(text: str, mutant: str) -> str:
    """The lines that an edit takes and those that it gives."""
    lines = difflib.ndiff(ast.unparse(ast.parse(text)).splitlines(), mutant.splitlines())
    return "\n".join(f"    {line[0]} {line[2:].strip()}" for line in lines if line[0] in "+-")


# ── One process for each exercise ────────────────────────────────────────────────────────────

def work(name: str, first: int) -> None:
    """Grade the mutants of one solution from a number on; a line of JSON before and after each."""
    import minijax  # noqa: F401  exercises build on it
    from minijax.notebook.checks import RIGHT, evaluate, exercises, verdict

    def stop(signum: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    signal.signal(signal.SIGALRM, stop)
    one = exercises()[name]
    for number, mutant in enumerate(mutants(one.solution)):
        if number < first:
            continue
        print(json.dumps([number, "begins"]), file=out)
        signal.setitimer(signal.ITIMER_REAL, SECONDS, 1)
        try:
            state = verdict(one, evaluate(one, mutant))[0] == RIGHT
        except BaseException:
            state = False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps([number, mutant if state else ""]), file=out)
    print(json.dumps([-1, "end"]), file=out)


def accepted(name: str) -> tuple[int, list[str]]:
    """How many mutants of a solution there are, and those that its check calls right."""
    found: list[str] = []
    first = 0
    while True:
        command = [sys.executable, "-m", "tests.notebook.mutants", "--work", name, str(first)]
        child = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL,
                                 env=os.environ | {"MPLBACKEND": "agg", "JAX_PLATFORMS": "cpu"})
        assert child.stdout
        for line in child.stdout:
            number, said = json.loads(line)
            if number < 0:
                return first, found
            first = number + 1
            found += [said] * (said not in ("", "begins"))
        child.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="exercises, or beginnings of chapters")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work[0], int(options.work[1]))
    from minijax.notebook.checks import exercises
    every, kept = 0, 0
    for one in sorted(exercises().values(), key=lambda e: (e.chapter, e.name)):
        if options.names and one.name not in options.names and not one.chapter.startswith(
                tuple(options.names)):
            continue
        count, found = accepted(one.name)
        every, kept = every + count, kept + len(found)
        print(f"{one.chapter} {one.name}: {len(found)} of {count}", flush=True)
        for mutant in found:
            print(edited(one.solution, mutant) + "\n", flush=True)
    print(f"{every} mutants, {kept} called right")


if __name__ == "__main__":
    main()
