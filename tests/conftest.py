"""What all tests have in common."""

import os

# Tests start many hundred processes. Where byte code is switched off, each of them would compile
# the package from its sources first, which is an eighth of a child's start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
