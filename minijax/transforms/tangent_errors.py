"""Why a tangent or a cotangent is refused, in the words of JAX's errors.

Builds on `core`; `derivatives` loads it when it refuses one.  Chapter 07, *Reverse derivatives*.
In JAX: `jax/_src/api.py`.
"""

from typing import Any

from minijax import tree_util
from minijax.core import ShapedArray

_OF_LINEARIZED = (
    "linearized function called on tangent values inconsistent with the original primal values:\n"
    "Got tangent aval {got} for primal aval {of} but expected {want}.{cure}")
_OF_VJP = ("unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got {got}, but "
           "expected {want} because the corresponding output of the differentiated function had "
           "JAX type {of}")


def type_error(primal: ShapedArray, got: ShapedArray, is_of_vjp: bool) -> ValueError:
    """The error for a tangent of this type, or a cotangent, where a primal has another one."""
    want = primal.to_tangent_aval()
    names = ("~" * (not is_of_vjp and a.weak_type) + a.str_long() for a in (got, primal, want))
    message = _OF_VJP if is_of_vjp else _OF_LINEARIZED
    return ValueError(message.format(**dict(zip(("got", "of", "want"), names, strict=True)),
                                     cure=_pcast_advice(want.vma, got.vma)))


def _pcast_advice(of_primal: frozenset, of_tangent: frozenset) -> str:
    """What to cast where a tangent varies along other axes of a mesh than its primal."""
    casts = {"primal value passed to `jax.linearize`": of_tangent - of_primal,
             "tangent value passed to the callable `f_jvp` returned by `jax.linearize`":
             of_primal - of_tangent}
    lines = [f"\n  * applying `jax.lax.pcast(..., {tuple(names)}, to='varying')` to the {what};"
             for what, names in casts.items() if names]
    return "".join([" \nThis might be fixed by:"] * bool(lines) + lines)


def tree_error(info: Any, expected: tree_util.PyTreeDef, got: tree_util.PyTreeDef) -> ValueError:
    """The error for a cotangent whose tree is not that of the result."""
    differences = tree_util.equality_errors_pytreedef(expected, got)
    return ValueError("unexpected tree structure.\n\nThe argument to a VJP function returned by "
                      "`jax.vjp` must match the pytree\nstructure of the differentiated function "
                      f"{info.func_src_info}.\n\nBut the tree structures differ:\n" + "\n".join(
                          f"  * out{tree_util.keystr(path)} was a {was} in the original output, "
                          f"but a {now} here, so {why}." for path, was, now, why in differences))
