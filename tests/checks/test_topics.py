"""The table of topics: why each topic matters, and further reading."""

from mailcheck.checks.findings import Area
from mailcheck.checks.quality.receivers import load_receivers
from mailcheck.checks.quality.topics import load_topics, topic_of, topic_of_finding
from mailcheck.checks.scoring.outcomes import FactorName
from mailcheck.web.dashboard.domains.view import MECHANISMS
from tests.table import rows

JUDGED = [*MECHANISMS, *(one.value for one in (*FactorName, *Area))]


@rows(*JUDGED)
def test_every_topic_has_one_sentence(name: str) -> None:
    """Each mechanism, factor and area says in one sentence why it matters."""
    why = topic_of(name).why
    assert why.endswith(".")
    assert ". " not in why


def test_links_lead_to_standards_and_to_receivers() -> None:
    """Links lead only to RFCs and to the pages of the receivers' rules."""
    known = {one.source for one in load_receivers()}
    urls = {link.url for topic in load_topics().values() for link in topic.links}
    assert all(url in known or url.startswith("https://www.rfc-editor.org/rfc/rfc") for url in urls)
    assert known <= urls


def test_people_read_of_blocklists() -> None:
    """JSON's "blacklist" is called blocklist in all texts for people."""
    texts = [text for one in load_topics().values() for text in (one.heading, one.why)]
    assert topic_of("Blacklists").title == "Blocklists"
    assert not any("blacklist" in text.lower() for text in texts)


def test_findings_have_the_topic_of_their_area() -> None:
    """Findings about the sending host count for SPF, but have separate topics."""
    assert topic_of_finding("spf.result-fail", "spf") is topic_of("spf")
    assert topic_of_finding("rdns.absent", "spf") is topic_of("Reverse DNS")
    assert topic_of_finding("helo.unresolvable", "spf").title == "HELO name"
    assert topic_of_finding("dkim.unsigned", "dkim") is topic_of("dkim")
