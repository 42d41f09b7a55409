"""The file with the daemon's URL for commands."""

from pathlib import Path

from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import provider

from mailcheck.daemon.listening import AddressFile

URL = "http://127.0.0.1:18080"


def test_it_is_there_while_the_daemon_runs(tmp_path: Path) -> None:
    """The file has the URL while the daemon runs, whatever a killed daemon left."""
    path = tmp_path / "var" / "url"
    path.parent.mkdir()
    path.write_text("http://127.0.0.1:1\n")
    service = AddressFile(path, lambda: URL)
    service.startService()
    assert path.read_text() == f"{URL}\n"
    service.stopService()
    assert not path.exists()


def test_that_of_another_daemon_stays(tmp_path: Path) -> None:
    """A daemon that ends does not delete the file of the next one."""
    path = tmp_path / "var" / "url"
    first = AddressFile(path, lambda: URL)
    first.startService()
    AddressFile(path, lambda: "http://127.0.0.1:18081").startService()
    first.stopService()
    assert path.read_text() == "http://127.0.0.1:18081\n"


def test_a_folder_that_takes_no_file_stops_no_daemon(tmp_path: Path) -> None:
    """If the file cannot be written, this is logged and the daemon starts."""
    (tmp_path / "var").write_text("a file in the place of the folder")
    said: list[str] = []

    @provider(ILogObserver)
    def hear(event: LogEvent) -> None:
        said.append(str(event.get("path", "")))

    globalLogPublisher.addObserver(hear)
    try:
        service = AddressFile(tmp_path / "var" / "url", lambda: URL)
        service.startService()
        service.stopService()
    finally:
        globalLogPublisher.removeObserver(hear)
    assert said == [str(tmp_path / "var" / "url")]
