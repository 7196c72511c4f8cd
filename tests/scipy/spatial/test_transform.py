"""Rotations are JAX's: from each form to each form, their products, means and lines."""

import jax.scipy.spatial.transform  # noqa: F401
import pytest

R = "jax.scipy.spatial.transform.Rotation"
SLERP = "jax.scipy.spatial.transform.Slerp.init"
QUATERNIONS = ("jnp.array([[1., 2, 3, 4], [0, 0, 0, 1], [-1, 2, -3, -.5], [1, 0, 0, 0], "
               "[0, -2, 3, 0.5], [1e-5, 0, 0, 1], [-1, 2, 3, 0]])")
STACK = f"{R}.from_quat({QUATERNIONS})"
ONE = f"{STACK}[0]"


@pytest.mark.parametrize("form", [
    "as_matrix()", "as_mrp()", "as_quat()", "as_quat(True)", "as_quat(True, True)", "as_rotvec()",
    "as_rotvec(degrees=True)", "inv()", "magnitude()", "as_euler('xyz')", "as_euler('zyx', True)",
    "as_euler('XZY')", "as_euler('yxy')", "as_euler('ZXZ')", "apply(jnp.array([1., 2, 3]))",
    "apply([1, 2, 3], inverse=True)", "single", "as_matrix().dtype"])
def test_forms_of_a_rotation(form, agrees_with_jax):
    agrees_with_jax(f"{STACK}.{form}", 1e-5, 2e-5)
    agrees_with_jax(f"{ONE}.{form}", 1e-5, 2e-5)


@pytest.mark.parametrize("expression", [
    "from_quat([1, 2, 3, 4])", "from_quat(jnp.ones(4, 'bfloat16'))", "from_quat(jnp.zeros(4))",
    "from_matrix(jnp.ones((3, 3)))", "from_matrix(jnp.eye(3, dtype=int))", "identity()",
    *(f"from_matrix({STACK}.as_matrix()[:{n}])" for n in (0, 4)), "identity(dtype=int)",
    f"from_matrix({ONE}.as_matrix())", "from_mrp([1, 2, 3])", "from_mrp(f / 9)",
    "from_rotvec([1, 2, 3])", "from_rotvec(f * 1e-4)", "from_rotvec([90., 0, 0], True)",
    "from_euler('z', 90, True)", "from_euler('xyz', f)", "from_euler('XZX', f[0])",
    "from_euler('yx', jnp.array([30, 40]), degrees=True)", "from_euler('yx', jnp.arange(3.))",
    *(f"from_euler('{seq}', jnp.array([.3, {middle}, .4])).as_matrix()"
      for seq in ("xyz", "ZYX", "xyx") for middle in (0., "jnp.pi / 2")),
    *(f"from_euler('{seq}', jnp.array([.3, {middle}, .4])).as_euler('{seq}')"
      for seq, middle in (("xyx", 0.), ("YZY", 0.))),
    "from_euler('xYz', f)", "from_euler('xxy', f)", "from_euler('', f)", "from_euler('xyzx', f)",
    "from_euler('z', [1.])", "random(jax.random.key(0))", "identity(2)",
    "from_quat(jnp.array([0., -2, 3, 0])).as_quat(True)", f"concatenate([{STACK}, {STACK}])"])
def test_rotations_of_each_form(expression, agrees_with_jax):
    agrees_with_jax(f"{R}.{expression}", 1e-5)


@pytest.mark.parametrize("expression", [
    f"{STACK} * {STACK}[::-1]", f"{ONE} * {STACK}", f"{ONE} * {ONE}", f"{STACK}[1:3]",
    f"len({STACK})", f"len({ONE})", f"{ONE}[0]", f"{STACK}.mean().as_matrix()",
    f"{STACK}.mean(jnp.arange(7.)).as_matrix()", f"{STACK}.mean(v)", f"{STACK}.mean(f)",
    f"{ONE}.as_euler('xy')", f"{ONE}.as_euler('xxy')", f"{ONE}.as_euler('aBc')",
    f"{SLERP}(jnp.arange(7.), {STACK})([-1., 0, .5, 2, 2.25, 6, 7])",
    f"{SLERP}(jnp.arange(7), {STACK})(3.5)", f"{SLERP}(jnp.arange(7), {STACK})",
    f"{SLERP}(jnp.arange(7), {STACK})([[1.]])", f"{SLERP}(v, {STACK})", f"{SLERP}(0, {STACK})",
    f"{SLERP}([0], {ONE})", f"{SLERP}(v, 3)"])
def test_products_means_and_lines(expression, agrees_with_jax):
    agrees_with_jax(expression, 1e-5)


@pytest.mark.parametrize("expression", [
    f"jax.jit(lambda r: r.inv())({STACK})", f"jax.vmap(lambda r: r.as_rotvec())({STACK})",
    f"jax.tree.map(jnp.negative, {ONE})",
    f"jax.grad(lambda v: {R}.from_rotvec(v).as_euler('xyz').sum())(f[0])",
    f"jax.jacobian(lambda v: {R}.from_rotvec(v).apply(v[::-1]))(f[0])"])
def test_rotations_under_transformations(expression, agrees_with_jax):
    agrees_with_jax(expression, 1e-4)
