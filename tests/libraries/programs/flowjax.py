"""What FlowJAX does: distributions, bijections, and flows that are fitted."""

import equinox as eqx
import jax
import jax.numpy as jnp
from flowjax.bijections import Affine, Chain, Exp, RationalQuadraticSpline
from flowjax.distributions import Normal, StandardNormal, Transformed
from flowjax.flows import coupling_flow

KEY = jax.random.key(3)


def a_distribution_is_transformed():
    bijection = Chain([Affine(jnp.ones(2), 2 * jnp.ones(2)), Exp((2,))])
    lognormal = Transformed(StandardNormal((2,)), bijection)
    x = lognormal.sample(KEY, (3,))
    return x, lognormal.log_prob(x), Normal(jnp.arange(3.0)).log_prob(jnp.ones(3))


def a_spline_is_inverted():
    spline = RationalQuadraticSpline(knots=4, interval=2)
    y, log_det = spline.transform_and_log_det(jnp.array(0.7))
    return y, log_det, spline.inverse(y)


def a_flow_has_gradients():
    flow = coupling_flow(KEY, base_dist=StandardNormal((2,)), flow_layers=2, nn_width=4)
    x = jnp.array([[0.1, -0.4], [1.0, 0.3]])

    @eqx.filter_jit
    def step(flow):
        return eqx.filter_value_and_grad(lambda flow: -flow.log_prob(x).mean())(flow)
    value, gradients = step(flow)
    return value, jax.tree.leaves(eqx.filter(gradients, eqx.is_array))[-2:], flow.sample(KEY, (2,))
