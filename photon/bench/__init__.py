"""Measurements that ship with the program: what this machine makes of our code, in one run against a plain version."""
