"""Pickling of mails for other processes."""

import pickle

from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, DeliveryId, MessageId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Delivery, Envelope, Recipient, Session, TlsFacts
from tests.table import rows


@rows(None, TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384"))
def test_deliveries_are_the_same_in_another_process(tls: TlsFacts | None) -> None:
    """A pickled delivery keeps all of its parts and their types."""
    inbox = Recipient("dev-a+x@inbox.example", AccountId("a"), "x")
    of_test = Recipient("t-b@inbox.example", AccountId("b"), "", DeliverabilityTestId("b"))
    delivery = Delivery(
        DeliveryId("d"),
        Session("192.0.2.1", "client.example", True, tls, AccountId("a")),
        Envelope("shop@example.com", (inbox, of_test), ("C: EHLO client.example",)),
        b"Subject: a\r\n\r\nb\r\n",
        Instant(1),
        Instant(2),
        (MessageId("m"), MessageId("n")),
        ("s", "t"),
    )
    came = pickle.loads(pickle.dumps(delivery, pickle.HIGHEST_PROTOCOL))
    assert repr(came) == repr(delivery)
    assert came == delivery
