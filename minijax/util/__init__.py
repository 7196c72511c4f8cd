"""Helpers of all rings: caches, contexts, source info, trees."""
