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


def test_a_body_deletes_nothing(house: House) -> None:
    """A filter in the body, which the route does not read, is rejected instead of ignored."""
    house.receive(house.address("a"))
    answer = house.ask("DELETE", "/inbox/messages?tag=other", data=b'{"tag":"a"}').answer()
    assert answer.status == 400
    assert "nothing was deleted" in answer.json["error"]
    assert len(ids(house)) == 1
