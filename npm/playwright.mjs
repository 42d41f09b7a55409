// Fixtures for Playwright's test runner: `mailAddress`, an address of each test, and `mailcheck`, the client.

import { test as base } from "@playwright/test";
import { Mailcheck } from "./mailcheck.mjs";

export const fixtures = {
  mailcheck: [async ({}, use) => use(new Mailcheck()), { scope: "worker" }],
  mailAddress: async ({ mailcheck }, use, info) => {
    const address = await mailcheck.newAddress(info.title);
    await use(address);
    if (info.status === info.expectedStatus) return;
    const arrived = await address.messages();
    const body = arrived.length ? JSON.stringify(arrived, null, 2) : `no mail has arrived for ${address}`;
    await info.attach("mail of mailAddress", { body, contentType: "text/plain" });
  },
};

export const test = base.extend(fixtures);

export { expect } from "@playwright/test";
