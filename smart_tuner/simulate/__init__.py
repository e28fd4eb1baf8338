"""PRETEND COMPILERS: for replay, tests and comparisons of samplers."""
