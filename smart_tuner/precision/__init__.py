"""KNOBS ON THE GRAPH: regions of an ONNX graph, each with an element type of its own."""
