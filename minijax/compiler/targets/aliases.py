"""Alias metadata for LLVM's optimiser: which accesses of a launch are independent.

Builds on loops.py; ptx.py prints it. Chapter 27. In XLA: `llvm_ir::AliasAnalysis`.
"""

from collections.abc import Iterable, Mapping

from ..loops import Buffer
from ..memory import overlap


class Metadata:
    """The numbered metadata nodes of a module."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, str] = {}

    def add(self, node: str) -> str:
        """The name of a node; equal nodes are shared."""
        if node not in self.names:
            self.names[node] = f"!{len(self.lines)}"
            self.lines.append(f"{self.names[node]} = {node}")
        return self.names[node]


class Aliases:
    """Alias scopes of a launch's buffers: all are disjoint, except temps that share bytes.

    `offsets` are those of the temps in the workspace.
    """

    def __init__(self, metadata: Metadata, buffers: Iterable[Buffer],
                 offsets: Mapping[Buffer, int]) -> None:
        self.metadata, self.offsets = metadata, offsets
        self.nodes: dict[Buffer, str] = {}
        # One alias scope per written buffer; read-only buffers share one.
        domain = metadata.add('!{!"buffers"}')
        names = {x: k if x.role in ("output", "temp") else -1 for k, x in enumerate(buffers)}
        self.scopes = {x: metadata.add(f'!{{!"{k}", {domain}}}') for x, k in names.items()}

    def access(self, buffer: Buffer) -> str:
        """The metadata of a load or store: its alias scopes."""
        if buffer.role == "local":  # on the stack
            self.nodes[buffer] = ""
        elif buffer not in self.nodes:
            own = self.scopes[buffer]
            apart = sorted({scope for other, scope in self.scopes.items()
                            if scope != own and not overlap(buffer, other, self.offsets)})
            others = self.metadata.add(f"!{{{', '.join(apart)}}}")
            self.nodes[buffer] = f", !alias.scope !{{{own}}}, !noalias {others}"
        return self.nodes[buffer]
