"""First-order optimizers: each is three functions, to initialize, update and read its state.

Builds on `numpy`, `tree_util`.  Chapter 05, *Trees*, trains with one of them.
In JAX: `jax/example_libraries/optimizers.py`.
"""

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax import numpy as jnp, tree_util
from minijax.core import Array, refuse
from minijax.numpy.arguments import ArrayLike

Step = Any  # which round of the training: a number, or an array that holds one
Params = Any  # a tree of arrays
State = Any  # the state of an optimizer for one array
Schedule = Callable[[Step], Any]


class OptimizerState(NamedTuple):
    """The state of an optimizer: for every array of the parameters the leaves of its own state.

    It is a tree of arrays; the two structures are static.
    """

    packed_state: Sequence[Sequence[Any]]
    tree_def: tree_util.PyTreeDef
    subtree_defs: Sequence[tree_util.PyTreeDef]


tree_util.register_pytree_node(
    OptimizerState, lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda data, children: OptimizerState(children[0], *data))


class Optimizer(NamedTuple):
    """``init_fn(params)`` and ``update_fn(step, grads, state)`` return states, and
    ``params_fn(state)`` the parameters.

    >>> init, update, get_params = sgd(0.5)
    >>> state = update(0, {"w": 2.0}, init({"w": jnp.array([3.0])}))
    >>> get_params(state)
    {'w': Array([2.], dtype=float32)}
    """

    init_fn: Callable[[Params], OptimizerState]
    update_fn: Callable[[Step, Params, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Params]


# An optimizer of one array: the same three functions, over the state of that array.
LeafOptimizer = tuple[Callable[[Any], State], Callable[[Step, Any, State], State],
                      Callable[[State], Any]]


def optimizer(opt_maker: Callable[..., LeafOptimizer]) -> Callable[..., Optimizer]:
    """Make an optimizer of trees from an optimizer of one array.

    >>> @optimizer
    ... def sign_descent(step_size):
    ...     return lambda x: x, lambda i, g, x: x - step_size * jnp.sign(g), lambda x: x
    >>> init, update, get_params = sign_descent(0.5)
    >>> get_params(update(0, (7.0, -7.0), init((jnp.ones(1), jnp.ones(1)))))
    (Array([0.5], dtype=float32), Array([1.5], dtype=float32))
    """
    @functools.wraps(opt_maker)
    def tree_opt_maker(*args: Any, **kwargs: Any) -> Optimizer:
        return _over_trees(*opt_maker(*args, **kwargs))
    return tree_opt_maker


def _over_trees(init: Callable, update: Callable, get_params: Callable) -> Optimizer:
    def init_tree(params: Params) -> OptimizerState:
        leaves, tree = tree_util.tree_flatten(params)
        return _packed([init(x) for x in leaves], tree)

    def update_tree(i: Step, grads: Params, state: OptimizerState) -> OptimizerState:
        leaves, tree = tree_util.tree_flatten(grads)
        if tree != state.tree_def:
            raise TypeError("optimizer update function was passed a gradient tree that did not "
                            "match the parameter tree structure with which it was initialized: "
                            f"parameter tree {state.tree_def} and grad tree {tree}.")
        new = _packed([update(i, g, s) for g, s in zip(leaves, _states(state), strict=True)], tree)
        for before, after in zip(state.subtree_defs, new.subtree_defs, strict=True):
            if before != after:
                raise TypeError("optimizer update function produced an output structure that did "
                                f"not match its input structure: input {before} and output "
                                f"{after}.")
        return new

    return Optimizer(init_tree, update_tree, lambda state: state.tree_def.unflatten(
        [get_params(s) for s in _states(state)]))


def _packed(states: Sequence[State], tree: tree_util.PyTreeDef) -> OptimizerState:
    pairs = [tree_util.tree_flatten(state) for state in states]
    return OptimizerState(tuple(tuple(leaves) for leaves, _ in pairs), tree,
                          tuple(subtree for _, subtree in pairs))


def _states(state: OptimizerState) -> list[State]:
    return [subtree.unflatten(leaves) for subtree, leaves
            in zip(state.subtree_defs, state.packed_state, strict=True)]


# ── Optimizers ───────────────────────────────────────────────────────────────────────────────

Update = Callable[..., State]  # (step, gradient, x, *others) -> (x, *others)


def _of_update(make_update: Callable[..., Update]) -> Callable[..., Optimizer]:
    """An optimizer from its update: the state is the array, and others that are zero at first.

    These are the further parameters of the update; `make_update` gets the step size as a schedule.
    """
    @functools.wraps(make_update)
    def maker(step_size: Any, *args: Any, **kwargs: Any) -> LeafOptimizer:
        update = make_update(make_schedule(step_size), *args, **kwargs)
        others = len(inspect.signature(update).parameters) - 3  # besides step, gradient and x
        return (lambda x: (x, *[jnp.zeros_like(x)] * others),
                lambda i, g, state: update(i, g, *state), operator.itemgetter(0))
    return optimizer(maker)


@optimizer
def sgd(step_size: Any) -> LeafOptimizer:
    """Gradient descent.

    >>> init, update, get_params = sgd(0.1)
    >>> get_params(update(0, jnp.array([1., 2.]), init(jnp.array([1., 1.]))))
    Array([0.9, 0.8], dtype=float32)

    Args:
      step_size: a number, or a schedule: a function of the step's number.
    """
    size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - size(i) * g, lambda x: x


@_of_update
def momentum(step_size: Any, mass: float) -> Update:
    """Descent along a decaying sum of the gradients so far.

    >>> init, update, get_params = momentum(0.1, mass=0.5)
    >>> state = init(jnp.array([1.]))
    >>> for i in range(2): state = update(i, 1., state)
    >>> get_params(state)
    Array([0.75], dtype=float32)
    """
    def update(i: Step, g: Any, x: Any, velocity: Any) -> State:
        velocity = mass * velocity + g
        return x - step_size(i) * velocity, velocity

    return update


@_of_update
def nesterov(step_size: Any, mass: float) -> Update:
    """`momentum`, with the gradient added once more: Nesterov's look ahead.

    >>> init, update, get_params = nesterov(0.1, mass=0.5)
    >>> get_params(update(0, 1., init(jnp.array([1.]))))
    Array([0.85], dtype=float32)
    """
    def update(i: Step, g: Any, x: Any, velocity: Any) -> State:
        velocity = mass * velocity + g
        return x - step_size(i) * (mass * velocity + g), velocity

    return update


@_of_update
def adagrad(step_size: Any, momentum: float = 0.9) -> Update:
    """Steps divided by the root of the sum of all squared gradients, with momentum.

    >>> init, update, get_params = adagrad(0.1)
    >>> get_params(update(0, 5., init(jnp.array([1.]))))
    Array([0.99], dtype=float32)
    """
    def update(i: Step, g: Any, x: Any, squares: Any, velocity: Any) -> State:
        squares = squares + jnp.square(g)
        velocity = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * velocity
        return x - step_size(i) * velocity, squares, velocity

    return update


@_of_update
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Update:
    """Steps divided by the root of a decaying mean of squared gradients.

    >>> init, update, get_params = rmsprop(0.1, gamma=0.75)
    >>> get_params(update(0, 5., init(jnp.array([1.]))))
    Array([0.8], dtype=float32)
    """
    def update(i: Step, g: Any, x: Any, mean_square: Any) -> State:
        mean_square = mean_square * gamma + jnp.square(g) * (1.0 - gamma)
        return x - step_size(i) * g / jnp.sqrt(mean_square + eps), mean_square

    return update


@_of_update
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8,
                     momentum: float = 0.9) -> Update:
    """`rmsprop`, whose steps add up to a velocity.

    >>> init, update, get_params = rmsprop_momentum(0.1, gamma=0.75)
    >>> get_params(update(0, 5., init(jnp.array([1.]))))
    Array([0.8], dtype=float32)
    """
    def update(i: Step, g: Any, x: Any, mean_square: Any, velocity: Any) -> State:
        mean_square = mean_square * gamma + jnp.square(g) * (1.0 - gamma)
        velocity = momentum * velocity + step_size(i) * g / jnp.sqrt(mean_square + eps)
        return x - velocity, mean_square, velocity

    return update


@_of_update
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Update:
    """A decaying mean of gradients over the root of a decaying mean of their squares.

    Both means start at zero; dividing them by the sum of their weights removes this bias.

    >>> init, update, get_params = adam(0.1)
    >>> get_params(update(0, 5., init(jnp.array([1.])))).round(4)
    Array([0.9], dtype=float32)
    """
    def update(i: Step, g: Any, x: Any, mean: Any, mean_square: Any) -> State:
        mean = (1 - b1) * g + b1 * mean
        mean_square = (1 - b2) * jnp.square(g) + b2 * mean_square
        unbiased = mean / (1 - jnp.asarray(b1, mean.dtype) ** (i + 1))
        unbiased_square = mean_square / (1 - jnp.asarray(b2, mean.dtype) ** (i + 1))
        return x - step_size(i) * unbiased / (jnp.sqrt(unbiased_square) + eps), mean, mean_square

    return update


@_of_update
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Update:
    """`adam`, with the largest decayed gradient in place of the root of a mean of squares.

    >>> init, update, get_params = adamax(0.1)
    >>> get_params(update(0, 5., init(jnp.array([1.])))).round(4)
    Array([0.9], dtype=float32)
    """
    def update(i: Step, g: Any, x: Any, mean: Any, largest: Any) -> State:
        mean = (1 - b1) * g + b1 * mean
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        scale = step_size(i) / (1 - jnp.asarray(b1, mean.dtype) ** (i + 1))
        return x - scale * mean / (largest + eps), mean, largest

    return update


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> LeafOptimizer:
    """`adagrad` with one number for each row and column in its state, not one for each element.

    >>> init, update, get_params = sm3(0.1)
    >>> get_params(update(0, jnp.array([5.]), init(jnp.array([1.]))))
    Array([0.99], dtype=float32)
    """
    size = make_schedule(step_size)

    def init(x: Any) -> State:
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape or (1,)]

    def update(i: Step, g: Any, state: State) -> State:
        x, velocity, bounds = state
        others = [[a for a in range(len(bounds)) if a != axis] for axis in range(len(bounds))]
        least: Any = functools.reduce(jnp.minimum, map(jnp.expand_dims, bounds, others))
        squares = least + jnp.square(g)
        step: Any = jnp.reshape(g * _inverse_root(squares), x.shape)  # a scalar is treated as a row
        velocity = (1.0 - momentum) * step + momentum * velocity
        bounds = [jnp.max(squares, axis=axes) for axes in others]
        return x - size(i) * velocity, velocity, bounds

    return init, update, operator.itemgetter(0)


def _inverse_root(x: Any) -> Any:
    return jnp.where(x > 0, 1.0 / jnp.sqrt(x), 0.0)


# ── Schedules: the size of each step ─────────────────────────────────────────────────────────

def constant(step_size: ArrayLike) -> Schedule:
    """The same size always.

    >>> constant(0.1)(7)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: ArrayLike, decay_steps: ArrayLike,
                      decay_rate: ArrayLike) -> Schedule:
    """Multiplied by `decay_rate` every `decay_steps` steps, and smoothly in between.

    >>> exponential_decay(1.0, 10, 0.5)(20)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: ArrayLike, decay_steps: ArrayLike, decay_rate: ArrayLike,
                       staircase: bool = False) -> Schedule:
    """One over a line that rises by `decay_rate` every `decay_steps` steps.

    >>> inverse_time_decay(1.0, 10, 0.5)(20)
    0.5

    Args:
      staircase: whether it rises all at once at the end of these steps.
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: ArrayLike, decay_steps: ArrayLike, final_step_size: ArrayLike,
                     power: float = 1.0) -> Schedule:
    """From the first size to the final one in `decay_steps` steps, by a power of the steps left.

    >>> polynomial_decay(1.0, 10, 0.0)(5)
    Array(0.5, dtype=float32, weak_type=True)
    """
    def schedule(step_num: Step) -> Any:
        left = 1 - jnp.minimum(step_num, decay_steps) / decay_steps
        return left ** power * (step_size - final_step_size) + final_step_size
    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """One size up to each boundary, and the next one from there.

    >>> piecewise_constant([10, 20], [1.0, 0.5, 0.1])(15)
    Array(0.5, dtype=float32)
    """
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    refuse((boundaries.ndim != 1 or values.ndim != 1, "boundaries and values must be sequences"),
           (boundaries.size != values.size - 1, "boundaries length must be one shorter than values "
            f"length, but there are {boundaries.size} boundaries for {values.size} values"),
           error=ValueError)
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule unchanged; a number as a constant schedule.

    >>> make_schedule(0.1)(7), make_schedule(lambda i: i + 1)(7)
    (0.1, 8)
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


# ── Gradients as a whole ─────────────────────────────────────────────────────────────────────

def l2_norm(tree: Params) -> Array:
    """The Euclidean norm of all numbers of a tree together.

    >>> l2_norm({"a": jnp.array([3.]), "b": jnp.array(4.)})
    Array(5., dtype=float32)
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_util.tree_leaves(tree)))


def clip_grads(grad_tree: Params, max_norm: ArrayLike) -> Params:
    """The gradients; all scaled down by one factor if their joint norm is above `max_norm`.

    >>> clip_grads([jnp.array([3.]), jnp.array([4.])], 1.0)
    [Array([0.6], dtype=float32), Array([0.8], dtype=float32)]
    """
    norm = l2_norm(grad_tree)
    return tree_util.tree_map(
        lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


# ── States as trees, to be stored ────────────────────────────────────────────────────────────

class JoinPoint:
    """A leaf in the place of an array of the parameters, with the state of that array."""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Any:  # so that libraries that store trees descend into the state
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The tree of the parameters with a `JoinPoint`, which holds a state, for every array.

    >>> init, _, _ = momentum(0.1, 0.9)
    >>> unpack_optimizer_state(init({"w": jnp.ones(1)}))["w"].subtree
    (Array([1.], dtype=float32), Array([0.], dtype=float32))
    """
    return opt_state.tree_def.unflatten([JoinPoint(s) for s in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`.

    >>> init, _, get_params = momentum(0.1, 0.9)
    >>> stored = unpack_optimizer_state(init({"w": jnp.ones(1)}))
    >>> get_params(pack_optimizer_state(stored))
    {'w': Array([1.], dtype=float32)}
    """
    points, tree = tree_util.tree_flatten(marked_pytree)
    if not all(isinstance(point, JoinPoint) for point in points):
        raise TypeError("pack_optimizer_state takes what unpack_optimizer_state gave: a tree whose "
                        "leaves are JoinPoints.")
    return _packed([point.subtree for point in points], tree)
