// Commands for Cypress. They run in the browser, and call the tasks of mailcheck-client/cypress.

import { Mail } from "./mailcheck.mjs";

const WAIT = 30; // seconds, if no timeout is given
const SILENCE = 5;
const MARGIN = 130; // seconds for retries, of which the client makes some for two minutes

function task(name, argument, seconds) {
  return cy.task(name, argument, { timeout: (seconds + MARGIN) * 1000 });
}

/** Yield a new address for this test: `{ email, tag, cursor }`. */
function mailAddress(label = Cypress.currentTest?.title ?? "") {
  return task("mailcheck:address", label, 0);
}

/** Yield the next mail to the address. Another call yields the one after it. */
function waitForMail(address, filters = {}) {
  const seconds = filters.timeout ?? (filters.timeoutMs === undefined ? WAIT : filters.timeoutMs / 1000);
  return task("mailcheck:wait", { address, filters }, seconds).then((fields) => {
    address.cursor = fields.cursor;
    return new Mail(null, fields);
  });
}

/** Fail if a further mail to the address arrives within `seconds`. */
function expectNoMail(address, filters = {}) {
  return task("mailcheck:none", { address, filters }, filters.seconds ?? SILENCE);
}

Cypress.Commands.addAll({ mailAddress, waitForMail, expectNoMail });
