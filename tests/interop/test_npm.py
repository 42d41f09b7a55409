"""The package of npm, installed from its archive into an empty folder, and used as on its page."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route

from mailcheck.web.site.client_libraries import CLIENT_LIBRARIES
from scripts.build_npm import build, pack
from tests.browser.conftest import browser, one_browser
from tests.browser.watching import CHROMIUM
from tests.docs.blocks import ROOT, code_with
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.programs import find_program

__all__ = ["browser", "one_browser"]

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]

NODE_MODULES = ROOT / "node_modules"
README = ROOT / "npm" / "README.md"
GUIDE = ROOT / "docs" / "how-to" / "wait-for-mail.md"

SHOP = """
import { connect } from "node:net";

/** Send a mail with a code and a link, as a program under test does. */
export function signUp(to, subject = "Confirm your address") {
  const lines = ["EHLO shop", "MAIL FROM:<shop@example.com>", `RCPT TO:<${to}>`, "DATA",
    `Subject: ${subject}\\r\\n\\r\\nYour code is 482913: ${process.env.LINK}\\r\\n.`, "QUIT"];
  return new Promise((resolve, reject) => {
    const socket = connect(Number(process.env.SMTP_PORT), "127.0.0.1");
    socket.on("data", (reply) => {
      if (/^[45]/.test(reply)) reject(new Error(String(reply)));
      else if (/^\\d{3} /m.test(reply) && lines.length) socket.write(lines.shift() + "\\r\\n");
    }).on("end", resolve).on("error", reject);
  });
}
"""

IN_NODE = """
import { signUp } from "./shop.mjs";
"""

IN_COMMONJS = """
const { Mailcheck } = require("mailcheck-client");
const { mailcheckTasks } = require("mailcheck-client/cypress");
import("./shop.mjs").then(async ({ signUp }) => {
  const address = await new Mailcheck().newAddress("required");
  await signUp(address.email);
  console.log((await address.wait()).code, Object.keys(mailcheckTasks()).length);
});
"""

CYPRESS = """
// Cypress without its browser: commands are functions, and tasks run behind JSON, as there.
import { signUp } from "./shop.mjs";
import config from "./cypress.config.mjs";

let tasks;
config.e2e.setupNodeEvents((event, registered) => { if (event === "task") tasks = registered; });
const throughJson = (value) => JSON.parse(JSON.stringify(value));
const pressed = [];
globalThis.cy = {
  get: () => ({ type: (email) => pressed.push(email) }),
  contains: () => ({ click: () => pressed.push(signUp(pressed.pop(), "confirm")) }),
  visit: (link) => console.log("visits", link),
  task: async (name, argument, { timeout }) => {
    if (!(timeout >= 1000)) throw new Error("timeout");
    return throughJson(await tasks[name](throughJson(argument)));
  },
};
globalThis.Cypress = {
  currentTest: { title: "signs up" },
  Commands: {
    addAll(commands) {
      for (const [name, command] of Object.entries(commands)) {
        cy[name] = (...given) => {  // one after the other, as Cypress runs its commands
          const run = queue.then(() => command(...given));
          queue = run.catch(() => {});
          return run;
        };
      }
    },
  },
};
let queue = Promise.resolve();
await import("mailcheck-client/cypress/commands");

const address = await cy.mailAddress();
if (!address.tag.startsWith("signs-up-")) throw new Error(address.tag);
await signUp(address.email, "confirm 1");
await signUp(address.email, "confirm 2");
const first = await cy.waitForMail(address);
const second = await cy.waitForMail(address, { subject: "confirm", timeoutMs: 20000 });
console.log(first.code, first.link, first.subject, second.subject);
await cy.expectNoMail(address, { seconds: 1 });
const missing = await cy.waitForMail(address, { timeout: 1 }).catch((error) => error.message);
console.log(missing.split("\\n")[0]);
const empty = new (first.constructor)(null, { codes: [], subject: "x" });
try { empty.code; } catch (error) { console.log(error.message); }
"""

DEFINE_CONFIG = """
export const defineConfig = (config) => config;
"""

TYPED = """
import { type Address, Mailcheck } from "mailcheck-client";
import { test, expect, fixtures } from "mailcheck-client/playwright";
import { mailcheckTasks } from "mailcheck-client/cypress";
import type { CypressAddress } from "mailcheck-client/cypress/commands";

const address: Address = await new Mailcheck({ url: "http://127.0.0.1:8080" }).newAddress();
const code: string = (await address.wait({ subject: "confirm" })).code;
const own = test.extend<{ shop: string }>({
  shop: async ({ mailAddress }, use) => use(mailAddress.email),
});
own("typed", async ({ shop, mailcheck }) => expect(await mailcheck.cursor()).toBe(shop + code));
const tasks: Record<string, unknown> = { ...mailcheckTasks(), fixtures };
// @ts-expect-error: an address has a tag of its own
await address.wait({ tag: "other" });
const known: CypressAddress = { email: "", tag: "", cursor: "" };
console.log(tasks, known);
"""

PLAYWRIGHT_CONFIG = """
import { defineConfig } from "@playwright/test";
export default defineConfig({
  testMatch: "*.spec.ts",
  reporter: "line",
  use: { launchOptions: { executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] } },
});
"""

PLAYWRIGHT = """
import { signUp } from "./shop.mjs";

test("a failure", async ({ mailAddress }) => {
  await signUp(mailAddress.email);
  expect((await mailAddress.wait()).code).toBe("111222");
});
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for the tests of this module."""
    with running_daemon(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder in which npm has installed the archive, and nothing else."""
    made = tmp_path_factory.mktemp("npm")
    npm = find_program("npm")
    build(made / "content", "0.1.0")
    archive = pack(made / "content", made)
    folder = made / "project"
    folder.mkdir()
    (folder / "package.json").write_text('{"private": true}')
    options = ("--offline", "--omit=peer", "--no-audit", "--no-fund", "--loglevel=error")
    subprocess.run([npm, "install", *options, str(archive)], cwd=folder, check=True, timeout=120)
    (folder / "shop.mjs").write_text(SHOP)
    return folder


def run(folder: Path, daemon: Daemon, *command: str, status: int = 0, **variables: str) -> str:
    """Run a program in the folder, with the inbox in its environment; return its output."""
    link = f"http://{HOST}:{daemon.http_port}/readyz"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**daemon.client_environment, "LINK": link, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def node(folder: Path, daemon: Daemon, name: str, program: str) -> list[str]:
    """Run a program with Node.js; return the lines that it prints."""
    (folder / name).write_text(program)
    return run(folder, daemon, find_program("node"), name).splitlines()


def link_modules(folder: Path, *names: str) -> None:
    """Let the folder have other packages, which `make interop` has installed."""
    for name in names:
        there, here = NODE_MODULES / name, folder / "node_modules" / name
        if not there.exists():
            pytest.skip(f"{name} is not installed: run scripts/install-test-needs as root")
        here.parent.mkdir(exist_ok=True)
        if not here.exists():
            here.symlink_to(there)


def test_the_served_file_is_the_package(folder: Path) -> None:
    """The package has each file of the client library as the daemon serves it."""
    installed = folder / "node_modules" / "mailcheck-client"
    for name, library in CLIENT_LIBRARIES.items():
        if not name.endswith(".py"):
            assert (installed / name).read_bytes() == library.read()


def test_node(folder: Path, daemon: Daemon) -> None:
    """The example of the page gets the code and the link."""
    program = IN_NODE + code_with(README, 'from "mailcheck-client";\n\nconst address')
    (line,) = node(folder, daemon, "page.mjs", program)
    assert line == f"482913 http://{HOST}:{daemon.http_port}/readyz"


def test_commonjs(folder: Path, daemon: Daemon) -> None:
    """The client and the tasks of Cypress can be required."""
    assert node(folder, daemon, "required.cjs", IN_COMMONJS) == ["482913 3"]


def test_cypress(folder: Path, daemon: Daemon) -> None:
    """The commands run the tasks: mails in their order, none, and errors that say what arrived."""
    (folder / "node_modules" / "cypress").mkdir()
    (folder / "node_modules" / "cypress" / "index.mjs").write_text(DEFINE_CONFIG)
    (folder / "node_modules" / "cypress" / "package.json").write_text('{"exports": "./index.mjs"}')
    (folder / "cypress.config.mjs").write_text(code_with(GUIDE, "mailcheckTasks()"))
    program = CYPRESS + code_with(GUIDE, "cy.mailAddress()")
    mails, missing, no_code, visited = node(folder, daemon, "cypress.mjs", program)
    link = f"http://{HOST}:{daemon.http_port}/readyz"
    assert mails == f"482913 {link} confirm 1 confirm 2"
    assert missing.startswith("no matching message arrived within 1 s")
    assert no_code == 'no one-time code in the mail "x"'
    assert visited == f"visits {link}"


def test_types(folder: Path, daemon: Daemon) -> None:
    """TypeScript finds the types of each entry, and rejects what the client does not have."""
    link_modules(folder, "@playwright/test", "playwright", "playwright-core", "@types/node")
    (folder / "typed.mts").write_text(TYPED)
    compiler = NODE_MODULES / "typescript" / "bin" / "tsc"
    options = ("--noEmit", "--strict", "--module", "nodenext", "--target", "es2022")
    # Without Cypress, its types are those that the commands add to it.
    libraries = ("--skipLibCheck", "--types", "node")
    run(folder, daemon, find_program("node"), str(compiler), *options, *libraries, "typed.mts")


def test_playwright(folder: Path, daemon: Daemon) -> None:
    """The guide's test opens the link in Chromium; the report of a failed one has its mail."""
    link_modules(folder, "@playwright/test", "playwright", "playwright-core")
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed: run scripts/install-test-needs as root")
    (folder / "playwright.config.ts").write_text(PLAYWRIGHT_CONFIG)
    (folder / "shop.spec.ts").write_text(code_with(GUIDE, "client/playwright") + PLAYWRIGHT)
    runner = folder / "node_modules" / "@playwright" / "test" / "cli.js"
    command = (find_program("node"), str(runner), "test")
    printed = run(folder, daemon, *command, status=1, CHROMIUM=str(CHROMIUM), CI="1")
    assert re.search(r"\b1 failed\b", printed)
    assert re.search(r"\b1 passed\b", printed)
    assert "mail of mailAddress" in printed


def test_a_browser(folder: Path, daemon: Daemon, browser: Browser) -> None:
    """The client waits for a mail in Chromium too, on a page of the daemon's origin."""
    origin = f"http://{HOST}:{daemon.http_port}"
    installed = folder / "node_modules" / "mailcheck-client"

    def serve(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        if name == "page":
            route.fulfill(content_type="text/html", body="<!doctype html><title>Suite</title>")
        else:
            route.fulfill(content_type="text/javascript", body=(installed / name).read_text())

    page = browser.new_page()
    page.route(f"{origin}/suite/*", serve)
    page.goto(f"{origin}/suite/page")
    begin = """async ([url, key]) => {
      const { Mailcheck } = await import("/suite/mailcheck.mjs");
      window.address = await new Mailcheck({ url, key }).newAddress("browser");
      return window.address.email;
    }"""
    email = page.evaluate(begin, [origin, daemon.key])
    assert re.search(r"\+browser-[a-z2-7]{10}@", email)
    (folder / "send.mjs").write_text(f'import {{ signUp }} from "./shop.mjs"; signUp("{email}");')
    run(folder, daemon, find_program("node"), "send.mjs")
    assert page.evaluate("async () => (await window.address.wait()).code") == "482913"
    page.close()


def test_its_page_is_the_guide() -> None:
    """The page of the package has the code of the guide, which the tests above run."""
    for part in ("mailcheckTasks()", "cy.mailAddress()"):
        assert code_with(README, part) == code_with(GUIDE, part)
