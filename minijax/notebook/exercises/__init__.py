"""The exercises of the course, one file for each chapter; every file here is found by itself.

Stands on `checks`.  It holds the solutions, too: look there last.
"""
