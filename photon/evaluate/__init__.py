"""How right a run's answers are: read from its output folder, held against truth, told as figures. Changes no row."""
