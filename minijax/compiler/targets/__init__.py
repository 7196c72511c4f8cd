"""Where loop trees run besides the CPU: how they are scheduled there, and what runs them."""
