"""What Jraph does: graphs as arrays, and networks on them."""

import jax
import jax.numpy as jnp
import jraph

GRAPH = jraph.GraphsTuple(
    nodes=jnp.array([[0.0], [1.0], [2.0]]), edges=jnp.array([[5.0], [6.0], [7.0]]),
    senders=jnp.array([0, 1, 2]), receivers=jnp.array([1, 2, 1]), n_node=jnp.array([3]),
    n_edge=jnp.array([3]), globals=jnp.array([[1.0]]))


def graphs_are_batched_and_padded():
    batch = jraph.batch([GRAPH, GRAPH])
    padded = jraph.pad_with_graphs(batch, 8, 9, 4)
    return (batch, padded, jraph.get_node_padding_mask(padded), jraph.unbatch(batch)[1].senders,
            jraph.unpad_with_graphs(padded).edges)


def a_graph_network_has_gradients():
    network = jraph.GraphNetwork(
        update_edge_fn=lambda e, s, r, g: jnp.tanh(e * 0.1 + s - r),
        update_node_fn=lambda n, s, r, g: n + s * 0.5 + r,
        update_global_fn=lambda n, e, g: g + n.sum() + e.sum())
    loss = jax.jit(lambda graph: jnp.sum(network(graph).globals ** 2))
    return network(GRAPH), jax.grad(lambda nodes: loss(GRAPH._replace(nodes=nodes)))(GRAPH.nodes)


def messages_are_weighed():
    attention = jraph.GAT(lambda n: n * 2, lambda s, r, e: s + r + 0.1 * e, lambda n: n)
    convolution = jraph.GraphConvolution(lambda n: n + 1, add_self_edges=True)
    return (attention(GRAPH).nodes, convolution(GRAPH).nodes,
            jraph.segment_softmax(jnp.arange(3.0), jnp.array([0, 0, 1]), 2))
