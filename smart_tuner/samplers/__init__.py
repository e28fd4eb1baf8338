"""WHICH ROUTE NEXT: Optuna samplers, by name."""
