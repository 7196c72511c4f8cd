"""The columns: one transformation per file; none of them names a primitive."""
