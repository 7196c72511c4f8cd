"""Running a program, compiled or interpreted; and `jit_p`, the primitive that calls one.

Builds on `core`, `compiler`.  Chapter 08, *jit*.
In JAX: `jax/_src/pjit.py`, `jax/_src/interpreters/pxla.py`.
"""

import contextlib
import functools
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from minijax import config, core, dtypes, errors
from minijax.util import lazily
from minijax.core import ArrayImpl, Params, Primitive, ShapedArray, tracing
from minijax.placement.devices import CPU, Device, device_of
from minijax.control_flow.program_rules import running_one_of
from minijax.core.partial_eval import PartialEvalResult, partial_eval_jaxpr
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr, partition_list, subjaxprs, types_in
from minijax.transforms.arguments import UNSPECIFIED

logger = logging.getLogger("minijax")
T = TypeVar("T")


# ── Running a program ────────────────────────────────────────────────────────────────────────

def interpret(closed: ClosedJaxpr, *buffers: np.ndarray) -> list[np.ndarray]:
    """Evaluate a program by the `impl` of its primitives; a check may compile it instead."""
    args = [ArrayImpl(np.asarray(b), aval)
            for b, aval in zip(buffers, closed.in_avals, strict=True)]
    run = core.base_trace.wrap("interpret", lambda closed, args, _: core.run_with(
        core.base_trace, eval_jaxpr, closed.jaxpr, closed.consts, *args))
    return [x._buffer for x in run(closed, args, lambda: run_program(closed, "f", args))]


def executable(closed: ClosedJaxpr, name: str = "f", device: Device = CPU, loops: Any = None
               ) -> Callable[..., list]:
    """The executable of a program on a device; compiled once, and kept as long as the program.

    `loops` is what `lowered` returns for it, if it has been called.
    """
    return closed.derived(("executable", device),
                          lambda: _make_executable(closed, name, device, loops))


# Dtypes narrower than any register: NumPy computes them.
_WITHOUT_LOOPS = frozenset(dtypes.SMALL_FLOATS + dtypes.SMALL_INTEGERS)


def is_interpreted(closed: ClosedJaxpr, device: Device) -> bool:
    """Whether a program runs operation by operation, each by its `impl`."""
    return device.interprets or device == CPU and closed.derived(("has few bits",), lambda: any(
        x.dtype in _WITHOUT_LOOPS for x in {*types_in(closed.jaxpr)}))


def _make_executable(closed: ClosedJaxpr, name: str, device: Device, loops: Any) -> Callable:
    if is_interpreted(closed, device):
        return functools.partial(interpret, closed)
    log("Compiling jit(%s) with global shapes and types %s. Argument mapping: %s.", name,
        tuple(closed.in_avals), (UNSPECIFIED,) * len(closed.in_avals))
    with blaming_the_compiler(closed, name):
        loops = loops or lowered(closed, name)
        with timed("XLA compilation of {}", "backend_compile", f"jit({name})"):
            return device.compiled(loops)


def lowered(closed: ClosedJaxpr, name: str, in_tiers: bool = True) -> Any:
    """A program as loops, by the compiler, which is loaded when it is first needed."""
    with lazily.importing:
        from minijax.compiler.lowered import Lowered
    # the words of JAX, which tools read
    with timed("jaxpr to MLIR module conversion {}", "jaxpr_to_mlir_module", f"jit({name})"):
        return Lowered(closed, name, in_tiers)


@contextlib.contextmanager
def blaming_the_compiler(closed: ClosedJaxpr, name: str) -> Iterator[None]:
    """Report an internal error as an error of the compiler, with a workaround.

    Raises:
      JaxRuntimeError: from the original one.
    """
    try:
        yield
    except (NotImplementedError, ImportError, MemoryError, OSError, NameError,
            errors.JaxRuntimeError, RecursionError):
        raise  # for users: no rule, no library, no memory, no such axis, no end
    except Exception as error:
        if errors.has_cure(error):
            raise
        info = closed.jaxpr.debug_info
        function = info.func_src_info if info is not None else name
        raise errors.with_cure(
            errors.JaxRuntimeError(f"INTERNAL: the compiler failed on jit({name}), the function "
                                   f"{function}, with {type(error).__name__}: {error}"),
            "This is a mistake of minijax, not of your program. Inside of `with "
            "jax.disable_jit():` the function runs without the compiler. Please report it, with "
            "the function and the types of its arguments.") from error


def log(text: str, *values: Any, flag: str = "log_compiles") -> None:
    """Log a step of compilation, with the flag as a warning."""
    logger.log(logging.WARNING if config.read(flag) else logging.DEBUG, text, *values)


@contextlib.contextmanager
def timed(what: str, event: str, name: str) -> Iterator[None]:
    """Report an event and its duration to profiles and listeners, and log it."""
    start, what = time.perf_counter(), what.format(name)
    yield
    core.base_trace.notify("timed", what, start)
    if monitoring := sys.modules.get("minijax.monitoring"):  # otherwise there are no listeners
        monitoring.record_event_duration_secs(
            f"/jax/core/compile/{event}_duration", time.perf_counter() - start, fun_name=name)
    log("Finished %s in %.9f sec", what, time.perf_counter() - start)


def called(program: Callable[[], T], python: Callable[[], Any], function: str | None = None) -> T:
    """The results of a compiled program.

    Args:
      program: runs the compiled program.
      python: runs the user's function instead, for checks that need its lines.
      function: the name in messages of the public function: ``"jax.jit"``; None for no message.
    """
    return core.base_trace.wrap("call", lambda *_: program())(python, function)


def run_program(closed: ClosedJaxpr, name: str, args: Sequence[Any]) -> list[ArrayImpl]:
    """The results of a program on arrays, compiled for their device."""
    device = device_for(closed, args)
    return run_on_arrays(executable(closed, name, device), device, closed, args)


def run_on_arrays(run: Callable[..., list], device: Device, closed: ClosedJaxpr,
                  args: Sequence[Any]) -> list[ArrayImpl]:
    """The results of a program's compiled code on arrays."""
    operands = device.operands(args, closed.jaxpr.debug_info)
    return list(map(device.array, run(*operands), closed.out_avals))


def device_for(closed: ClosedJaxpr, args: Sequence[Any]) -> Device:
    """The device that runs a program on arguments: all devices, if it names a sharding."""
    device = device_of(args)
    return core.Primitive.eager_dispatch.all_devices() if (
        device.is_host and is_annotated(closed)) else device


def is_annotated(closed: ClosedJaxpr) -> bool:
    """Whether an equation of a program, or of one inside it, names a sharding."""
    return closed.derived(("is annotated",), lambda: any(
        eqn.params.get("sharding") is not None or any(map(is_annotated, subjaxprs(eqn.params)))
        for eqn in closed.eqns))


# ── Operations with programs inside ──────────────────────────────────────────────────────────

class ProgramPrimitive(Primitive):
    """A primitive with programs inside, compiled for evaluation as a program of one equation.

    The NumPy backend runs `impl`.
    """

    def evaluate(self, args: Sequence[Any], params: Params) -> list[ArrayImpl]:
        avals = [x.aval for x in args]
        # A program of this one equation, kept as long as the first program inside it.
        closed = next(subjaxprs(params)).derived(
            ("program", self.name, *avals, *params.items()),
            lambda: tracing.stage(lambda *args: self.bind_list(*args, **params), avals))
        if is_interpreted(closed, device_of(args)):
            return super().evaluate(args, params)
        return run_program(closed, self.name, args)


class CallPrimitive(Primitive):
    """Applies the program in its parameter `jaxpr`; evaluated, it is compiled."""

    def evaluate(self, args: Sequence[Any], params: Params) -> list[ArrayImpl]:
        return run_program(params["jaxpr"], params["name"], args)


def call_of_program(name: str, split: Callable[..., PartialEvalResult], recomputes: bool = False,
                    kind: type[CallPrimitive] = CallPrimitive) -> CallPrimitive:
    """A primitive that applies a program.

    Args:
      name: as a jaxpr prints it.
      split: selects the residuals of its backward pass.
      recomputes: whether the transposed half recomputes known values.
      kind: the class of the primitive.
    """
    return kind(name, **running("jaxpr", "called" if recomputes else "inlined"),
                **running_one_of("jaxpr", recomputes=recomputes), split=split,
                examples=_examples)


def running(field: str, layout: str = "inlined") -> dict[str, Any]:
    """The `impl`, type and lowering of an operation that runs the program in a parameter."""
    return {
        "impl": lambda *buffers, **params: interpret(params[field], *buffers),
        "abstract_eval": lambda *_, **params: params[field].out_avals,
        "loop": lambda b, outs, operands, **params: b.jaxpr(params[field], operands, into=outs),
        "sharding": lazily.later("minijax.control_flow.layouts", layout, field=field),
        "multiple_results": True, "handles_keys": True}


def _examples() -> list[core.Example]:
    from minijax.primitives.analytic import sin_p
    aval = ShapedArray((3,), np.float32)
    closed = tracing.stage(lambda x, y: [sin_p.bind(x) * y, x], [aval, aval])
    x = np.array([0.5, -1.0, 2.0], np.float32)
    return [core.Example((x, x + 1), {"jaxpr": closed, "name": "f"})]


def _remembering(unknown: Sequence[bool], args: Sequence[Any], *, jaxpr: ClosedJaxpr,
                 **params: Any) -> PartialEvalResult:
    """The known half passes its residuals to the unknown half."""
    halves = partial_eval_jaxpr(jaxpr, unknown)
    known_args, unknown_args = partition_list(args, unknown)
    return PartialEvalResult(known_args, {"jaxpr": halves.known, **params},
                  lambda residuals: [*halves.needed(args, residuals), *unknown_args],
                  {"jaxpr": halves.unknown, **params}, halves.unknown_out)


jit_p = call_of_program("jit", _remembering)
