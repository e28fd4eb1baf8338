"""WHAT WE FOUND: the terminal, the one-page report, trials as JSON lines."""
