"""HLO text without the names that people gave.

Parameters become Arg_N; words that neither XLA nor JAX makes names of become others; metadata, source tables, frontend attributes,
shardings and what a custom call was configured with are gone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hlo_mapping.text.vocabulary import Renamer

_CUT = re.compile(r",? ?(?:metadata|frontend_attributes|sharding|origin|original_value|statistics)=\{")
_TABLES = re.compile(r"\n(?:FileNames|FunctionNames|FileLocations|StackFrames)\n.*?(?=\n\n|\Z)", re.DOTALL)
_HEADER = re.compile(r"(HloModule )([^\s,]+)")
_HEADER_NAMES = re.compile(r", (?:debug_attributes|origin_recovery_table)=\{")
_PARAMETER = re.compile(r"^ +(?:ROOT )?%?([\w.\-]+) = [^\n]*? parameter\((\d+)\)", re.MULTILINE)
_DEFINED = re.compile(r"^(?: *(?:ROOT )?%?([\w.\-]+) = |(?:ENTRY )?%?([\w.\-]+) (?:\(.*)?\{ *$)", re.MULTILINE)
_SIGNATURE = re.compile(r"([\w.\-]+): (?=\(*\w+\[)")
_MARKED = re.compile(r"^ +(?:ROOT )?%", re.MULTILINE)
_TOKEN = re.compile(r"(?<![\w.\-])[\w.\-]*\w")
_COMMENT = re.compile(r"/\*(?!index=\d+\*/).*?\*/", re.DOTALL)
_CONFIG = re.compile(r",? ?backend_config=(?=[{\"\[])")
_TARGET = re.compile(r'custom_call_target="((?:\\.|[^"\\])*)"')
_TEXT = re.compile(r'(?<![\w.\-])((?!custom_call_target)\w+)="(?:\\.|[^"\\])*"')
_AXIS = re.compile(r"'([^'\n]+)'")
_LIBRARY = ("__cub$", "__cublas", "__cudnn", "__cufft", "__gpu$", "cublas_", "cudnn_", "cufft_", "cusolver_", "xla.gpu.", "xla_ffi_")
"""How the targets of calls begin that XLA and JAX make themselves."""
_KERNEL_NAME = re.compile(r'\bname = "((?:\\.|[^"\\])*)"')
_INTEGERS = re.compile(r"\b(?:grid_[xyz]|num_warps|num_stages) = -?\d+ : i\d+")


def without_names(text: str, module: str | None = None, rename: Renamer | None = None) -> str:
    """An HLO module without people's names; `module` is its new name, None to leave it. Shapes, dataflow, aliases and opcodes stay.

    `rename` gives words their new ones; a dump's files and its capture share it, so that names that belong together still do.
    """
    rename = rename or Renamer()
    text = _TABLES.sub("", _without_braces(_without_braces(text, _CUT), _HEADER_NAMES))
    names = new_names(text, rename)
    text = _COMMENT.sub("", _configured(text, rename))
    if module is not None:
        text = _HEADER.sub(lambda match: match[1] + module, text, count=1)
    text = _TARGET.sub(lambda match: match[0] if match[1].startswith(_LIBRARY) else f'custom_call_target="{rename(match[1])}"', text)
    text = _TEXT.sub(lambda match: f'{match[1]}=""' if match[1] != "name" else match[0], text)
    text = _AXIS.sub(lambda match: f"'{rename(match[1])}'", text)
    return renamed(text, names, marked=bool(_MARKED.search(text)))


def new_names(text: str, rename: Renamer) -> dict[str, str]:
    """The new name of each instruction, computation and parameter of an HLO text whose name changes, by the old one."""
    found = {name: rename(name) for pair in _DEFINED.findall(text) for name in pair if name}
    found |= {name: rename(name) for line in text.split("\n") if line.endswith("{") for name in _SIGNATURE.findall(line)}
    found |= parameter_names(text)
    return {old: new for old, new in found.items() if old != new}


def parameter_names(text: str) -> dict[str, str]:
    """The new name of each parameter of the entry computation, by the old one."""
    entry = text[text.index("\nENTRY ") :].split("\n}")[0] if "\nENTRY " in text else ""
    return {name: f"Arg_{number}" for name, number in _PARAMETER.findall(entry)}


def renamed(text: str, names: Mapping[str, str], marked: bool = False) -> str:
    """A text in which whole names are replaced; where they are `marked`, only behind % and in signatures, before a colon."""

    def new(match: re.Match[str]) -> str:
        name = names.get(match[0])
        if name is None or text.startswith("=", match.end()):  # an attribute of that name
            return match[0]
        is_name = not marked or text.startswith("%", match.start() - 1) or text.startswith(": ", match.end())
        return name if is_name else match[0]

    return _TOKEN.sub(new, text) if names else text


def _configured(text: str, rename: Renamer) -> str:
    """A text in which configurations that XLA wrote stay, and of those of custom calls the sizes and the kernel's new name."""
    pieces, at = [], 0
    for match in _CONFIG.finditer(text):
        if match.start() < at:
            continue
        end = _closing(text, match.end() + 1) if text[match.end()] != '"' else _quoted(text, match.end())
        pieces += [text[at : match.start()], _kept_config(text, match, end, rename)]
        at = end
    return "".join(pieces) + text[at:]


def _kept_config(text: str, match: re.Match[str], end: int, rename: Renamer) -> str:
    """What stays of the configuration that a match begins: all of XLA's own, of others the kernel's new name and its launch sizes."""
    target = _TARGET.search(text, text.rfind("\n", 0, match.start()) + 1, match.start())
    config = text[match.end() : end]
    if config.startswith(('{"', "{}", "{ ")) and (target is None or target[1].startswith(_LIBRARY)):
        return match[0] + config
    if not config.startswith("{"):
        return ""
    name = _KERNEL_NAME.search(config)
    kept = [*_INTEGERS.findall(config), *([f'name = "{rename(name[1])}"'] if name else [])]
    return f"{match[0]}{{{', '.join(kept)}}}" if kept else ""


def _without_braces(text: str, begins: re.Pattern[str]) -> str:
    """A text without what a pattern begins, up to the brace that closes it; braces within quotes do not count."""
    pieces, at = [], 0
    for match in begins.finditer(text):
        if match.start() < at:
            continue
        pieces.append(text[at : match.start()])
        at = _closing(text, match.end())
    return "".join(pieces) + text[at:]


_BRACE = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\]]', re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)


def _closing(text: str, at: int) -> int:
    """The place behind the brace that closes the one before `at`; the end of the text where none does."""
    depth = 1
    for found in _BRACE.finditer(text, at):
        depth += {"{": 1, "}": -1, "[": 1, "]": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    return len(text)


def _quoted(text: str, at: int) -> int:
    """The place behind a quoted string."""
    found = _STRING.match(text, at)
    return found.end() if found else len(text)
