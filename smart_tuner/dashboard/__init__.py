"""Studies in optuna-dashboard: live, read-only, and with violators shown as such."""
