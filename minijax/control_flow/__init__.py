"""Branches and loops: `cond`, `scan`, `while_loop`, and their primitives."""
