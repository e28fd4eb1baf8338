"""Confirming finalists on fresh builds, the verdict, and what ships."""
