"""Advice of the library in the words of the shell: options in the place of Python."""

from __future__ import annotations

import re

__all__ = ["at_shell"]

# What an error of the library advises, and what somebody at a shell does instead. Errors come from
# below the command line, which cannot know its options; tests/cli/test_questions.py raises each.
_ADVICE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(advised), instead)
    for advised, instead in (
        (
            r"(feature '([^']*)' has no range, .*) Give it one with Bounds or Features, or take "
            r"all ranges from a table with constraints=within_data\(X\)",
            r"\1 Give it one with --bounds '\2=LOW:HIGH', or take all ranges from a table with "
            r"--within TABLE",
        ),
        (
            r"expected an AtMost among the constraints, such as AtMost\(2\), or a Manhattan cost",
            "expected a limit, such as --at-most 2, or --cost manhattan or mad",
        ),
        (
            r"(ranges [^.]* know no confidence)\. Ask an explainer without one for the ranges",
            r"\1. Leave out --confidence, or --ranges",
        ),
        (
            r"and Plausible states ellipsoids\. Ask an explainer without it for the ranges, or "
            r"about single values with explain",
            "and --plausible states ellipsoids. Leave out --plausible, or --ranges",
        ),
        (
            r"(ranges are for shared metrics, .*) Ask for a margin instead, or about single values "
            r"with explain",
            r"\1 Leave out --ranges; --confidence margin=0.5 asks for answers with some room",
        ),
        (
            r"(is for columns of numbers that the model sees as they are, .*)\. Ask for "
            r"RelativeSimilarity or for a margin instead, or a model of the numbers alone",
            r"\1. Ask for --confidence similarity=0.3 or margin=0.5 instead",
        ),
        (
            r"(Probability (?:is for two classes|needs a model) .*) Ask for a margin instead",
            r"\1 Ask for --confidence margin=0.5 instead",
        ),
        (
            r"((?:Noise|Drift|drift|a drift) .*) Ask for a margin instead",
            r"\1 Ask for --confidence margin=0.5 instead",
        ),
        (
            r"(ranges are for columns .*); give the explainer columns that are transformed already",
            r"\1. Leave out --ranges",
        ),
    )
)


def at_shell(text: str) -> str:
    """Say what an error advises to do in Python as options of the command line."""
    for advised, instead in _ADVICE:
        text = advised.sub(instead, text)
    return text
