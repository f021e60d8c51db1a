"""Opens and closes the profiler's window from inside a program: by counted executions of its jitted functions, or where it says so.

Stands alone: the program that is profiled may run in an environment without this package, on an older Python.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib.abc
import importlib.util
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

SPEC = "NSYS_REPORT_WINDOW"
"""Environment variable: `steps=20,skip=10,module=jit_train_step`; without it only compilations are counted."""
LOG = "NSYS_REPORT_WINDOW_LOG"
"""Environment variable: where to write what was seen; `{pid}` stands for the process."""
EVENTS = {
    "/jax/compilation_cache/cache_hits": "cache_hits",
    "/jax/compilation_cache/cache_misses": "cache_misses",
}
COMPILE = "/jax/core/compile/backend_compile_duration"
"""Events of jax.monitoring (jax/_src/compiler.py, jax/_src/dispatch.py)."""


class Profiler:
    """cuProfilerStart and cuProfilerStop of the CUDA driver, which nsys takes as the bounds of a capture (-c cudaProfilerApi)."""

    def __init__(self) -> None:
        try:
            self._cuda: Any = ctypes.CDLL("libcuda.so.1")
        except OSError:
            self._cuda = None

    def start(self) -> None:
        self._call("cuProfilerStart")

    def stop(self) -> None:
        self._call("cuProfilerStop")

    def _call(self, name: str) -> None:
        """Waits for the work of every device in use, so that no execution is cut, then calls."""
        if self._cuda is None:
            return
        held = [device for device in range(self._count()) if self._is_active(device)]
        for device in held:
            self._within(device, self._cuda.cuCtxSynchronize)
        if held:
            self._within(held[0], getattr(self._cuda, name))
        else:
            getattr(self._cuda, name)()

    def _count(self) -> int:
        number = ctypes.c_int(0)
        self._cuda.cuDeviceGetCount(ctypes.byref(number))
        return number.value

    def _is_active(self, device: int) -> bool:
        """Whether this process has the device's primary context, which JAX and PyTorch use; another is never made."""
        flags, active = ctypes.c_uint(0), ctypes.c_int(0)
        failed = self._cuda.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
        return not failed and bool(active.value)

    def _within(self, device: int, call: Any) -> None:
        context = ctypes.c_void_p()
        if self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
            return
        self._cuda.cuCtxPushCurrent_v2(context)
        try:
            call()
        finally:
            self._cuda.cuCtxPopCurrent_v2(ctypes.byref(context))
            self._cuda.cuDevicePrimaryCtxRelease_v2(device)


class Window:
    """Counts executions by program, and opens the window after `skip` of one and closes it `steps` later.

    Without a program's name the first that has run `skip` times is the one. The window closes before the call that follows its last
    step, so that what the host does after a step is inside; or when the program ends.
    """

    def __init__(self, steps: int, skip: int, module: str, profiler: Any) -> None:
        self.steps, self.skip, self.module, self.profiler = steps, skip, module.rstrip("_"), profiler
        self.counts: dict[str, int] = {}
        self.state = "before"
        self.seen: dict[str, Any] = {}
        self._lock = threading.Lock()

    def before(self, name: str) -> None:
        """Called before each execution of a program."""
        if self.state == "after":
            return
        with self._lock:
            done = self.counts.get(name, 0)
            self.counts[name] = done + 1
            if self.state == "before" and done >= self.skip and self.module in ("", name):
                self.module = name
                self.open()
            elif self.state == "open" and name == self.module and done >= self.skip + self.steps:
                self.close()

    def open(self) -> None:
        self.profiler.start()
        self.state, self.seen["opened_s"] = "open", time.time()

    def close(self) -> None:
        if self.state == "open":
            self.profiler.stop()
            self.state, self.seen["closed_s"] = "after", time.time()
            self.seen["steps"] = min(self.steps, self.counts.get(self.module, 0) - self.skip)


class Seen:
    """What jax.monitoring tells of compiling, and when."""

    def __init__(self) -> None:
        self.compiles: list[float] = []
        self.compile_s = 0.0
        self.counts = dict.fromkeys(EVENTS.values(), 0)

    def event(self, name: str, **_: Any) -> None:
        if name in EVENTS:
            self.counts[EVENTS[name]] += 1

    def duration(self, name: str, seconds: float, **_: Any) -> None:
        if name == COMPILE:
            self.compiles.append(time.time())
            self.compile_s += seconds


class Counted:
    """A jitted function that tells the window of each execution, and is the function in everything else."""

    def __init__(self, jitted: Any, name: str, window: Window, is_tracing: Any) -> None:
        functools.update_wrapper(self, jitted, updated=())
        self._jitted, self._name, self._window, self._is_tracing = jitted, name, window, is_tracing

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._is_tracing():
            self._window.before(self._name)
        return self._jitted(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name in ("_jitted", "_name", "_window", "_is_tracing"):
            raise AttributeError(name)  # not yet set: while being copied or unpickled
        return getattr(self._jitted, name)


def module_name(function: Any) -> str:
    """The name that XLA gives the program of a jitted function (jax/_src/interpreters/mlir.py, sanitize_name)."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", "") or "unknown"
    return ("jit_" + re.sub(r"[^\w.-]", "_", name)).rstrip("_")


def parse(spec: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in spec.split(",") if "=" in part)


def install(environment: Mapping[str, str]) -> None:
    """Hooks JAX when the program imports it; a program that never does is left alone."""
    spec = parse(environment.get(SPEC, ""))
    window = None
    if "steps" in spec:
        window = Window(int(spec["steps"]), int(spec.get("skip", 0)), spec.get("module", ""), Profiler())
    if window is None and not environment.get(LOG):
        return
    sys.meta_path.insert(0, _AfterImport("jax", lambda jax: _hook(jax, window, environment.get(LOG, ""))))


def _hook(jax: Any, window: Window | None, log: str) -> None:
    seen = Seen()
    jax.monitoring.register_event_listener(seen.event)
    jax.monitoring.register_event_duration_secs_listener(seen.duration)
    if window is not None:
        _count_calls(jax, window)
    atexit.register(_finish, jax, window, seen, log.replace("{pid}", str(os.getpid())))


def _count_calls(jax: Any, window: Window) -> None:
    from jax._src import core  # type: ignore[import-not-found, unused-ignore]

    is_tracing, jit, call = (lambda: not core.trace_state_clean()), jax.jit, jax.stages.Compiled.__call__

    @functools.wraps(jit)
    def counted_jit(*args: Any, **kwargs: Any) -> Any:
        made = jit(*args, **kwargs)
        if not args and "fun" not in kwargs:  # jax.jit(static_argnums=0), to be applied as a decorator
            return lambda function: Counted(made(function), module_name(function), window, is_tracing)
        return Counted(made, module_name(args[0] if args else kwargs["fun"]), window, is_tracing)

    def counted_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        window.before(_compiled_name(self))
        return call(self, *args, **kwargs)

    jax.jit, jax.stages.Compiled.__call__ = counted_jit, counted_call


def _compiled_name(compiled: Any) -> str:
    """The program's name of what jit(f).lower(...).compile() gave; asked once of each."""
    name = compiled.__dict__.get("_nsys_report_name") if hasattr(compiled, "__dict__") else None
    if name is None:
        try:
            name = str(compiled.runtime_executable().hlo_modules()[0].name).rstrip("_")
            compiled._nsys_report_name = name
        except Exception:
            name = name or "unknown"
    return name


def _finish(jax: Any, window: Window | None, seen: Seen, log: str) -> None:
    if window is not None:
        window.close()
    if not log:
        return
    found: dict[str, Any] = {
        "jax": getattr(jax, "__version__", None),
        "jaxlib": getattr(sys.modules.get("jaxlib"), "__version__", None),
        "python": sys.version.split()[0],
        "compiles": len(seen.compiles),
        "compile_s": round(seen.compile_s, 3),
        **seen.counts,
    }
    if window is not None:
        opened, closed = window.seen.get("opened_s"), window.seen.get("closed_s")
        inside = sum(opened <= t <= closed for t in seen.compiles) if opened and closed else 0
        found.update(window=window.seen, window_module=window.module, window_state=window.state, compiles_in_window=inside)
        found["executions"] = dict(sorted(window.counts.items(), key=lambda item: -item[1])[:50])
    with open(log, "w", encoding="utf-8") as file:
        json.dump(found, file)


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls `then` with a module once it has been imported."""

    def __init__(self, name: str, then: Any) -> None:
        self.name, self.then, self._busy = name, then, False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != self.name or self._busy:
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._busy = False
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
            try:
                self.then(module)
            except Exception as error:  # another JAX than this was made for: the program runs on, unobserved
                print(f"nsys-report: executions are not counted: {type(error).__name__}: {error}", file=sys.stderr)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def bracket(items: Iterator[Any], steps: int, skip: int, profiler: Any) -> Iterator[Any]:
    """Yields the items, the profiler running from before item `skip` to the request for item `skip + steps`, or to the end."""
    is_open = False
    try:
        for number, item in enumerate(items):
            if number in (skip, skip + steps):
                is_open = number == skip
                (profiler.start if is_open else profiler.stop)()
            yield item
    finally:
        if is_open:
            profiler.stop()
