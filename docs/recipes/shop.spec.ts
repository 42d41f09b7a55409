// Tests of a program that sends mail, in a real browser.
// MAILCHECK_URL and MAILCHECK_API_KEY name the inbox, SMTP_PORT the port of its mail server.
import type { Page } from "@playwright/test";
import type { Address } from "mailcheck-client";
import { expect, test } from "mailcheck-client/playwright";

async function submit(page: Page, label: string, email: string, button: string) {
  await page.goto("/");
  await page.getByLabel(label).fill(email);
  await page.getByRole("button", { name: button }).click();
}

const signUp = (page: Page, email: string) => submit(page, "Email", email, "Sign up");

type Inbox = { page: Page; address: Address };

/** Repeat a test, so that four workers have something to do. */
function times(count: number, title: string, body: (inbox: Inbox) => Promise<void>) {
  for (let time = 1; time <= count; time++) {
    test(`${title} ${time}`, ({ page, mailAddress }) => body({ page, address: mailAddress }));
  }
}

times(8, "the link confirms", async ({ page, address }) => {
  await signUp(page, address.email);
  const mail = await address.wait({ timeoutMs: 20_000, subject: "confirm" });
  await page.goto(mail.link);
  await expect(page.getByRole("heading")).toHaveText(`Welcome, ${address.email}`);
});

times(8, "the code confirms", async ({ page, address }) => {
  await signUp(page, address.email);
  await page.getByLabel("Code").fill((await address.wait()).code);
  await page.getByRole("button", { name: "Confirm" }).click();
  await expect(page.getByRole("heading")).toContainText("Welcome");
});

times(3, "a code that is sent again takes the place of the first", async ({ page, address }) => {
  await signUp(page, address.email);
  const first = await address.wait();
  await page.getByRole("button", { name: "Send it again" }).click();
  const second = await address.wait(); // the next message; a message is not returned twice
  expect(second.code).not.toBe(first.code);
  await page.goto(first.link);
  await expect(page.getByText("no longer valid")).toBeVisible();
  await page.goto(second.link);
  await expect(page.getByRole("heading")).toContainText("Welcome");
});

times(3, "a customer can choose a new password", async ({ page, address }) => {
  await signUp(page, address.email);
  await page.goto((await address.wait()).link);
  await submit(page, "Account", address.email, "Forgot password");
  await page.goto((await address.wait({ subject: "password" })).link);
  await expect(page.getByRole("heading")).toContainText("Welcome");
});

times(5, "a stranger gets no mail", async ({ page, address }) => {
  await submit(page, "Account", address.email, "Forgot password");
  await expect(page.getByText("If there is an account")).toBeVisible();
  await address.expectNone({ seconds: 1 });
});

times(3, "an order sends two mails", async ({ page, address }) => {
  await submit(page, "Order for", address.email, "Order");
  const subjects: string[] = [];
  for await (const mail of address.events({ timeout: 30 })) { // each message as it arrives
    subjects.push(mail.subject);
    if (subjects.length === 2) break;
  }
  expect(subjects[1]).toContain("on its way");
  const [ordered] = (await address.messages()).reverse();
  expect(ordered.attachments[0].filename).toBe("invoice.txt");
  expect(Buffer.from(await ordered.attachments[0].content()).toString()).toContain("12.50 EUR");
});
