"""The search: an Optuna sampler for categorical spaces with a default, usable on its own."""
