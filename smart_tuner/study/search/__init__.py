"""Asking for routes and trying them until the budget is spent."""
