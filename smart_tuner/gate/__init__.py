"""THE GATE OF A PIPELINE: is retuning due, is what ships still right, is it slower than before."""
