"""What XLA's ranges say of instructions: the names of those whose launch they stand around."""

from __future__ import annotations

import numpy as np

from hlo_mapping.dump.program import Program
from hlo_mapping.matching import confidence
from hlo_mapping.matching.agreement import holds
from hlo_mapping.matching.alike import Pieces
from hlo_mapping.matching.judgements import Judgements
from hlo_mapping.matching.plans import Plans
from hlo_mapping.matching.result import NONE, Annotations


class AnnotatedNames:
    """The rows of which a range names the instruction, by program, and how they are told."""

    def __init__(self, annotations: Annotations, plans: Plans, judged: Judgements) -> None:
        self.annotations, self.plans, self.judged = annotations, plans, judged
        self.rows: dict[int, list[np.ndarray]] = {}

    def knows(self, program: Program | None, said: np.ndarray) -> bool:
        """Whether a program has the instructions that annotations name: then it is the one, however badly its schedule fits."""
        names = [self.annotations.instructions[c] for c in np.unique(said[said >= 0]).tolist()]
        if program is None or program.module is None or not names:
            return False
        return sum(program.module.instruction(n) is not None for n in names) >= confidence.GOOD_FIT * len(names)

    def keep(self, rows: np.ndarray, said: np.ndarray, pieces: Pieces, number: np.ndarray) -> None:
        """Keeps, by program, the rows whose instruction a range names."""
        for group, at in pieces.blocks():
            hit = said[at] >= 0
            owner = np.repeat(number[group], pieces.length[group])[hit]
            for one in np.unique(owner).tolist():
                self.rows.setdefault(one, []).append(rows[at[hit][owner == one]])

    def write(self) -> None:
        """Gives rows the instruction that a range names; but where the inner range was lost and the schedule knows better, that one."""
        for number, parts in self.rows.items():
            self._write(number, np.concatenate(parts))

    def _write(self, number: int, rows: np.ndarray) -> None:
        program = self.plans.programs.get(number)
        known = list(self.judged.codes)
        pairs = self.annotations.instruction[rows].astype(np.int64) * (len(known) + 1) + self.judged.instruction[rows] + 1
        distinct, of_row = np.unique(pairs, return_inverse=True)
        codes = []
        for said, after in (divmod(pair, len(known) + 1) for pair in distinct.tolist()):
            name = self.annotations.instructions[said]
            inner = known[after - 1][1] if after > 0 else None
            within = program is not None and program.module is not None and inner is not None and holds(program.module, name, inner)
            codes.append(NONE if within else self.judged.code(number, name))
        named = np.array(codes, np.int64)[of_row]
        chosen = rows[named >= 0]
        self.judged.instruction[chosen] = named[named >= 0]
        self.judged.method[chosen] = confidence.NVTX
        self.judged.confidence[chosen] = confidence.SURE[confidence.NVTX]
