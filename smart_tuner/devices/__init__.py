"""WHERE IT RUNS: processors, their quota and load, and the lock that serialises measurement."""
