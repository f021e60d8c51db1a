"""Clients of servers: KServe v2 with Triton's generate extension, and OpenAI's completions. Each request notes when its tokens came.

https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_generate.md, docs/protocol/extension_statistics.md
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from nsys_report.errors import InputError

TIMEOUT_S = 600.0
WORD = "the "
"""A prompt of n tokens is this word n times over, after a word of its own: about a token each, and no two prompts alike."""
DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Times in ns of the monotonic clock; `failed` says what went wrong, "" for nothing."""

    stream: int
    sent_ns: int
    arrivals_ns: tuple[int, ...]
    """When each piece of the answer came."""
    finished_ns: int
    tokens: int
    is_counted: bool
    """Whether the server said how many tokens it made; else each piece is taken for one."""
    failed: str = ""


class Driver(Protocol):
    """Sends one request and waits for its end."""

    def send(self, stream: int, number: int, prompt_tokens: int, output_tokens: int) -> Request:
        """The request number of a stream."""

    def statistics(self) -> dict[str, Any] | None:
        """The server's own sums so far, None where it keeps none."""

    def is_ready(self) -> bool:
        """Whether it takes requests."""

    def close(self) -> None:
        """Lets go of its connections."""


@dataclass(slots=True)
class _Http:
    """What both kinds of server have in common."""

    url: str
    model: str
    client: Any = field(init=False)

    def __post_init__(self) -> None:
        try:
            import httpx
        except ImportError as error:
            raise InputError("httpx is not installed", "pip install 'nsys-report[serve]'", slug="no-httpx") from error
        self.client = httpx.Client(base_url=self.url, timeout=TIMEOUT_S, limits=httpx.Limits(max_connections=None), trust_env=False)

    def close(self) -> None:
        """Lets go of its connections."""
        self.client.close()

    def _is_ready(self, path: str) -> bool:
        try:
            return bool(self.client.get(path, timeout=2.0).status_code == 200)
        except Exception:  # not there yet, in whichever way
            return False

    def _stream(self, stream: int, path: str, body: dict[str, Any]) -> Request:
        """Posts, and reads server-sent events; an answer in one piece is one arrival."""
        sent = time.monotonic_ns()
        arrivals: list[int] = []
        counted: int | None = None
        failed = ""
        try:
            with self.client.stream("POST", path, json=body) as answer:
                if answer.status_code != 200:
                    failed = f"status {answer.status_code}: {answer.read()[:200].decode(errors='replace')}"
                for event in _events(answer.iter_lines()) if not failed else ():
                    failed = failed or str(event.get("error") or "")
                    if _text(event):
                        arrivals.append(time.monotonic_ns())
                    counted = _tokens(event) or counted
        except Exception as error:  # httpx has many; each is a request that failed, and no more
            failed = f"{type(error).__name__}: {error}"
        tokens = counted if counted is not None else len(arrivals)
        return Request(stream, sent, tuple(arrivals), time.monotonic_ns(), tokens, counted is not None, failed)


class KServe(_Http):
    """A KServe v2 server with Triton's generate extension; streaming, and in one piece where the model does not stream."""

    streams: bool = True

    def is_ready(self) -> bool:
        return self._is_ready(f"/v2/models/{self.model}/ready")

    def send(self, stream: int, number: int, prompt_tokens: int, output_tokens: int) -> Request:
        body = {
            "text_input": _prompt(stream, number, prompt_tokens),
            "parameters": {"max_tokens": output_tokens, "stream": True, "ignore_eos": True},
        }
        return self._stream(stream, f"/v2/models/{self.model}/generate_stream", body)

    def statistics(self) -> dict[str, Any] | None:
        try:
            answer = self.client.get(f"/v2/models/{self.model}/stats")
            found = answer.json()["model_stats"][0] if answer.status_code == 200 else None
        except Exception:
            return None
        return found if isinstance(found, dict) else None


class OpenAI(_Http):
    """A server of /v1/completions."""

    def is_ready(self) -> bool:
        return self._is_ready("/v1/models")

    def send(self, stream: int, number: int, prompt_tokens: int, output_tokens: int) -> Request:
        body = {
            "model": self.model,
            "prompt": _prompt(stream, number, prompt_tokens),
            "max_tokens": output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "ignore_eos": True,
        }
        return self._stream(stream, "/v1/completions", body)

    def statistics(self) -> dict[str, Any] | None:
        return None


DRIVERS: dict[str, type[KServe] | type[OpenAI]] = {"kserve": KServe, "openai": OpenAI}


def _prompt(stream: int, number: int, tokens: int) -> str:
    return f"{stream}.{number} " + WORD * (tokens - 1)


def _events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The JSON of server-sent events, or of a plain answer."""
    for line in lines:
        text = line.removeprefix("data:").strip()
        if not text.startswith("{"):
            continue
        try:
            event = json.loads(text)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _text(event: dict[str, Any]) -> bool:
    """Whether an event brings a piece of the answer."""
    choices = event.get("choices")
    return bool(event.get("text_output")) or bool(choices and choices[0].get("text"))


def _tokens(event: dict[str, Any]) -> int | None:
    usage = event.get("usage")
    return int(usage["completion_tokens"]) if isinstance(usage, dict) and "completion_tokens" in usage else None
