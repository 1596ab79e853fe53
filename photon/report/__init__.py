"""A run's answers to look at: rows with their pictures read again, answers drawn on them, and a sheet of those."""
