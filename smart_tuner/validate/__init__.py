"""HOW RIGHT: accuracy losses against the reference, and epsilon."""
