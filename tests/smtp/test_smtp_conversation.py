"""A whole SMTP conversation."""

from tests.smtp.talk import HOST_NAME, PUBLIC_IP, House


def test_a_whole_conversation() -> None:
    """A plain conversation delivers the sent bytes with the envelope of its commands."""
    house = House()
    talk = house.connect()
    assert talk.heard() == f"220 {HOST_NAME} ESMTP mailcheck\r\n".encode()
    assert talk.codes(b"EHLO client.example\r\n") == ["250"]
    assert talk.say(b"MAIL FROM:<sender@client.example>\r\n").startswith(b"250 2.1.0 ")
    assert talk.say(b"RCPT TO:<dev-a+tag@inbox.example>\r\n").startswith(b"250 2.1.5 ")
    assert talk.say(b"DATA\r\n").startswith(b"354 ")
    said = talk.say(b"Subject: hello\r\n\r\n..dot\r\n.\r\n")
    assert said == b"250 2.0.0 OK, delivery delivery-1\r\n"
    assert talk.say(b"QUIT\r\n").startswith(b"221 2.0.0 ")
    assert talk.is_closed
    (mail,) = house.receiver.delivered
    assert mail.raw_message == b"Subject: hello\r\n\r\n.dot\r\n"
    assert mail.envelope.envelope_sender == "sender@client.example"
    assert [recipient.address for recipient in mail.envelope.recipients] == [
        "dev-a+tag@inbox.example"
    ]
    assert (mail.session.client_ip, mail.session.helo_name) == (PUBLIC_IP, "client.example")
    assert mail.session.is_extended
