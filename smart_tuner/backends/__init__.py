"""One folder a backend, found by entry point and imported by nobody."""
