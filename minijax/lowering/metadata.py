"""What LLVM may know about memory, as metadata: what is apart, which loops are parallel.

Stands on loops.py; llvm.py prints it. Chapter 24. In XLA: `llvm_ir::AliasAnalysis`.
"""

from __future__ import annotations

from .loops import Buffer, Kernel


class Metadata:
    """What LLVM may know about memory: which buffers are apart, which loops are parallel."""

    def __init__(self, kernel: Kernel) -> None:
        self.lines: list[str] = []
        self.ids: dict[str, str] = {}
        self.kernel = kernel
        self.scope_of = self.scopes(kernel)
        self.aliases: dict[Buffer, str] = {}

    def add(self, node: str) -> str:
        """Number a node; an equal node is written once (unless it is `distinct`)."""
        if node in self.ids and not node.startswith("distinct"):
            return self.ids[node]
        self.ids[node] = name = f"!{len(self.lines)}"
        self.lines.append(f"{name} = {node}")
        return name

    def scopes(self, kernel: Kernel) -> dict[Buffer, str]:
        """One alias scope per buffer that is written; what is only read shares one."""
        domain = self.add('!{!"buffers"}')
        read_only = self.add(f'!{{!"read only", {domain}}}')
        scopes = dict.fromkeys(kernel.inputs + kernel.constants, read_only)
        for buffer in kernel.outputs + kernel.temps:
            scopes[buffer] = self.add(f'!{{!"{len(scopes)}", {domain}}}')
        return scopes

    def access(self, buffer: Buffer, parallel: tuple[str, ...]) -> str:
        """What stands behind a load or store: where it may be, and in which parallel loops."""
        if buffer not in self.aliases:
            own = self.scope_of[buffer]
            apart = sorted({self.scope_of[other] for other in self.scope_of
                            if self.scope_of[other] != own and not self.overlap(buffer, other)})
            scope = self.add(f"!{{{own}}}")
            self.aliases[buffer] = f", !alias.scope {scope}"
            if apart:
                others = self.add("!{" + ", ".join(apart) + "}")
                self.aliases[buffer] += f", !noalias {others}"
        return self.aliases[buffer] + self.groups(parallel)

    def overlap(self, one: Buffer, other: Buffer) -> bool:
        """Whether two temps share bytes of the workspace; nothing else ever does."""
        if one.role != "temp" or other.role != "temp":
            return one is other
        offsets = self.kernel.offsets
        first, second = sorted((one, other), key=lambda temp: offsets[temp])
        return offsets[second] < offsets[first] + first.nbytes

    def groups(self, parallel: tuple[str, ...]) -> str:
        if not parallel:
            return ""
        group = parallel[0] if len(parallel) == 1 else self.add("!{" + ", ".join(parallel) + "}")
        return f", !llvm.access.group {group}"

    def group(self) -> str:
        """A new group of accesses: those of one parallel loop."""
        return self.add("distinct !{}")

    def loop(self, group: str, whole: bool) -> str:
        """What stands behind the branch that closes a loop.

        `group`: of its accesses, if those of all turns are independent; `whole`: it is not to be
        written out turn by turn before its turns can be taken side by side.
        """
        facts = [self.add(f'!{{!"llvm.loop.parallel_accesses", {group}}}')] if group else []
        facts += [self.add('!{!"llvm.loop.unroll.disable"}')] if whole else []
        if not facts:
            return ""
        identity = f"!{len(self.lines)}"
        together = ", ".join([identity, *facts])
        return f", !llvm.loop {self.add(f'distinct !{{{together}}}')}"
