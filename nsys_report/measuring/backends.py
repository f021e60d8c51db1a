"""The frameworks that can run the measuring kernels: JAX, CuPy and PyTorch, whichever is installed and sees a GPU.

A backend gives work as functions that queue it, and one that waits until all of it is done. No framework is a dependency.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

from nsys_report.errors import InputError

Work = Callable[[], Any]


class Backend(Protocol):
    """What the measurement needs of a framework. `product` gives None for a type that the framework cannot be held to."""

    name: str

    def device(self) -> str:
        """The GPU's name, as a capture will have it."""

    def read(self, byte_count: int) -> Work:
        """A sum over that many bytes."""

    def write(self, byte_count: int) -> Work:
        """A pass that fills that many bytes and reads next to none."""

    def copy(self, byte_count: int) -> Work:
        """A pass that reads half as many bytes as it is given and writes as many again."""

    def product(self, size: int, kind: str) -> Work | None:
        """A square matrix product on random data, operands of type bf16, tf32 or f32."""

    def wait(self, result: Any) -> None:
        """Returns when the work that gave `result` is done."""


class Jax:
    """JAX on its first GPU."""

    name = "JAX"

    def __init__(self) -> None:
        self.jax: Any = importlib.import_module("jax")
        self.jnp: Any = importlib.import_module("jax.numpy")
        self.gpu = self.jax.devices("gpu")[0]

    def device(self) -> str:
        return str(self.gpu.device_kind)

    def _ones(self, count: int) -> Any:
        return self.jax.device_put(self.jnp.ones((count,), self.jnp.float32), self.gpu)

    def read(self, byte_count: int) -> Work:
        values, total = self._ones(byte_count // 4), self.jax.jit(self.jnp.sum)
        return lambda: total(values)

    def write(self, byte_count: int) -> Work:
        fill: Work = self.jax.jit(lambda: self.jnp.zeros((byte_count // 4,), self.jnp.float32))
        return fill  # a memset: XLA's broadcasts are slower

    def copy(self, byte_count: int) -> Work:
        values, add = self._ones(byte_count // 8), self.jax.jit(lambda x: x + 1)
        return lambda: add(values)

    def product(self, size: int, kind: str) -> Work | None:
        precision = {"bf16": "default", "tf32": "tensorfloat32", "f32": "highest"}.get(kind)
        if precision is None:
            return None
        dtype = self.jnp.bfloat16 if kind == "bf16" else self.jnp.float32
        a, b = (self.jax.device_put(self.jax.random.normal(self.jax.random.key(n), (size, size), dtype), self.gpu) for n in (0, 1))
        multiply = self.jax.jit(lambda x, y: self.jnp.matmul(x, y, precision=precision))
        return lambda: multiply(a, b)

    def wait(self, result: Any) -> None:
        self.jax.block_until_ready(result)


class Torch:
    """PyTorch on its current CUDA device."""

    name = "PyTorch"

    def __init__(self) -> None:
        self.torch: Any = importlib.import_module("torch")
        if not self.torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no CUDA device")

    def device(self) -> str:
        return str(self.torch.cuda.get_device_name())

    def _ones(self, count: int) -> Any:
        return self.torch.ones(count, dtype=self.torch.float32, device="cuda")

    def read(self, byte_count: int) -> Work:
        values = self._ones(byte_count // 4)
        return lambda: values.sum()

    def write(self, byte_count: int) -> Work:
        target = self._ones(byte_count // 4)
        return lambda: target.fill_(2.0)

    def copy(self, byte_count: int) -> Work:
        source, target = self._ones(byte_count // 8), self._ones(byte_count // 8)
        return lambda: target.copy_(source)

    def product(self, size: int, kind: str) -> Work | None:
        if kind not in ("bf16", "tf32", "f32"):
            return None
        dtype = self.torch.bfloat16 if kind == "bf16" else self.torch.float32
        a, b = (self.torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))

        def multiply() -> Any:
            self.torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
            return a @ b

        return multiply

    def wait(self, result: Any) -> None:
        self.torch.cuda.synchronize()


class CuPy:
    """CuPy on its current device; its products cannot be held to bf16 or TF32, so only f32 is measured."""

    name = "CuPy"

    def __init__(self) -> None:
        self.cupy: Any = importlib.import_module("cupy")
        self.cupy.cuda.Device().use()

    def device(self) -> str:
        properties = self.cupy.cuda.runtime.getDeviceProperties(self.cupy.cuda.Device().id)
        return str(properties["name"].decode())

    def read(self, byte_count: int) -> Work:
        values = self.cupy.ones(byte_count // 4, self.cupy.float32)
        return lambda: values.sum()

    def write(self, byte_count: int) -> Work:
        target = self.cupy.ones(byte_count // 4, self.cupy.float32)
        return lambda: target.fill(2.0)

    def copy(self, byte_count: int) -> Work:
        source, target = (self.cupy.ones(byte_count // 8, self.cupy.float32) for _ in range(2))
        return lambda: self.cupy.copyto(target, source)

    def product(self, size: int, kind: str) -> Work | None:
        if kind != "f32":
            return None
        a, b = (self.cupy.random.standard_normal((size, size)).astype(self.cupy.float32) for _ in range(2))
        return lambda: a @ b

    def wait(self, result: Any) -> None:
        self.cupy.cuda.Device().synchronize()


BACKENDS: dict[str, Callable[[], Backend]] = {"jax": Jax, "cupy": CuPy, "torch": Torch}


def find_backend(wanted: str | None = None) -> Backend:
    """The first framework that is installed and sees a GPU, or the wanted one; InputError says why each one failed."""
    failures = []
    for name, make in BACKENDS.items():
        if wanted in (None, name):
            try:
                return make()
            except Exception as error:  # frameworks without a driver fail in their own ways: each is one more reason
                failures.append(f"{name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
    raise InputError(
        "no framework here can run work on a GPU (" + "; ".join(failures) + ")",
        "install JAX, CuPy or PyTorch with CUDA on the machine with the GPU, and measure there",
        slug="no-gpu",
    )
