"""POST /test/{testId}/preflight: a stored mail with records that are not published yet."""

import json
from typing import Any

import pytest

from mailcheck.operations.deliverability.preflight import MAX_RECORDS
from tests.table import rows
from tests.web.scored_house import ScoredHouse

DMARC = {"name": "_dmarc.sender.example", "type": "TXT", "value": "v=DMARC1; p=reject"}


@pytest.fixture
def scored(scored: ScoredHouse) -> ScoredHouse:
    """The zone has no DMARC record of the sender."""
    scored.zone.publish("_dmarc.sender.example", "TXT")
    return scored


def test_a_preflight_shows_what_a_record_would_do(scored: ScoredHouse) -> None:
    """The report assumes that the record is published. It is marked as preflight and not stored."""
    test_id, before = scored.scored()
    assert before["score"] == 9.0
    answer = scored.post(f"/test/{test_id}/preflight", json={"records": [DMARC]})
    assert (answer.status, answer.json["score"], answer.json["preflight"]) == (200, 10.0, True)
    assert answer.json["records"] == [DMARC]
    assert answer.json["testId"] == test_id
    assert answer.json["checks"]["dmarc"]["policy"] == "reject"
    assert scored.get(test_id) == before


def body(*records: Any) -> bytes:
    """Encode records as a request body."""
    return json.dumps({"records": list(records)}).encode()


BAD_BODIES: list[tuple[bytes, str]] = [
    (b"", "the body is not JSON"),
    (b"{", "the body is not JSON"),
    (b'{"records": [NaN]}', "the body is not JSON"),
    (b"\xff", "the body is not JSON"),
    (b"[" * 30_000, "the body is not JSON"),
    (b'{"records": 1' + b"0" * 5_000 + b"}", "the body is not JSON"),
    (b"[]", "the body is not a JSON object"),
    (b"{}", "records is missing"),
    (b'{"records": {}}', f"records must be a list of 1 to {MAX_RECORDS} objects"),
    (body(), f"records must be a list of 1 to {MAX_RECORDS} objects"),
    (body(*[DMARC] * (MAX_RECORDS + 1)), f"a list of 1 to {MAX_RECORDS} objects"),
    (body(DMARC, "a"), "records[1] must be an object"),
    (body({"name": "a.example", "type": "TXT"}), "records[0]: value is missing"),
    (body({**DMARC, "value": 7}), "records[0]: value must be a string"),
    (body({**DMARC, "value": ["x"]}), "records[0]: value must be a string"),
    (body({**DMARC, "name": "\ud800.example"}), "records[0]: name contains a NUL"),
    (body({**DMARC, "value": "a\0b"}), "records[0]: value contains a NUL"),
    (body({**DMARC, "value": " "}), "records[0].value is missing"),
    (body({**DMARC, "value": "x" * 8_001}), "records[0]: value must have at most 8000 characters"),
    (
        body(DMARC, {**DMARC, "type": "SOA"}),
        "records[1]: type must be TXT, A, AAAA, MX, CNAME, ",
    ),
    (body({**DMARC, "type": "txt"}), "records[0]: type must be TXT, "),
    (body({**DMARC, "ttl": 60}), "records[0]: 'ttl' is not a field of the body"),
    (
        b'{"domain": "a.example", "records": []}',
        "'domain' is not a field",
    ),
    (body({**DMARC, "name": "a b.example"}), "records[0].name"),
    (body({"name": "a.example", "type": "A", "value": "1.2.3"}), "records[0].value"),
    (body(DMARC, {**DMARC, "type": "CNAME", "value": "b.example"}), "records"),
]


@rows(*BAD_BODIES)
def test_a_bad_body_is_explained(scored: ScoredHouse, raw: bytes, error: str) -> None:
    """An invalid body is 400 with a sentence that names the record and the field."""
    test_id = scored.generate()
    answer = scored.post(f"/test/{test_id}/preflight", data=raw)
    assert answer.status == 400
    assert error in answer.json["error"]
