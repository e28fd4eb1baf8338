"""WHICH SEARCH IS BEST: samplers compared on pretend compilers, under one protocol."""
