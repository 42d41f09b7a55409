// An address for each test; each worker opens the inbox once.
import { test as base } from "@playwright/test";
import { type Address, Mailcheck } from "./mailcheck.mjs";

export const test = base.extend<{ address: Address }, { inbox: Mailcheck }>({
  inbox: [async ({}, use) => use(new Mailcheck()), { scope: "worker" }],
  address: async ({ inbox }, use, info) => use(await inbox.newAddress(info.title)),
});

export { expect } from "@playwright/test";
