"""TensorRT and TensorRT-RTX as compilers with knobs: engines for NVIDIA GPUs."""
