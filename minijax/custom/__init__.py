"""Functions with custom rules: custom derivatives, checkpoints, callbacks, solvers."""
