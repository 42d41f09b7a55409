"""How easily the package is read, in the figures of ``python -m scripts.survey_code``."""

import pytest

from scripts.survey_code import survey

pytestmark = pytest.mark.untraced  # it reads the sources

AT_MOST = {
    "constants below their first use": 0,
    "constructions with 6 and more positional arguments": 20,
    "loop variables called one": 60,
    "__init__ that only copies its arguments": 15,
    "rooms with more than 20 modules": 0,
}
"""The maximum of each figure."""


def test_the_figures_of_the_survey_stay_low() -> None:
    """No figure of the survey is above its maximum."""
    too_many = {
        name: places
        for name, places in survey().items()
        if len(places) > AT_MOST.get(name, len(places))
    }
    assert too_many == {}
