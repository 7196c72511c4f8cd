"""PageRank by power iteration over a list of links, with scatter-add; some pages link nowhere."""

import jax
import jax.numpy as jnp
from jax import lax, random

PAGES, LINKS = 60, 300


def page_rank(source, target, weights, damping=0.85, tolerance=1e-5):
    out_weight = jnp.zeros(PAGES).at[source].add(weights)
    share = weights / out_weight[source]

    def flow(rank):
        received = jnp.zeros(PAGES).at[target].add(rank[source] * share)
        stranded = jnp.sum(jnp.where(out_weight == 0, rank, 0.0))
        return (1 - damping) / PAGES + damping * (received + stranded / PAGES)

    def unsettled(state):
        rank, before, rounds = state
        return (jnp.sum(jnp.abs(rank - before)) > tolerance) & (rounds < 100)

    def improve(state):
        rank, _, rounds = state
        return flow(rank), rank, rounds + 1

    uniform = jnp.full(PAGES, 1 / PAGES)
    rank, _, rounds = lax.while_loop(unsettled, improve, (uniform, jnp.zeros(PAGES), 0))
    return rank, rounds, flow


def main():
    keys = random.split(random.PRNGKey(8), 3)
    source = random.randint(keys[0], (LINKS,), 0, PAGES - 5)
    # few pages are linked to by many, as on the web
    target = jnp.minimum(12 * random.exponential(keys[1], (LINKS,)), PAGES - 1).astype(int)
    weights = jnp.ones(LINKS)
    rank, rounds = jax.jit(lambda *links: page_rank(*links)[:2])(source, target, weights)
    best, pages = lax.top_k(rank, 5)

    def rank_of_best(w):
        _, _, flow = page_rank(source, target, w)
        return flow(flow(flow(jnp.full(PAGES, 1 / PAGES))))[pages[0]]

    return {"rank": rank, "rounds": rounds, "best": best, "pages": pages,
            "influence": jax.grad(rank_of_best)(weights)}


if __name__ == "__main__":
    print(main())
