"""The session as a value that travels: small when pickled, and the same when it arrives."""

from __future__ import annotations

import pickle

import pytest

from nsys_report.reports.export import json_text
from tests.nsys_report.pages import analyzed

MOST_BYTES = 200_000
"""Of four thousand activities: what is compressed is 175 kB of them; with its derived columns and parsed programs it was 3.7 MB."""


def test_four_thousand_activities_travel_in_two_hundred_kilobytes() -> None:
    session = analyzed("while_decode_nocb")
    assert len(session.joined.activities) == 4052
    assert len(pickle.dumps(session)) < MOST_BYTES


@pytest.mark.parametrize("name", ["decode", "train", "torch_mlp"])
def test_what_arrives_says_what_was_sent(name: str) -> None:
    sent = analyzed(name)
    arrived = pickle.loads(pickle.dumps(sent))
    assert type(arrived) is type(sent)
    assert json_text(arrived.report()) == json_text(sent.report())
    assert arrived.joined.programs == sent.joined.programs
    assert arrived.joined.activities.equals(sent.joined.activities)
    assert arrived.results.view.duration.tolist() == sent.results.view.duration.tolist()
    assert len(arrived._repr_html_()) == len(sent._repr_html_())
