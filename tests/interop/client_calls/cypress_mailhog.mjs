// Does each command of cypress-mailhog without Cypress: `cy` sends the same requests with fetch.

import { aside, assert, call, finish, local, require, send } from "./calls.mjs";

const commands = {};
const open = new Set(); // requests without an answer yet
const settings = { mailHogUrl: process.env.RECORDER, defaultCommandTimeout: 5_000, responseTimeout: 5_000 };

// A value that arrives later, with the commands that the package chains to it.
class Chain {
  constructor(promise) { this.promise = promise; }
  then(next, failed) { return new Chain(this.promise.then(next, failed)); }
  its(name) { return this.then((value) => value[name]); }
  should(...condition) { return this.then((value) => { meets(value, condition); return value; }); }
}

function meets(value, [condition, wanted]) {
  if (condition === "not.have.length") assert.notEqual(value.length, wanted);
  else if (condition === "to.have.length.greaterThan") assert.ok(value.length > wanted);
  else throw new Error(condition);
}

async function request({ method, url, timeout = 30_000, failOnStatusCode = true }) {
  const answer = await fetch(url, { method, signal: AbortSignal.timeout(timeout) });
  if (!answer.ok && failOnStatusCode) throw new Error(`${method} ${url}: ${answer.status}`);
  const text = await answer.text();
  const isJson = answer.headers.get("Content-Type")?.startsWith("application/json");
  return { status: answer.status, body: isJson && text ? JSON.parse(text) : text };
}

globalThis.Cypress = {
  env: () => undefined,
  config: (name) => settings[name],
  Commands: { add: (name, ...rest) => { commands[name] = rest.at(-1); } },
};
globalThis.cy = {
  request: (options) => {
    const answer = request(options);
    open.add(answer);
    return new Chain(answer.finally(() => open.delete(answer)));
  },
  wrap: (value) => new Chain(Promise.resolve(value)),
  verifyUpcomingAssertions: async (messages) => messages,
};
require("cypress-mailhog");
for (const [name, work] of Object.entries(commands)) cy[name] = (...given) => new Chain(Promise.resolve(work(...given)));

// Some commands do not return what they wait for.
async function run(name, ...given) {
  const result = await cy[name](...given).promise;
  do {
    await new Promise(setImmediate);
    await Promise.allSettled(open);
  } while (open.size);
  return result;
}

await aside(() => run("mhDeleteAll"));
await send("ann@customer.example");

const mails = await call("mhGetAllMails", async () => {
  const found = await run("mhGetAllMails");
  assert.equal(found.length, 1);
  return found;
});
for (const [name, ...given] of [
  ["mhGetMailsBySubject", "Welcome"],
  ["mhGetMailsByRecipient", "ann@customer.example"],
  ["mhGetMailsBySender", "shop@example.com"],
  ["mhSearchMails", "containing", "482913"],
]) {
  await call(name, async () => assert.equal((await run(name, ...given)).length, 1));
}
for (const [name, given] of [
  ["mhHasMailWithSubject", "Welcome"],
  ["mhHasMailFrom", "shop@example.com"],
  ["mhHasMailTo", "ann@customer.example"],
  ["mhWaitForMails", 0],
]) {
  await call(name, () => run(name, given));
}
await call("mhSetJimMode", async () => {
  assert.equal((await run("mhSetJimMode", true)).status, 201);
  assert.equal(await run("mhGetJimMode"), true);
  assert.equal((await run("mhSetJimMode", false)).status, 200);
});
await call("mhGetJimMode", async () => assert.equal(await run("mhGetJimMode"), false));
assert.equal(await run("mhGetSubject", mails[0]), "Welcome");
assert.deepEqual(await run("mhGetAttachments", mails[0]), ['"cat.png"', '"a.csv"']);
await call("mhDeleteAll", async () => {
  assert.equal((await run("mhDeleteAll")).status, 200);
  assert.equal((await run("mhGetAllMails")).length, 0);
});
local("mhFirst", "mhFilterBySubject", "mhFilterByRecipient", "mhFilterBySender", "mhGetSubject", "mhGetBody",
  "mhGetSender", "mhGetRecipients", "mhGetAttachments");
finish(Object.keys(commands));
