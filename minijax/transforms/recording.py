"""Recorded calls: the NumPy calls of a function of arrays, as one straight program.

A recorded array has a stand-in for its buffer, which writes down what NumPy does with it and shows
Python none of its elements: a function whose course depends on them has no program.
Builds on `prepared`.  Chapter 26, *Threads, caches and dispatch*.  JAX traces and compiles.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import config, core, errors, tree_util
from minijax.core import ArrayImpl, Avals, Params, Primitive, ShapedArray
from minijax.placement.devices import CPU, device_of
from minijax.transforms.compiled import CallPrimitive, executable, is_annotated
from minijax.transforms.dispatch import is_plain
from minijax.util import caches, context

LARGEST = 1 << 16  # bytes of a constant

# ── Stand-ins ────────────────────────────────────────────────────────────────────────────────

# What follows from types alone.
_OF_TYPES = (np.shape, np.ndim, np.size, np.result_type, np.iscomplexobj)
_OF_TYPE = ("shape", "dtype", "ndim", "size", "itemsize", "nbytes")
# Functions and methods of NumPy that only read, and shapes of whose results follow from shapes.
_RECORDED = frozenset(
    "all any argmax argmin argsort astype broadcast_to clip concatenate conj conjugate copy "
    "cumprod cumsum einsum expand_dims flip imag max mean min moveaxis prod ravel real repeat "
    "reshape roll sort squeeze stack std sum swapaxes take take_along_axis tensordot tile "
    "transpose var view where".split())
_COPIES = (np.ndarray.copy, np.ndarray.astype, np.copy)


class Unrecordable(BaseException):
    """Python asks for elements, or NumPy would write into an array; no `except` may hide it."""


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise Unrecordable


class StandIn(np.lib.mixins.NDArrayOperatorsMixin):
    """In place of a buffer: its value in the recorded call, and its name in the program."""

    __slots__ = ("name", "recorder", "value")
    __class__ = np.ndarray  # type: ignore[assignment]  # for `isinstance`
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, recorder: Recorder, name: str, value: Any):
        self.recorder, self.name, self.value = recorder, name, value

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is not None or method == "at":
            raise Unrecordable
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return self.recorder.call(function, args, kwargs)

    def __array_function__(self, function: Any, kinds: Any, args: tuple, kwargs: dict) -> Any:
        if function in _OF_TYPES:
            return function(*_value(args), **kwargs)
        if function.__name__ not in _RECORDED or kwargs.get("out") is not None:
            raise Unrecordable
        return self.recorder.call(function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in _OF_TYPE:
            return getattr(self.value, name)
        method = getattr(np.ndarray, name)  # or AttributeError, as of an array
        if name in ("real", "imag", "T"):
            return self.recorder.call(operator.attrgetter(name), (self,), {})
        if name not in _RECORDED or name == "sort":  # in place
            raise Unrecordable
        return lambda *args, **kwargs: self.recorder.call(method, (self, *args), kwargs)

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if any(type(part) is StandIn and part.dtype == bool for part in parts):
            raise Unrecordable
        return self.recorder.call(operator.getitem, (self, index), {})

    def __len__(self) -> int:
        return len(self.value)

    def setflags(self, write: bool) -> None:
        """Nothing: the program makes its results immutable."""


for _name in ("array bool int float complex index iter contains setitem iadd isub imul itruediv "
              "ifloordiv imod ipow iand ior ixor ilshift irshift imatmul").split():
    setattr(StandIn, f"__{_name}__", _refuse)


def _value(x: Any) -> Any:
    """An argument of a NumPy function with its arrays in place of their stand-ins."""
    if type(x) in (list, tuple):
        return type(x)(map(_value, x))
    return x.value if type(x) is StandIn else x


def _has_stand_in(x: Any) -> bool:
    return any(map(_has_stand_in, x)) if type(x) in (list, tuple) else type(x) is StandIn


def _is_same(out: Any, x: Any, is_copy: bool) -> bool:
    """Whether a result is the operand again, as it lies in memory."""
    if type(x) is not StandIn or type(out) is not type(x.value) or not isinstance(out, np.ndarray):
        return False
    alike = (out.dtype, out.shape, out.strides) == (x.dtype, x.shape, x.value.strides)
    return alike and (is_copy or out.ctypes.data == x.value.ctypes.data)


# ── The recorder ─────────────────────────────────────────────────────────────────────────────

class Step(NamedTuple):
    """A call: its text, with names in braces; the names of its operands, and of its results."""

    text: str
    operands: Sequence[str]
    results: Sequence[str]
    returns_list: bool = False


class Recorder(core.EvalTrace):
    """Evaluation, during which arrays with stand-ins write down NumPy's calls."""

    def __init__(self) -> None:
        super().__init__(None, None)
        self.steps: list[Step] = []
        self.arguments: list[tuple[ArrayImpl, str]] = []  # each array, and where it is passed
        self.constants: dict[str, Any] = {"Array": ArrayImpl}
        self.count = 0

    def stand_in(self, value: Any) -> StandIn:
        self.count += 1
        return StandIn(self, f"v{self.count}", value)

    def argument(self, x: Any, place: str) -> Any:
        """An argument of the function, with stand-ins for the buffers of its arrays."""
        if type(x) is ArrayImpl:
            buffer: Any = self.stand_in(x._buffer)
            array = ArrayImpl(buffer, x.aval, x.is_literal)
            self.arguments.append((array, place))
            return array
        if type(x) in (list, tuple):
            return type(x)(self.argument(each, f"{place}[{i}]") for i, each in enumerate(x))
        if type(x) is slice:
            return slice(*(self.argument(getattr(x, name), f"{place}.{name}")
                           for name in ("start", "stop", "step")))
        return x

    def constant(self, x: Any) -> str:
        """The name of a constant of the program."""
        if isinstance(x, np.ndarray | np.generic):
            if x.nbytes > LARGEST:
                raise Unrecordable
            x = np.array(x)  # a scalar too: functions take arrays sooner
        word = getattr(x, "__name__", "")
        name = f"{word if word.isidentifier() else 'c'}{len(self.constants)}"
        self.constants[name] = x
        return name

    def text(self, x: Any, operands: list[str]) -> str:
        """An argument of a call; the names in it are added to `operands`."""
        if type(x) is StandIn:
            operands.append(x.name)
            return f"{{{x.name}}}"
        if type(x) in (list, tuple) and any(map(_has_stand_in, x)):
            parts = "".join(f"{self.text(each, operands)}, " for each in x)
            return f"[{parts}]" if type(x) is list else f"({parts})"
        return self.constant(x)

    def call(self, function: Callable, args: Sequence, kwargs: Params) -> Any:
        """Call a function of buffers, and write it down unless nothing changes."""
        out = function(*_value(args), **{name: _value(x) for name, x in kwargs.items()})
        if _is_same(out, args[0], function in _COPIES):
            return args[0]
        operands: list[str] = []
        texts = [self.text(x, operands) for x in args]
        texts += [f"{name}={self.text(x, operands)}" for name, x in kwargs.items()]
        is_list = isinstance(out, tuple | list)
        outs = list(map(self.stand_in, out if is_list else [out]))
        if not all(isinstance(each.value, np.ndarray | np.generic) for each in outs):
            raise Unrecordable
        self.steps.append(Step(f"{self.constant(function)}({', '.join(texts)})", operands,
                               [each.name for each in outs], is_list))
        return type(out)(outs) if is_list else outs[0]

    # ── Primitives ───────────────────────────────────────────────────────────────────────────

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: Params) -> list:
        if primitive.effects(**params):
            raise Unrecordable
        if primitive.calls_python(params):
            return primitive.evaluate(args, params)
        buffers = [x._buffer for x in args]
        if not any(type(buffer) is StandIn for buffer in buffers):
            return super().process_primitive(primitive, args, params)
        avals = [x.aval for x in args]
        out_avals = primitive.type_of(avals, params)
        outs = self._evaluated(primitive, avals, buffers, params)
        return [ArrayImpl(self._contiguous(out, aval), aval)
                for out, aval in zip(outs, out_avals, strict=True)]

    def _evaluated(self, primitive: Primitive, avals: Avals,
                   buffers: Sequence[Any], params: Params) -> Sequence[Any]:
        """The results of a primitive: by its calls of NumPy, where they can be recorded, or else
        by one call.
        """
        if type(primitive).evaluate is not Primitive.evaluate or not primitive.handles_keys and any(
                map(core.has_key_dtype, avals)):
            return self.call(_carried(_evaluation(primitive, avals, params)), buffers, {})
        impl, count = primitive.rule("impl"), len(self.steps)
        try:
            return impl(*buffers, **params)
        except (Unrecordable, Exception):
            del self.steps[count:]
            return self.call(_carried(functools.partial(impl, **params)), buffers, {})

    def _contiguous(self, buffer: Any, aval: ShapedArray) -> Any:
        """A result of a primitive as the next one takes it, which is how it lies in an array."""
        if type(buffer) is not StandIn:
            return np.asarray(buffer, order="C")
        value, physical = buffer.value, core.physical_aval(aval)
        if (value.dtype, value.shape) != (physical.dtype, physical.shape):
            raise Unrecordable
        if isinstance(value, np.ndarray) and value.flags.c_contiguous:
            return buffer
        return self.call(np.asarray, (buffer,), {"order": "C"})

    # ── The program ──────────────────────────────────────────────────────────────────────────

    def program(self, out: Any, args: tuple, kwargs: dict[str, Any]) -> Callable[..., Any]:
        """The recorded function, for such arguments and this result."""
        leaves, tree = tree_util.tree_flatten(out)
        operands: list[str] = []
        arrays = [self._array(x, operands) for x in leaves]
        if not arrays or len({*map(id, leaves)}) < len(leaves):
            raise Unrecordable
        text = (tree.folded(arrays, lambda kind: kind.show) if is_plain(tree)
                else f"{self.constant(tree.unflatten)}([{', '.join(arrays)}])")
        inputs = [Step(f"{place}._buffer", (), [array._buffer.name])  # type: ignore[attr-defined]
                  for array, place in self.arguments]
        lines = _statements([*inputs, *self.steps, Step(text, operands, ())])
        parameters = [*(f"p{i}" for i in range(len(args))), *["/"] * bool(args), *kwargs]
        source = f"def program({', '.join(parameters)}):\n    " + "\n    ".join(lines)
        program = caches.written(source, "program", self.constants)
        program.__doc__ = source
        return program

    def _array(self, x: Any, operands: list[str]) -> str:
        """The text of an array of the result; a view of another buffer is copied."""
        for array, place in self.arguments:
            if array is x:
                return place
        if type(x) is not ArrayImpl or vars(x):
            raise Unrecordable
        buffer: Any = x._buffer
        is_part = not x.is_literal  # of the program, if it is a constant
        if type(buffer) is StandIn:
            value = buffer.value
            others = [array._buffer for array, _ in self.arguments if array._buffer is not buffer]
            is_part = value.base is not None and value.base.nbytes > value.nbytes or any(
                np.may_share_memory(value, _value(each)) for each in others)
        return (f"Array({self.text(buffer, operands)}{'.copy()' * is_part}, "
                f"{self.constant(x.aval)}{', True' * x.is_literal})")


def _carried(run: Callable[..., Any]) -> Callable[..., Any]:
    """A step that sees the flags which this thread has set by `with`: a program sees none."""
    return run if config.state().around is None else config.carried(run)


def _evaluation(primitive: Primitive, avals: Avals, params: Params) -> Callable[..., list]:
    """The evaluation of a primitive as a function of buffers."""
    if isinstance(primitive, CallPrimitive) and not is_annotated(params["jaxpr"]):
        return executable(params["jaxpr"], params["name"])

    def evaluate(*buffers: Any) -> list:
        return [x._buffer for x in primitive.evaluate(list(map(ArrayImpl, buffers, avals)), params)]
    return evaluate


def _statements(steps: Sequence[Step]) -> Iterator[str]:
    """The statements of a program, whose last step is its result, without unused steps.

    A variable is used again after the last use of its value, whose memory is then free.
    """
    last_uses: dict[str, int] = {}
    kept = []
    for i, step in reversed([*enumerate(steps)]):
        if step is steps[-1] or not last_uses.keys().isdisjoint(step.results):
            kept.append((i, step))
            for name in step.operands:
                last_uses.setdefault(name, i)
    variables: dict[str, str] = {}
    free = [f"v{i}" for i in reversed(range(sum(len(step.results) for _, step in kept)))]
    for i, step in reversed(kept):
        text = step.text.format_map(variables)
        free += [variables[name] for name in {*step.operands} if last_uses[name] == i]
        variables.update((name, free.pop()) for name in step.results)
        targets = ", ".join(variables[name] for name in step.results)
        yield f"{targets}{',' * step.returns_list} = {text}" if targets else f"return {text}"


def recorded(fun: Callable, args: tuple, kwargs: Params) -> Callable | None:
    """A program that does what the function does with arguments of these types, if there is one."""
    if device_of(()) is not CPU or config.mesh.value is not None:
        return None
    recorder = Recorder()
    with np.errstate(all="ignore"):
        try:
            out = context.with_values(
                {core.current_trace: recorder, errors.instead_of_warning: Unrecordable}, fun,
                *(recorder.argument(x, f"p{i}") for i, x in enumerate(args)),
                **{name: recorder.argument(x, name) for name, x in kwargs.items()})
            return recorder.program(out, args, kwargs)
        except (Unrecordable, Exception):
            return None
        finally:
            recorder.arguments.clear()  # they lead to it; their memory shall not wait for the GC
