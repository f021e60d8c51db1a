"""Clients of servers: KServe v2 with tensors or with Triton's generate extension, and OpenAI's completions.

Each request notes when its answer came, piece by piece. The protocols: https://kserve.github.io/website, "Open Inference Protocol (V2)";
https://github.com/triton-inference-server/server/tree/main/docs/protocol, extension_generate.md and extension_statistics.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from nsys_report.errors import InputError
from nsys_report.serving.prompts import prompt, tensor

TIMEOUT_S = 600.0


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
    """Whether the server said how many tokens it made; else each piece is taken for one, and no piece of tensors for any."""
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
    request: Mapping[str, Any] = field(default_factory=dict)
    """The user's own fields of a request's body, over those that the driver sets."""
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
            with self.client.stream("POST", path, json={**body, **self.request}) as answer:
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


@dataclass(slots=True)
class _V2(_Http):
    """What servers of the v2 protocol have in common."""

    inputs: list[dict[str, Any]] | None = None
    """The model's inputs by its own metadata, asked for once."""

    def is_ready(self) -> bool:
        return self._is_ready(f"/v2/models/{self.model}/ready")

    def model_inputs(self) -> list[dict[str, Any]]:
        """Name, datatype and shape of each input; none where the server does not say."""
        if self.inputs is None:
            try:
                answer = self.client.get(f"/v2/models/{self.model}")
                found = answer.json().get("inputs") if answer.status_code == 200 else None
            except Exception:
                found = None
            self.inputs = [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
        return self.inputs

    def statistics(self) -> dict[str, Any] | None:
        try:
            answer = self.client.get(f"/v2/models/{self.model}/stats")
            found = answer.json()["model_stats"][0] if answer.status_code == 200 else None
        except Exception:
            return None
        return found if isinstance(found, dict) else None


class Generate(_V2):
    """Triton's generate extension; streaming, and in one piece where the model does not stream.

    What the model takes as an input stands in the body itself, the rest among its parameters: TensorRT-LLM's models have an input
    max_tokens, vLLM's take it as a parameter.
    """

    def send(self, stream: int, number: int, prompt_tokens: int, output_tokens: int) -> Request:
        wanted = {"max_tokens": output_tokens, "stream": True, "ignore_eos": True}
        names = {entry.get("name") for entry in self.model_inputs()}
        given = {name: value for name, value in wanted.items() if name in names}
        parameters = {name: value for name, value in wanted.items() if name not in names}
        body = {"text_input": prompt(stream, number, prompt_tokens), **given, "parameters": parameters}
        return self._stream(stream, f"/v2/models/{self.model}/generate_stream", body)


class Infer(_V2):
    """Tensors of the v2 protocol, for models of any kind: each input as the model's metadata says it.

    Open sizes are 1, but for the last, which is the prompt's tokens. Whole numbers are drawn from 0 and 1, and text is a prompt.
    """

    def send(self, stream: int, number: int, prompt_tokens: int, output_tokens: int) -> Request:
        try:
            body = {"inputs": [tensor(entry, stream, number, prompt_tokens) for entry in self.model_inputs()]}
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            now = time.monotonic_ns()
            return Request(stream, now, (), now, 0, False, f"the model's inputs cannot be made: {error}")
        sent, failed = time.monotonic_ns(), ""
        try:
            answer = self.client.post(f"/v2/models/{self.model}/infer", json={**body, **self.request})
            if answer.status_code != 200:
                failed = f"status {answer.status_code}: {answer.text[:200]}"
        except Exception as error:  # as above
            failed = f"{type(error).__name__}: {error}"
        done = time.monotonic_ns()
        return Request(stream, sent, () if failed else (done,), done, 0, True, failed)


class OpenAI(_Http):
    """A server of /v1/completions."""

    def is_ready(self) -> bool:
        return self._is_ready("/v1/models")

    def send(self, stream: int, number: int, prompt_tokens: int, output_tokens: int) -> Request:
        body = {
            "model": self.model,
            "prompt": prompt(stream, number, prompt_tokens),
            "max_tokens": output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "ignore_eos": True,
        }
        return self._stream(stream, "/v1/completions", body)

    def statistics(self) -> dict[str, Any] | None:
        return None


DRIVERS: dict[str, type[Generate] | type[Infer] | type[OpenAI]] = {"kserve": Generate, "infer": Infer, "openai": OpenAI}


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
