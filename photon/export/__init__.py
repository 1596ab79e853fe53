"""A run's answers in the forms of other tools, and reviewed ones back. One format is one file; nothing is pushed."""
