"""Judges every response that a test gets by what SPEC.md and DECISIONS.md promise."""

from typing import Any


def judge_response(method: str, path: str, answer: Any) -> None:
    """Fail when a response breaks the contract."""
