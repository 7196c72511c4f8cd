"""What stands under everything: caches, contexts, where in the user's program we are, trees."""
