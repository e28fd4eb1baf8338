"""What all tests have in common: processes that start fast, since they start many hundred."""

import os

# Where byte code is switched off, each process would compile the package from its sources first.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# The library behind numpy's matrix products starts a thread for each processor, used or not.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
