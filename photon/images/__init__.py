"""Encoded pictures to RGB: bytes or a path in, one oriented 8-bit RGB picture out. No model knowledge, no torch."""
