"""What ``benchmarks/gpu_day.py`` measures and how, one section of the day a file."""
