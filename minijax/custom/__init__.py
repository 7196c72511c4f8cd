"""Calls with rules of their own: custom derivatives, checkpoints, callbacks, solvers."""
