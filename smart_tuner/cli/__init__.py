"""The smart-tuner command: one module a subcommand."""
