"""Policies of checkpoints: which results may be saved, by their primitive or by name.

Builds on `core`.  Chapter 10, *Your own rules and checkpointing*.
In JAX: `jax/_src/ad_checkpoint.py`.
"""

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from minijax import core, tree_util
from minijax.primitives import examples
from minijax.primitives.convert import copying

Policy = Callable[..., bool]

class PolicyResult(NamedTuple):
    """A value that a policy may return in place of True or False."""

    saves: bool

    def __bool__(self) -> bool:
        return self.saves


Recompute, Saveable = PolicyResult(False), PolicyResult(True)


class Offloadable(NamedTuple):
    """A result may be saved in another memory; here there is one, where it stays."""

    src: str
    dst: str


name_p = copying("name", examples=examples.each_with(examples.points((-2., 2.)), {"name": "a"}))


def checkpoint_name(x: Any, name: str) -> Any:
    """`x` with a name for policies.

    Args:
      x: a tree of arrays.
      name: a name.

    >>> checkpoint_name(2., "weights")
    Array(2., dtype=float32, weak_type=True)
    """
    return tree_util.tree_map(lambda leaf: name_p.bind(core.as_value(leaf), name=name), x)


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Save every result."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Save no result, as `checkpoint` does without a policy."""
    return False


@dataclasses.dataclass(frozen=True)
class DotsSaveable:
    """Save the results of products, or only of those without batch axes."""

    only_if_no_batch_dims: bool = False

    def __call__(self, prim: core.Primitive, *_: Any, **params: Any) -> bool:
        if prim.name == "conv_general_dilated":
            return not self.only_if_no_batch_dims
        return prim.name == "dot_general" and not (
            self.only_if_no_batch_dims and any(params["dimension_numbers"][1]))


@dataclasses.dataclass(frozen=True)
class SaveByName:
    """Save the results with one of these names, or those with another; perhaps those without."""

    names: frozenset[str]
    if_listed: bool = True
    if_unnamed: bool = False

    def __call__(self, prim: core.Primitive, *_: Any, **params: Any) -> bool:
        return ((params["name"] in self.names) == self.if_listed if prim is name_p
                else self.if_unnamed)

    def __repr__(self) -> str:
        return (f"SaveOnlyTheseNames(saveable_names={self.names})" if self.if_listed
                else f"SaveAnyNamesButThese(names={self.names})")


@dataclasses.dataclass(frozen=True)
class SaveFromBothPolicies:
    """Save what either of two policies saves."""

    policy_1: Policy
    policy_2: Policy

    def __call__(self, prim: core.Primitive, *args: Any, **params: Any) -> bool:
        return bool(self.policy_1(prim, *args, **params) or self.policy_2(prim, *args, **params))


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Save results with one of these names.

    >>> save_only_these_names("a")
    SaveOnlyTheseNames(saveable_names=frozenset({'a'}))
    """
    return SaveByName(frozenset(names_which_can_be_saved))


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Save results with a name that is not one of these."""
    return SaveByName(frozenset(names_not_to_save), if_listed=False)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Save every result without one of these names."""
    return SaveByName(frozenset(names_not_to_save), if_listed=False, if_unnamed=True)


def save_and_offload_only_these_names(*, names_which_can_be_saved: Any,
                                      names_which_can_be_offloaded: Any, offload_src: str,
                                      offload_dst: str) -> Policy:
    """Save results with one of these names; here there is one memory for all.

    Raises:
      ValueError: where a name is in both lists.
    """
    saved, moved = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if saved & moved:
        raise ValueError("The names should be exclusive and should not intersect in "
                         "`names_which_can_be_saved` and `names_which_can_be_offloaded`. Got "
                         f"names_which_can_be_saved={names_which_can_be_saved}, "
                         f"names_which_can_be_offloaded={names_which_can_be_offloaded} and the "
                         f"intersection: {set(saved & moved)}")
    return SaveByName(saved | moved)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Save the results of products without batch axes; here there is one memory."""
    return DotsSaveable(only_if_no_batch_dims=True)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Save what either of two policies saves."""
    return SaveFromBothPolicies(policy_1, policy_2)


checkpoint_policies = SimpleNamespace(
    dots_saveable=DotsSaveable(), checkpoint_dots=DotsSaveable(),
    dots_with_no_batch_dims_saveable=DotsSaveable(True),
    checkpoint_dots_with_no_batch_dims=DotsSaveable(True),
    **{function.__name__: function for function in (
        everything_saveable, nothing_saveable, offload_dot_with_no_batch_dims,
        save_only_these_names, save_any_names_but_these, save_anything_except_these_names,
        save_and_offload_only_these_names, save_from_both_policies)})
