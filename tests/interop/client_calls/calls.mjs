// Does the calls of a client, one after the other, and prints what each has shown.
// RECORDER is the URL of the proxy that records the requests of each call.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const recorder = process.env.RECORDER;
export const results = [];

export const require = createRequire(`${process.env.CLIENTS}/package.json`);
export { assert };

const begin = (name) => fetch(`${recorder}/.call/${encodeURIComponent(name)}`);

// Sends the sample mail to an address.
export async function send(address) {
  await begin("");
  await fetch(`${recorder}/.send/${encodeURIComponent(address)}`);
}

// Does work that is no call of the client.
export async function aside(work) {
  await begin("");
  return await work();
}

// Does a call: WORK returns what the client returns, and throws if this is not what the product gives.
export async function call(name, work) {
  await begin(name);
  try {
    const value = await work();
    results.push({ call: name, outcome: "as documented" });
    return value;
  } catch (error) {
    results.push({ call: name, outcome: "differs", why: String(error.message ?? error).split("\n")[0] });
    if (process.env.SHOW_ERRORS) console.error(name, error);
    return undefined;
  }
}

// Does a call that mailcheck refuses, with a reason that the client shows.
export async function refused(name, reason, work) {
  await begin(name);
  let why = "the call was not refused";
  try {
    await work();
  } catch (error) {
    const text = typeof error === "string" ? error : error.message;
    if (text.includes(reason)) {
      results.push({ call: name, outcome: "refused", why: reason });
      return;
    }
    why = text.split("\n")[0];
  }
  results.push({ call: name, outcome: "differs", why });
}

// Names functions of the client that send no request.
export function local(...names) {
  for (const name of names) results.push({ call: name, outcome: "sends no request" });
}

// Prints the results. ALL are the names of all functions of the client.
export function finish(all) {
  const done = new Set(results.map((one) => one.call));
  for (const name of all) if (!done.has(name)) results.push({ call: name, outcome: "differs", why: "not called" });
  console.log(JSON.stringify(results));
}

// Returns the mail to an address, once it is in the inbox.
export async function received(to) {
  const query = new URLSearchParams({ to, after: "c0", timeout: "10" });
  const headers = { Authorization: `Bearer ${process.env.API_KEY}` };
  const answer = await fetch(`${recorder}/api/v1/inbox/wait?${query}`, { headers });
  assert.equal(answer.status, 200, `no mail to ${to}`);
  return await answer.json();
}
