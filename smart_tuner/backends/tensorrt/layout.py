"""Where the elements of a tensor lie in its buffer: in C order, or in one of the SDK's formats."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.errors import RunError

if TYPE_CHECKING:
    import numpy.typing as npt

    from smart_tuner.backends.tensorrt import api
    from smart_tuner.backends.tensorrt.elements import Element

    Array = npt.NDArray[np.generic]
    Bytes = npt.NDArray[np.uint8]
    Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A tensor's place in a buffer.

    Attributes:
        element: Type of the elements.
        shape: Shape of the tensor.
        strides: Distance of neighbours along each dimension, in vectors of ``components``
            elements; empty for C order.
        vector_axis: The dimension that is cut into vectors; meaningless with one component.
        components: Elements of a vector.
    """

    element: Element
    shape: Shape
    strides: Shape = ()
    vector_axis: int = 0
    components: int = 1

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer."""
        count = math.prod(self.shape)
        if self.strides and count:
            grid = self._grid()
            reach = sum((size - 1) * step for size, step in zip(grid, self.strides, strict=True))
            count = (reach + 1) * self.components
        return -(-count * self.element.bits // 8)

    def write(self, array: Array, data: Bytes) -> None:
        """Put an array of this type and shape into a buffer."""
        if not self.strides:
            data[: self.nbytes] = self.element.pack(array)
            return
        grid, axis = self._grid(), self.vector_axis
        padded = [*self.shape]
        padded[axis] = grid[axis] * self.components
        filled = np.zeros(padded, self.element.numpy)
        filled[self._inside()] = array
        split = filled.reshape(*grid[: axis + 1], self.components, *grid[axis + 1 :])
        self._vectors(data)[...] = np.moveaxis(split, axis + 1, -1)

    def read(self, data: Bytes) -> Array:
        """Return a copy of the array that a buffer holds."""
        count = math.prod(self.shape)
        if not self.strides or not count:
            return self.element.unpack(data[: self.nbytes], count).reshape(self.shape)
        grid, axis = self._grid(), self.vector_axis
        padded = [*self.shape]
        padded[axis] = grid[axis] * self.components
        joined = np.moveaxis(self._vectors(data), -1, axis + 1).reshape(padded)
        return joined[self._inside()].copy()

    def _grid(self) -> Shape:
        """Number of vectors along each dimension."""
        grid = [*self.shape]
        grid[self.vector_axis] = -(-grid[self.vector_axis] // self.components)
        return tuple(grid)

    def _inside(self) -> tuple[slice, ...]:
        """The tensor inside its padding."""
        return tuple(slice(size) for size in self.shape)

    def _vectors(self, data: Bytes) -> Array:
        """The buffer with a vector at each place of the grid, along a last dimension."""
        size = self.element.numpy.itemsize
        flat = data[: self.nbytes].view(self.element.numpy)
        steps = [step * self.components * size for step in self.strides]
        return np.lib.stride_tricks.as_strided(
            flat, (*self._grid(), self.components), (*steps, size)
        )


def layout_of(
    engine: api.CudaEngine, context: api.ExecutionContext, name: str, element: Element
) -> Layout:
    """Where an engine expects the elements of a tensor whose shape is known.

    Raises:
        RunError: Elements of less than a byte do not lie in C order.
    """
    shape = tuple(context.get_tensor_shape(name))
    vector_axis = engine.get_tensor_vectorized_dim(name)
    components = engine.get_tensor_components_per_element(name) if vector_axis >= 0 else 1
    strides = tuple(context.get_tensor_strides(name))
    if components <= 1 and (strides == _c_order(shape) or not math.prod(shape)):
        return Layout(element, shape)
    if element.bits < 8:
        msg = f"{name}: {element.dtype} is supported in C order only"
        raise RunError(msg)
    return Layout(element, shape, strides, max(0, vector_axis), max(1, components))


def _c_order(shape: Shape) -> Shape:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
