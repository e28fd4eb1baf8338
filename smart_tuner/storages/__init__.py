"""WHERE IT IS KEPT: the Optuna journal, and how a trial is told."""
