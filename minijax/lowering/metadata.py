"""What LLVM may know about memory, as metadata: what is apart, which loops are parallel.

Stands on loops.py; llvm.py prints it. Chapter 24. In XLA: `llvm_ir::AliasAnalysis`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from .loops import Buffer


class Metadata:
    """What LLVM may know about memory: which buffers are apart, which loops are parallel.

    `offsets` says where in the workspace the temps among the buffers lie.
    """

    def __init__(self, buffers: Iterable[Buffer], offsets: Mapping[Buffer, int]) -> None:
        self.lines: list[str] = []
        self.ids: dict[str, str] = {}
        self.offsets = offsets
        self.aliases: dict[Buffer, str] = {}
        # One alias scope per buffer that is written; what is only read shares one.
        domain = self.add('!{!"buffers"}')
        read_only = self.add(f'!{{!"read only", {domain}}}')
        self.scope_of = {
            buffer: self.add(f'!{{!"{n}", {domain}}}') if buffer.role in ("output", "temp")
            else read_only for n, buffer in enumerate(buffers)}

    def add(self, node: str) -> str:
        """Number a node; an equal node is written once (unless it is `distinct`)."""
        if node in self.ids and not node.startswith("distinct"):
            return self.ids[node]
        self.ids[node] = name = f"!{len(self.lines)}"
        self.lines.append(f"{name} = {node}")
        return name

    def take_in(self, text: str, other: Metadata) -> str:
        """Number the nodes of another text behind those of this one; return the text as renumbered.
        """
        count = len(self.lines)

        def renumbered(line: str) -> str:
            return re.sub(r"!(\d+)", lambda match: f"!{count + int(match[1])}", line)
        self.lines += map(renumbered, other.lines)
        return renumbered(text)

    def access(self, buffer: Buffer, parallel: tuple[str, ...]) -> str:
        """What stands behind a load or store: where it may be, and in which parallel loops."""
        if buffer not in self.aliases:
            own = self.scope_of[buffer]
            apart = sorted({scope for other, scope in self.scope_of.items()
                            if scope != own and not self.overlap(buffer, other)})
            scope = self.add(f"!{{{own}}}")
            self.aliases[buffer] = f", !alias.scope {scope}"
            if apart:
                others = self.add("!{" + ", ".join(apart) + "}")
                self.aliases[buffer] += f", !noalias {others}"
        if not parallel:
            return self.aliases[buffer]
        group = parallel[0] if len(parallel) == 1 else self.add("!{" + ", ".join(parallel) + "}")
        return f"{self.aliases[buffer]}, !llvm.access.group {group}"

    def overlap(self, one: Buffer, other: Buffer) -> bool:
        """Whether two temps share bytes of the workspace; nothing else ever does."""
        if one.role != "temp" or other.role != "temp":
            return one is other
        first, second = sorted((one, other), key=lambda temp: self.offsets[temp])
        return self.offsets[second] < self.offsets[first] + first.nbytes

    def loop(self, group: str, facts: Sequence[str]) -> str:
        """What stands behind the branch that closes a loop.

        `group`: of its accesses, if those of all turns are independent; `facts`: others, in LLVM's
        words.
        """
        nodes = [self.add(f'!{{!"llvm.loop.parallel_accesses", {group}}}')] if group else []
        nodes += [self.add(f"!{{{fact}}}") for fact in facts]
        if not nodes:
            return ""
        identity = f"!{len(self.lines)}"
        together = ", ".join([identity, *nodes])
        return f", !llvm.loop {self.add(f'distinct !{{{together}}}')}"
