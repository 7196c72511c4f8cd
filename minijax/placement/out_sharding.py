"""`out_sharding=` of functions that make arrays, and pictures of shardings as text.

Builds on `resharding`.  Chapter 11, *Named axes and many devices*.
In JAX: the parameter is in each function; `jax/_src/debugging.py`.
"""

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from minijax import core
from minijax.transforms import prepared
from minijax.util import lazily, tracebacks

_called_with_sharding = lazily.later("minijax.placement.resharding", "called_with_sharding")
# The functions that have the parameter in JAX, but not where they are defined here.
TAKING = {
    "minijax.numpy": "arange array asarray bincount broadcast_to dot einsum empty full full_like "
                     "matmul ones ones_like percentile ravel repeat reshape tensordot zeros "
                     "zeros_like",
    "minijax.numpy.linalg": "tensordot",
    "minijax.lax": "broadcast broadcast_in_dim broadcasted_iota reshape",
    "minijax.nn.initializers": "ones zeros"}


def with_out_sharding(out_sharding: Any, fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a function, with a sharding unless it is None."""
    if out_sharding is None:
        return fun(*args, **kwargs)
    return _called_with_sharding(out_sharding, fun, *args, **kwargs)


def exported(module: str) -> Callable[[str, Any], Any]:
    """What a public module shows as a value: functions take `out_sharding`, and are boundaries.

    The package itself calls the functions where they are defined, without the parameter.
    """
    names = TAKING.get(module, "").split()

    def export(name: str, value: Any) -> Any:
        takes = inspect.isfunction(value) and not tracebacks.is_boundary(value) and (
            name in names or "out_sharding" in inspect.signature(value).parameters)
        out = _with_out_sharding(value) if takes else prepared.exported(name, value)
        is_alias = module == "minijax.numpy" and inspect.isfunction(out) and out.__name__ != name
        return _renamed(out, name) if is_alias else out
    return export


def _renamed(fun: Any, name: str) -> Any:
    """The same function under another name, as JAX has `abs` and `absolute`."""
    copy: Any = types.FunctionType(fun.__code__, fun.__globals__, name, fun.__defaults__,
                                   fun.__closure__)
    functools.update_wrapper(copy, fun)
    copy.__name__ = copy.__qualname__ = name
    copy.__kwdefaults__ = fun.__kwdefaults__
    return copy


@functools.cache
def _with_out_sharding(fun: Callable) -> Callable:
    @tracebacks.wraps(fun)
    def resharded(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        return with_out_sharding(out_sharding, fun, *args, **kwargs)
    wrapper: Any = prepared.boundary(resharded, like=fun)
    signature = inspect.signature(fun)
    if "out_sharding" not in signature.parameters:
        new = inspect.Parameter("out_sharding", inspect.Parameter.KEYWORD_ONLY, default=None)
        signature = signature.replace(parameters=[*signature.parameters.values(), new])
    wrapper.__signature__ = signature
    return wrapper


# ── As text ──────────────────────────────────────────────────────────────────────────────────

def inspect_array_sharding(value: core.Array, *, callback: Callable[[Any], None]) -> None:
    """Call a function with the sharding of an array.

    Args:
      value: an array.
      callback: a function of its sharding.

    Raises:
      NotImplementedError: for a tracer, whose sharding is known only after the program has run.
    """
    if isinstance(value, core.Tracer):
        raise NotImplementedError("the sharding of a traced array is known only after the program "
                                  "has run: inspect the result, outside of jit")
    callback(value.sharding)


def visualize_array_sharding(arr: core.Array, **kwargs: Any) -> None:
    """Print the shard of each device of an array; takes the options of `visualize_sharding`.

    >>> from minijax import numpy as jnp
    >>> visualize_array_sharding(jnp.ones(3))
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(
        arr.shape, sharding, **kwargs))


def visualize_sharding(shape: Sequence[int], sharding: Any, *, use_color: bool = True,
                       scale: float = 1.0, min_width: int = 9, max_width: int = 80,
                       color_map: Any = None) -> None:
    """Print the shard of each device, for an array of one or two axes.

    Args:
      shape: the shape of the array.
      sharding: its sharding.
      use_color, color_map: accepted for JAX's sake; there are lines, and no colours.
      scale: the size of the picture.
      min_width, max_width: the width of a part, with its lines.

    Raises:
      ValueError: for another number of axes.
    """
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    devices_at: dict[tuple, list] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        corner = tuple(part.start or 0 for part in index)
        devices_at.setdefault((0, *corner)[-2:], []).append(device)
    rows, columns = (sorted(set(starts)) for starts in zip(*devices_at, strict=True))
    full = int(10 * scale)
    wide = int(full * (shape[1] / shape[0] if len(shape) == 2 else 1 / shape[0]))
    width = min(max(int(wide * 2.5 / len(columns)), min_width), max_width) - 2
    width = min(width, (max_width - 1) // len(columns) - 1)
    spare = max(full // len(rows) - 2 if len(shape) == 2 else 0, 0)

    def line(left: str, middle: str, right: str, cells: Sequence[str]) -> str:
        return left + middle.join(cells) + right
    labels = [[_devices_text(devices_at[row, column]) for column in columns] for row in rows]
    widths = [max(width, *map(len, column)) for column in zip(*labels, strict=True)]
    bars, blank = ["─" * w for w in widths], [" " * w for w in widths]
    pictures = []
    for names in labels:
        cells = [f"{name:^{w}}" for name, w in zip(names, widths, strict=True)]
        pictures.append("\n".join(
            line("│", "│", "│", text) for text in
            [*[blank] * (spare // 2), cells, *[blank] * (spare - spare // 2)]))
    between = "\n" + line("├", "┼", "┤", bars) + "\n"
    print(line("┌", "┬", "┐", bars), between.join(pictures), line("└", "┴", "┘", bars), sep="\n")


def _devices_text(devices: Sequence[Any]) -> str:
    numbers = ",".join(map(str, sorted(device.id for device in devices)))
    return f"{devices[0].platform.upper()} {numbers}"
