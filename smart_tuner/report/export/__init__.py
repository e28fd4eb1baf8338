"""A winner in the form that other tools take."""
