"""`minijax.scipy.spatial.transform`: rotations of space as unit quaternions, and lines among them.

Builds on `numpy`.  In JAX: `jax/_src/scipy/spatial/transform.py`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import numpy as jnp
from minijax.core import Array, refuse
from minijax.numpy.arguments import ArrayLike
from minijax.transforms.prepared import export_all as _export_all

__all__ = ["Rotation", "Slerp"]


class Rotation(NamedTuple):
    """One rotation, or a stack of them: quaternions of length 1, with the real part last.

    >>> quarter = Rotation.from_euler("z", 90, degrees=True)
    >>> quarter.apply(jnp.array([1., 0., 0.])).round(3)
    Array([0., 1., 0.], dtype=float32)
    >>> (quarter * quarter).as_rotvec(degrees=True)
    Array([  0.,   0., 180.], dtype=float32)
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """The rotations of several stacks, in one."""
        return cls(jnp.concatenate([rotation.quat for rotation in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Rotations about one to three axes in turn.

        Args:
          seq: axes that stay, such as "xyz", or that turn along, such as "XYZ".
          angles: a number for one axis, or an array whose last axis has one for each.
          degrees: whether the angles are in degrees.

        Raises:
          ValueError: for other axes, or another number of angles.
        """
        axes = _axes(seq)
        return cls(_quaternion_of_angles(jnp.atleast_1d(angles), axes, seq.islower(), degrees))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Rotations with these orthogonal matrices, of shape (…, 3, 3)."""
        return cls(_quaternion_of_matrix(jnp.asarray(matrix)))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """Rotations with these Rodrigues parameters: an axis times the tangent of angle / 4."""
        return cls(_quaternion_of_parameters(jnp.asarray(mrp)))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """Rotations with these quaternions of any length, of shape (…, 4)."""
        return cls(_normalized(jnp.asarray(quat)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Rotations with these vectors, of shape (…, 3): an axis times the angle."""
        return cls(_quaternion_of_vector(jnp.asarray(rotvec), degrees))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation that moves nothing.

        Raises:
          AssertionError: for a number of them.
        """
        if num is not None:
            raise AssertionError("the identity is one rotation: broadcast it with `*`")
        return cls(jnp.array([0, 0, 0, 1], dtype))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """Refused, as in JAX.

        Raises:
          NotImplementedError: always, with what to call.
        """
        raise NotImplementedError("call Rotation.from_quat(jax.random.normal(key, (num, 4)))")

    def __getitem__(self, indexer: Any) -> Rotation:  # type: ignore[override]
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        """The rotation by `other`, and then by this one."""
        return Rotation(_product(self.quat, other.quat))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """The vectors, of shape (…, 3), turned, or turned back."""
        matrix = self.as_matrix()
        return jnp.matvec(matrix.mT if inverse else matrix, jnp.asarray(vectors))

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """The angles about three axes in turn, of shape (…, 3), from -pi to pi.

        Raises:
          ValueError: for other axes than three.
        """
        if len(seq) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        angles = _angles(self.quat, _axes(seq), seq.islower())
        return jnp.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Array:
        """The orthogonal matrices, of shape (…, 3, 3)."""
        return _matrix(self.quat)

    def as_mrp(self) -> Array:
        """The Rodrigues parameters, of shape (…, 3): an axis times the tangent of angle / 4."""
        quat = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return quat[..., :3] / (1 + quat[..., 3:])

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions, of shape (…, 4).

        Args:
          canonical: of the two for each rotation, that whose last number but zeros is positive,
            or if it is zero the first of the others.
          scalar_first: whether the real part is the first number.
        """
        quat = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def as_rotvec(self, degrees: bool = False) -> Array:
        """The vectors, of shape (…, 3): an axis times the angle, from 0 to pi."""
        vectors = _vector(self.quat)
        return jnp.rad2deg(vectors) if degrees else vectors

    def inv(self) -> Rotation:
        """The rotation back."""
        return Rotation(self.quat * jnp.array([-1, -1, -1, 1], self.quat.dtype))

    def magnitude(self) -> Array:
        """The angles, from 0 to pi."""
        length = jnp.linalg.norm(self.quat[..., :3], axis=-1)
        half: Any = jnp.arctan2(length, jnp.abs(self.quat[..., 3]))
        return 2 * half

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The rotation that is nearest to those of the stack, by the sum of squares.

        Args:
          weights: one for each rotation, instead of 1.

        Raises:
          ValueError: for another shape of the weights.
        """
        weights = jnp.ones(len(self), self.quat.dtype) if weights is None else jnp.asarray(weights)
        refuse((weights.ndim != 1,
                f"Expected `weights` to be 1 dimensional, got shape {weights.shape}."),
               (weights.size != len(self), "Expected `weights` to have number of values equal to "
                f"number of rotations, got {weights.size} values and {len(self)} rotations."),
               error=ValueError)
        _, vectors = jnp.linalg.eigh((weights * self.quat.T) @ self.quat)
        return Rotation.from_quat(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether this is one rotation, and no stack."""
        return self.quat.ndim == 1


class Slerp(NamedTuple):
    """Rotations at times between given ones: from one to the next at a constant speed.

    >>> turns = Rotation.from_euler("z", jnp.array([[0.], [90.]]), degrees=True)
    >>> Slerp.init([0, 1], turns)(0.5).as_rotvec(degrees=True).round()
    Array([ 0.,  0., 45.], dtype=float32)
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """The line through a stack of rotations at increasing times.

        Raises:
          TypeError: for other values than rotations.
          ValueError: for fewer than two, or another number of times.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError("`rotations` must be a `Rotation` instance.")
        if rotations.single or len(rotations) == 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = jnp.asarray(times, rotations.quat.dtype)
        refuse((times.ndim != 1, "Expected times to be specified in a 1 dimensional array, got "
                f"{times.ndim} dimensions."),
               (times.size != len(rotations), "Expected number of rotations to be equal to number "
                f"of timestamps given, got {len(rotations)} rotations and {times.size} "
                "timestamps."), error=ValueError)
        starts, ends = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), starts, (starts.inv() * ends).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at a time, or an array of times.

        Raises:
          ValueError: for an array of two axes or more.
        """
        times = jnp.asarray(times, self.times.dtype)
        if times.ndim > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        before = jnp.maximum(jnp.searchsorted(self.times, times) - 1, 0)
        fraction = (times - self.times[before]) / self.timedelta[before]
        step = Rotation.from_rotvec(self.rotvecs[before] * fraction[..., None])
        return Rotation(self.rotations.quat[before]) * step


# ── One rotation at a time ───────────────────────────────────────────────────────────────────

def _axes(seq: str) -> list[int]:
    """The axes of a word such as "xyz" or "ZXZ"."""
    refuse((not 1 <= len(seq) <= 3, "Expected axis specification to be a non-empty string of upto "
            f"3 characters, got {seq}"),
           (not set(seq) <= set("xyz") and not set(seq) <= set("XYZ"),
            f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}"),
           (any(a == b for a, b in itertools.pairwise(seq)),
            f"Expected consecutive axes to be different, got {seq}"), error=ValueError)
    return ["xyz".index(axis) for axis in seq.lower()]


def _normalized(quat: Any) -> Any:
    return quat / jnp.linalg.norm(quat, axis=-1, keepdims=True)


def _canonical(quat: Any) -> Any:
    """The quaternion or its negative: from the real part on, the first but zeros is positive."""
    sign = jnp.sign(quat)
    first = functools.reduce(lambda a, b: jnp.where(a == 0, b, a),
                             [sign[..., i:i + 1] for i in (3, 0, 1, 2)])
    return jnp.where(first < 0, -quat, quat)


@functools.partial(jnp.vectorize, signature="(m),(m)->(m)")
def _product(p: Any, q: Any) -> Any:
    imaginary = p[3] * q[:3] + q[3] * p[:3] + jnp.cross(p[:3], q[:3])
    return _normalized(jnp.append(imaginary, p[3] * q[3] - jnp.dot(p[:3], q[:3])))


@functools.partial(jnp.vectorize, signature="(m)->(n,n)")
def _matrix(quat: Any) -> Any:
    x, y, z, w = quat
    xx, yy, zz, ww = x * x, y * y, z * z, w * w
    return jnp.array([[xx - yy - zz + ww, 2 * (x * y - z * w), 2 * (x * z + y * w)],
                      [2 * (x * y + z * w), yy - xx - zz + ww, 2 * (y * z - x * w)],
                      [2 * (x * z - y * w), 2 * (y * z + x * w), zz - xx - yy + ww]])


@functools.partial(jnp.vectorize, signature="(m,m)->(n)")
def _quaternion_of_matrix(matrix: Any) -> Any:
    """A row of four times the product of the quaternion with itself: that with the largest part."""
    odd, trace = matrix - matrix.T, jnp.trace(matrix)
    real = jnp.stack([odd[2, 1], odd[0, 2], odd[1, 0]])
    imaginary = matrix + matrix.T + (1 - trace) * jnp.eye(3, dtype=matrix.dtype)
    products = jnp.block([[imaginary, real[:, None]], [real, 1 + trace]])
    return _normalized(products[jnp.argmax(jnp.append(jnp.diagonal(matrix), trace))])


@functools.partial(jnp.vectorize, signature="(m)->(n)")
def _quaternion_of_parameters(parameters: Any) -> Any:
    square = jnp.dot(parameters, parameters)
    return jnp.append(2 * parameters, 1 - square) / (1 + square)


@functools.partial(jnp.vectorize, signature="(m)->(n)", excluded={1})
def _quaternion_of_vector(vector: Any, degrees: bool) -> Any:
    vector = jnp.deg2rad(vector) if degrees else vector
    angle = jnp.linalg.norm(vector)
    series = 0.5 - angle**2 / 48 + angle**4 / 3840
    scale = jnp.where(angle <= 1e-3, series, jnp.sin(angle / 2) / angle)
    return jnp.append(scale * vector, jnp.cos(angle / 2))


@functools.partial(jnp.vectorize, signature="(m)->(n)")
def _vector(quat: Any) -> Any:
    quat = jnp.where(quat[3] < 0, -quat, quat)
    angle = 2 * jnp.arctan2(jnp.linalg.norm(quat[:3]), quat[3])
    series = 2 + angle**2 / 12 + 7 * angle**4 / 2880
    return jnp.where(angle <= 1e-3, series, angle / jnp.sin(angle / 2)) * quat[:3]


def _quaternion_of_angles(angles: Any, axes: list[int], fixed: bool, degrees: bool) -> Any:
    """The product of the rotations about each axis, in the order in which they turn vectors."""
    if angles.shape[-1] != len(axes):
        raise ValueError(f"Expected {len(axes)} angles along the last axis, one for each of "
                         f"`seq`, got shape {angles.shape}")
    angles = jnp.deg2rad(angles) if degrees else angles
    about = np.eye(3, dtype=jnp.result_type(angles, float) if angles.dtype.kind in "iub"
                   else angles.dtype)[axes]
    each = _quaternion_of_vector(angles[..., None] * about, False)
    turns = [each[..., i, :] for i in range(len(axes))]
    return functools.reduce(_product, turns[::-1] if fixed else turns)


def _angles(quat: Any, axes: list[int], fixed: bool) -> Any:
    """Bernardes' and Viollet's angles of a quaternion.

    With axes that turn along they are those of fixed ones in the other order.  Where only a sum
    or a difference of two angles has a meaning, one of them is 0.
    """
    first, second, third = axes if fixed else axes[::-1]
    symmetric = first == third
    third = 3 - first - second if symmetric else third
    sign = (first - second) * (second - third) * (third - first) // 2
    a, b, c, d = quat[..., 3], quat[..., first], quat[..., second], quat[..., third] * sign
    if not symmetric:
        a, b, c, d = a - c, b + d, c + a, d - b
    middle: Any = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    locked = jnp.where(jnp.abs(middle) <= 1e-7, 2 * half_sum,
                       2 * half_difference * (-1 if fixed else 1))
    free = (jnp.abs(middle) > 1e-7) & (jnp.abs(middle - np.pi) > 1e-7)
    ends = [jnp.where(free, half_sum - half_difference, locked if fixed else 0),
            jnp.where(free, half_sum + half_difference, 0 if fixed else locked)]
    if not symmetric:
        middle, ends[1] = middle - jnp.pi / 2, ends[1] * sign
    angles = jnp.stack([ends[0], middle, ends[1]][::1 if fixed else -1], axis=-1)
    return (angles + np.pi) % (2 * np.pi) - np.pi


_export_all(globals())
