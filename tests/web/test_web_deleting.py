"""Deletion of messages, one or several."""

from tests.house import House, mail


def ids(house: House, query: str = "") -> list[str]:
    """Return the ids of the matching messages, newest first."""
    listed = house.get(f"/inbox/messages?{query}").json["messages"]
    return [message["id"] for message in listed]


def test_one_message_is_deleted(house: House) -> None:
    """A deleted message is missing from every route; other messages remain."""
    house.receive(house.address("a"))
    house.receive(house.address("b"))
    kept, gone = ids(house)
    answer = house.ask("DELETE", f"/inbox/messages/{gone}").answer()
    assert answer.json == {"success": True, "id": gone}
    assert ids(house) == [kept]
    for suffix in ("", "/raw", "/html", "/attachments/1"):
        assert house.get(f"/inbox/messages/{gone}{suffix}").status == 404
    assert house.ask("DELETE", f"/inbox/messages/{gone}").answer().status == 404
    overview = house.get("/inbox").json
    assert (overview["total"], [tag["tag"] for tag in overview["tags"]]) == (1, ["b"])


def test_bulk_delete_takes_the_filters_of_a_list(house: House) -> None:
    """``DELETE /inbox/messages`` deletes what the same list contains, and returns the number."""
    for tag, subject in (("a", "one"), ("A", "two"), ("b", "one"), ("", "one")):
        house.receive(house.address(tag), raw=mail(subject))
    delete = "/inbox/messages?tag=a&subject=two"
    assert house.ask("DELETE", delete).answer().json == {"success": True, "deleted": 1}
    assert len(ids(house)) == 3
    delete = "/inbox/messages?tag=a"
    assert house.ask("DELETE", delete).answer().json == {"success": True, "deleted": 1}
    delete = "/inbox/messages?tag="
    assert house.ask("DELETE", delete).answer().json == {"success": True, "deleted": 1}
    assert house.ask("DELETE", "/inbox/messages").answer().json == {"success": True, "deleted": 1}
    assert house.ask("DELETE", "/inbox/messages").answer().json == {"success": True, "deleted": 0}
    assert house.get("/inbox").json["tags"] == []


def test_a_search_is_rejected(house: House) -> None:
    """A deletion with ``q`` is 400, even with an empty one, and deletes no message."""
    house.receive(raw=mail("one"))
    for query in ("q=one", "q=", "tag=&q=from:shop"):
        answer = house.ask("DELETE", f"/inbox/messages?{query}").answer()
        assert answer.status == 400
        assert answer.json["error"].startswith("'q' is not a parameter of this route")
    assert len(ids(house)) == 1


def test_bulk_delete_of_more_than_a_batch(house: House) -> None:
    """All matching messages are deleted, in several transactions if necessary."""
    recipients = [house.address(f"t{number}") for number in range(50)]
    for _ in range(21):
        house.receive(*recipients)
    assert house.ask("DELETE", "/inbox/messages").answer().json["deleted"] == 1_050


def test_deleting_one_recipients_message_leaves_the_others(house: House) -> None:
    """Bytes that two messages share are deleted with the last of them."""
    house.receive(house.address("a"), house.address("b"))
    second, first = ids(house)
    house.ask("DELETE", f"/inbox/messages/{first}").answer()
    assert house.get(f"/inbox/messages/{second}/raw").json["raw"] == mail().decode()


def test_a_deleted_message_frees_its_space(house: House) -> None:
    """The space of a deleted message can be used again at once."""
    account = house.add_account("tiny", max_messages=1)
    key = house.issue_key(account)
    for _ in range(3):
        house.receive(house.address("", account))
        house.pass_time(3)
        assert house.ask("DELETE", "/inbox/messages", key=key).answer().json["deleted"] == 1


def test_a_share_link_is_deleted_with_its_message(house: House) -> None:
    """The share link of a deleted message does not work any more."""
    house.receive()
    share = house.get("/inbox/messages").json["messages"][0]["shareUrl"].partition("8080")[2]
    assert house.open(share).answer().status == 200
    house.ask("DELETE", "/inbox/messages").answer()
    assert house.open(share).answer().status == 404


def test_a_body_or_an_unknown_parameter_does_not_widen_it(house: House) -> None:
    """A misspelled filter is rejected, and the response contains the number of deleted messages."""
    house.receive(house.address("a"))
    answer = house.ask("DELETE", "/inbox/messages?tag=other", data=b'{"tag":"a"}').answer()
    assert answer.json == {"success": True, "deleted": 0}
