"""Newton's method in a while_loop: Kepler's equation for many planets at once."""

import jax.numpy as jnp
from jax import grad, jit, jvp, lax, vmap


def newton(f, start, tolerance=1e-3, limit=50):
    """A root of `f`, and how many steps it took."""
    def not_done(state):
        x, last_step, count = state
        return (jnp.abs(last_step) > tolerance) & (count < limit)

    def improve(state):
        x, _, count = state
        step = f(x) / grad(f)(x)
        return x - step, step, count + 1

    root, _, count = lax.while_loop(not_done, improve, (start, jnp.inf, 0))
    return root, count


def eccentric_anomaly(mean_anomaly, eccentricity):
    """E such that E - e sin E = M."""
    return newton(lambda e: e - eccentricity * jnp.sin(e) - mean_anomaly,
                  mean_anomaly + eccentricity * jnp.sin(mean_anomaly))


def position(mean_anomaly, eccentricity):
    angle, _ = eccentric_anomaly(mean_anomaly, eccentricity)
    return jnp.array([jnp.cos(angle) - eccentricity,
                      jnp.sqrt(1 - eccentricity ** 2) * jnp.sin(angle)])


def main():
    square_root, steps = jit(lambda y: newton(lambda x: x * x - y, y))(2.0)
    anomalies = jnp.linspace(0.1, 3.0, 13)
    eccentricities = jnp.array([0.0167, 0.2056, 0.6])
    many = jit(vmap(vmap(eccentric_anomaly, (0, None)), (None, 0)))
    angles, counts = many(anomalies, eccentricities)
    velocity = jvp(lambda m: position(m, 0.2), (1.0,), (1.0,))
    return {"square root": square_root, "steps": steps, "angles": angles, "counts": counts,
            "velocity": velocity}


if __name__ == "__main__":
    print(main())
