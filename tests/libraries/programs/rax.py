"""What Rax does: losses and metrics of rankings."""

import jax
import jax.numpy as jnp
import rax

SCORES = jnp.array([2.2, -1.3, 5.4, 0.3])
LABELS = jnp.array([1.0, 0.0, 2.0, 0.0])
WHERE = jnp.array([True, True, True, False])


def losses_have_gradients():
    losses = [rax.softmax_loss, rax.listmle_loss, rax.pairwise_hinge_loss, rax.pointwise_mse_loss,
              rax.pairwise_logistic_loss, rax.poly1_softmax_loss]
    return [jax.value_and_grad(loss)(SCORES, LABELS, where=WHERE) for loss in losses]


def rankings_are_measured():
    return [metric(SCORES, LABELS, topn=topn) for topn in (2, None)
            for metric in (rax.ndcg_metric, rax.dcg_metric, rax.mrr_metric, rax.precision_metric,
                           rax.ap_metric)]
