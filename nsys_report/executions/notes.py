"""What a reader must know of the cut and the join before trusting them: ties, dumps that do not fit, ranges whose work is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hlo_mapping.dump.index import DumpIndex
from hlo_mapping.matching.confidence import GOOD_FIT, POOR_FIT
from hlo_mapping.matching.join import FoundExecution
from hlo_mapping.matching.join import Joined as Join


def join_notes(join: Join, dump: DumpIndex | None, without_work: Mapping[str, int]) -> tuple[str, ...]:
    """Sentences for the report, most important first."""
    notes = [*_misfits(join, dump), *_ties(join.executions)]
    for module, count in sorted(without_work.items()):
        notes.append(f"{count} annotated executions of {module} have no activity in the capture: their GPU records are missing")
    for program in join.programs.values():
        if program.problems and any(e.program is program for e in join.executions):
            notes.append(f"program {program.name} ({program.number}): {'; '.join(program.problems)}")
    return tuple(notes)


def _misfits(join: Join, dump: DumpIndex | None) -> list[str]:
    if dump is None:
        return []
    notes = []
    absent = Counter((e.module, e.number) for e in join.executions if e.program is None)
    for (module, number), count in absent.items():
        if number is None or number not in dump.numbers:
            notes.append(f"{count} executions of {module} (program {number}): the dump holds no module of that number; another run's dump?")
        elif (name := dump.name(number)) != module and not module.startswith(name):
            notes.append(f"{count} executions of {module} (program {number}): the dump's module {number} is {name}; another run's dump?")
        else:
            fit = min(e.fit or 0.0 for e in join.executions if (e.module, e.number) == (module, number))
            notes.append(
                f"{count} executions of {module} (program {number}) do not fit the dump's module of that name and number: "
                f"only {fit:.0%} of their launches are as it says; the dump is of another compilation, or the range's end was lost"
            )
    parts = (e for e in join.executions if e.program is not None and e.fit is not None and POOR_FIT <= e.fit < GOOD_FIT)
    for (module, number), count in Counter((e.module, e.number) for e in parts).items():
        said = f"fit the dump only in part (under {GOOD_FIT:.0%} of launches); their join is doubtful"
        notes.append(f"{count} executions of {module} (program {number}) {said}")
    return notes


def _ties(executions: tuple[FoundExecution, ...]) -> list[str]:
    ties = Counter((e.module, e.number, e.tied) for e in executions if e.tied)
    notes = []
    for (module, number, tied), count in ties.most_common(8):
        others = ", ".join(f"{name} ({n})" for name, n in tied[:4]) + (f" and {len(tied) - 4} more" if len(tied) > 4 else "")
        notes.append(f"{count} executions named {module} ({number}) could as well be of {others}: they launch the same sequence")
    return notes
