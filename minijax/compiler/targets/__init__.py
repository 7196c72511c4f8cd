"""Targets of loop trees besides the CPU: schedulers, printers, and devices that run them."""
