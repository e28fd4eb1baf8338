"""WHAT IS TUNED: the model file, its shapes, the workload, the reference pairs."""
