"""WHAT CAN BE TURNED: the knob database of a backend and the part of it to search."""
