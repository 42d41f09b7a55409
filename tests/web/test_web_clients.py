"""The client libraries that the daemon serves: GET /clients/<file>."""

from mailcheck.web.site.client_libraries import CLIENT_LIBRARIES
from tests.house import House
from tests.table import rows


@rows(*CLIENT_LIBRARIES)
def test_a_client_library_is_one_file(house: House, name: str) -> None:
    """Each library is served without a key, as source code in UTF-8."""
    answer = house.open(f"/clients/{name}").answer()
    assert answer.status == 200
    assert "mailcheck" in answer.body.decode("utf-8")


@rows("", "other.py", "..%2f__init__.py", "__init__.py", "%00")
def test_nothing_else_is_served(house: House, name: str) -> None:
    """Other files of the package are not served."""
    answer = house.open(f"/clients/{name}").answer()
    assert answer.status == 404
