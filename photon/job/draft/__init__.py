"""A first manifest for data that nobody has described yet."""
