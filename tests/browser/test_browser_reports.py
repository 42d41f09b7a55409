"""Files with reports that are chosen or dropped on the page, in a real browser."""

from playwright.sync_api import expect

from tests.browser.people import Person
from tests.browser.watching import Watched
from tests.corpus.report_files import FOLDER, document

DROP = """(form, files) => {
  const transfer = new DataTransfer();
  for (const [name, text] of files) transfer.items.add(new File([text], name));
  const options = { dataTransfer: transfer, bubbles: true, cancelable: true };
  form.dispatchEvent(new DragEvent("drop", options));
}"""


def test_reports_are_chosen_and_dropped(watched: Watched, person: Person) -> None:
    """Both ways show how far the import is, the sums, and what was rejected."""
    page = watched.page
    watched.go("/reports")
    form = page.locator("[data-drop]")
    state = form.get_by_role("status")
    form.get_by_label("Files").set_input_files([FOLDER / "google.xml", FOLDER / "google.json"])
    form.get_by_role("button", name="Import").click()
    expect(state).to_have_text("Imported: 2 new, 0 known, 0 rejected.")
    files = [["google.xml", document("google.xml").decode()], ["notes.txt", "hello"]]
    form.evaluate(DROP, files)
    expect(state).to_have_text("Imported: 0 new, 1 known, 1 rejected.")
    expect(form.get_by_role("listitem")).to_contain_text("notes.txt: It contains no report")
    watched.require_accessible()
    form.get_by_role("link", name="Show the reports").click()
    expect(page.get_by_role("heading", name="Received reports (2)")).to_be_visible()
