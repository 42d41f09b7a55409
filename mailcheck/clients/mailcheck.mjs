// Test client for mailcheck. It waits for mail in tests. One file, no
// dependencies, Node 18 or newer (API keys are secret: not for pages). Jest
// loads the same client as CommonJS, mailcheck.cjs. The types for TypeScript are
// in mailcheck.d.mts and mailcheck.d.cts, in the same folder.
//
//   import { Mailcheck } from "./mailcheck.mjs";
//
//   const inbox = new Mailcheck();                     // MAILCHECK_URL, MAILCHECK_API_KEY
//   const address = await inbox.newAddress("signup");  // before the mail is triggered
//   await signUp(address.email);
//   const mail = await address.wait();                 // the next mail to this address
//   expect(mail.code).toBe("482913");
//
// There are no race conditions. An address contains a cursor that is older than
// the address, and a wait returns the oldest mail after the cursor. A process
// requests the mailbox and its cursor once and generates the tags itself, so a
// test needs one request for each mail.
//
// A wait that times out throws NoMail, which says what did arrive. If the service
// responds with 429 or 503 and Retry-After, a call is retried for up to two
// minutes. This time is not part of the timeout of a wait. After that, the error
// of the service is thrown.

const DEFAULT_URL = "http://127.0.0.1:8080";
const API_PATH = "/api/v1";
const LONGEST_POLL = 55; // maximum seconds of one request; longer waits use several
const ROUND_TRIP = 10; // seconds for a response in addition to the wait itself
const SILENCE = 45; // seconds without an event until a stream is broken; one is sent every 15
const PATIENCE = 120; // maximum seconds of all retry delays of a call
const LONGEST_WAIT = 600; // seconds; larger numbers are probably meant as milliseconds
const LOOK_BACK = 600; // seconds before a wait without a start in which its mail may have arrived
const LARGEST_PAGE = 100;
const LONGEST_LABEL = 24;
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";
const ENDING = 10; // random characters of a tag, with 50 bits of entropy

const environment = globalThis.process?.env ?? {}; // a browser has none

const FILTERS = ["tag", "tagPrefix", "to", "from", "subject", "text", "header", "hasAttachment", "since"];

/** The service returned an error, or cannot be reached (status 0). */
export class MailcheckError extends Error {
  constructor(message, status = 0, body = {}) {
    super(message);
    this.name = new.target.name;
    this.status = status;
    this.body = body;
  }
}

/** No matching mail arrived before the timeout. `seen` and `rejected` show what arrived. */
export class NoMail extends MailcheckError {
  constructor(body) {
    const lines = [body.error ?? "no matching message arrived in time"];
    for (const mail of body.seen ?? []) {
      const reasons = mail.reasons.join("; ") || "it matches, but arrived after the wait ended";
      lines.push(`  arrived ${mail.receivedAt} for ${mail.to}, ${JSON.stringify(mail.subject)}: ${reasons}`);
    }
    for (const mail of body.rejected ?? []) {
      lines.push(`  rejected ${mail.refusedAt} for ${mail.to}: ${mail.reason}`);
    }
    super(lines.join("\n"), 408, body);
    this.seen = body.seen ?? [];
    this.rejected = body.rejected ?? [];
    this.cursor = body.cursor;
  }
}

/** A mail arrived or was rejected although none was expected. `mail` is null if it was rejected. */
export class UnexpectedMail extends MailcheckError {
  constructor(body, mail) {
    super(body.error ?? "an unexpected mail arrived", 409, body);
    this.mail = mail;
    this.cursor = body.cursor;
  }
}

/** The score of a mail is lower than required. `report` is the complete report. */
export class PoorScore extends MailcheckError {
  constructor(report, atLeast) {
    const lines = [`the mail scores ${report.score} of 10, but ${atLeast} is required`];
    for (const one of report.deductions ?? []) lines.push(`  -${one.points} ${one.id}: ${one.fix || one.meaning}`);
    super(lines.join("\n"), 200, report);
    this.report = report;
  }
}

/** An attachment of a mail. */
export class Attachment {
  #client;
  #messageId;

  constructor(client, messageId, fields) {
    this.#client = client;
    this.#messageId = messageId;
    Object.assign(this, fields);
  }

  /** Download the decoded bytes. */
  content() {
    return this.#client.attachment(this.#messageId, this.id);
  }
}

/** A message of the API, with properties for what tests use most. */
export class Mail {
  #client;

  constructor(client, fields) {
    this.#client = client;
    Object.assign(this, fields);
    if (fields.attachments) {
      this.attachments = fields.attachments.map((one) => new Attachment(client, fields.id, one));
    }
  }

  /** The one-time code. Throws if the mail contains none. */
  get code() {
    if (!this.codes.length) {
      throw new MailcheckError(`no one-time code in the mail ${JSON.stringify(this.subject)}`);
    }
    return this.codes[0];
  }

  /** The link that a person would click. */
  get link() {
    if (this.bestLink) return this.bestLink;
    throw new MailcheckError(
      `no clear choice between ${this.links.length} links in the mail ${JSON.stringify(this.subject)}: ${this.links.join(" ")}`,
    );
  }

  /** Return the exact bytes of the mail. */
  eml() {
    return this.#client.eml(this.id);
  }

  /** Delete the mail permanently. */
  delete() {
    return this.#client.delete(this.id);
  }

  /** Run a deliverability test, and return the report. Throws PoorScore if the score is below `atLeast` of 10. */
  score(options = {}) {
    return this.#client.score(this.id, options);
  }
}

/**
 * A page of a list of mails, newest first, as an array. `total` counts all matching mails on all
 * pages. `nextPage` is a number, or null on the last page. `notSearched` counts further mails that
 * may match: they have just arrived, and their content is not parsed yet.
 */
export class Mails extends Array {
  static [Symbol.species] = Array; // map, filter and the like return a plain array

  constructor(mails, body) {
    super();
    this.push(...mails);
    this.total = body.total;
    this.nextPage = body.nextPage;
    this.notSearched = body.notSearched ?? 0;
  }
}

/** An inbox address with a tag, and the cursor from which its waits begin. */
export class Address {
  #client;
  #madeAt;

  constructor(client, email, tag, cursor) {
    this.#client = client;
    this.#madeAt = cursor;
    this.email = email;
    this.tag = tag;
    this.cursor = cursor;
  }

  /** Wait for the next mail to this address. Another call returns the one after it. */
  async wait(options = {}) {
    const mail = await this.#client.wait({ after: this.cursor, ...this.#own(options, WAIT_OPTIONS) });
    this.cursor = mail.cursor;
    return mail;
  }

  /** Wait for the next `count` mails to this address, 1 to 100. Returns complete mails, the oldest first. */
  async waitMany(count, options = {}) {
    const own = this.#own(options, WAIT_OPTIONS);
    const mails = await this.#client.waitMany(count, { after: this.cursor, ...own });
    this.cursor = mails.at(-1).cursor;
    return mails;
  }

  /** Check that no further mail to this address arrives. Throws UnexpectedMail. */
  async expectNone(options = {}) {
    await this.#client.expectNone({ after: this.cursor, ...this.#own(options, NONE_OPTIONS) });
  }

  /** Yield each mail to this address when it arrives. */
  async *events(options = {}) {
    const own = this.#own(options, EVENT_OPTIONS);
    for await (const mail of this.#client.events({ after: this.cursor, ...own })) {
      this.cursor = mail.cursor;
      yield mail;
    }
  }

  /** List all mails to this address since it was created, newest first, as complete mails. */
  async messages(filters = {}) {
    const query = { ...this.#own(filters, FILTERS), after: this.#madeAt, limit: LARGEST_PAGE };
    const found = [];
    let body;
    for (let page = 1; page !== null; page = body.nextPage) {
      body = await this.#client.request("GET", "/inbox/messages", { ...query, page });
      found.push(...(await this.#client.whole(body.messages)));
    }
    return new Mails(found, body);
  }

  /** Delete all mails to this address permanently. */
  async delete() {
    await this.#client.request("DELETE", "/inbox/messages", { tag: this.tag });
  }

  toString() {
    return this.email;
  }

  #own(options, known) {
    // An address has a tag and a cursor of its own.
    const others = known.filter((name) => name !== "tag" && name !== "after");
    check(options, others);
    return { ...options, tag: this.tag };
  }
}

const WAIT_OPTIONS = [...FILTERS, "after", "timeout", "timeoutMs"];
const EVENT_OPTIONS = [...WAIT_OPTIONS, "onRefused"];
const NONE_OPTIONS = [...FILTERS, "after", "seconds"];
const LIST_OPTIONS = [...FILTERS, "after", "limit", "page", "q"];

/** A developer inbox, accessed with an API key. */
export class Mailcheck {
  static #mailboxes = new Map(); // promises shared by the process, so that each is requested once

  #api;
  #key;

  constructor(options = {}) {
    check(options, ["url", "key"]);
    const url = (options.url || environment.MAILCHECK_URL || DEFAULT_URL).trim().replace(/\/+$/, "");
    this.#api = (url.endsWith(API_PATH) ? url.slice(0, -API_PATH.length) : url) + API_PATH;
    this.#key = (options.key || environment.MAILCHECK_API_KEY || "").trim();
    if (!this.#key) throw new MailcheckError("no API key: pass { key } or set MAILCHECK_API_KEY");
    if (!/^[!-~]+$/.test(this.#key)) {
      throw new MailcheckError("the API key contains a space, a line break or a non-ASCII character");
    }
  }

  /** Create a new, unique address for one test. Its tag begins with `label`. */
  async newAddress(label = "") {
    const { mailbox, domain, cursor } = await this.#mailbox();
    const words = label.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, LONGEST_LABEL);
    const begin = words.replace(/^-+|-+$/g, "");
    const ending = Array.from({ length: ENDING }, () => BASE32[randomByte() % 32]).join("");
    const tag = begin ? `${begin}-${ending}` : ending;
    return new Address(this, `${mailbox}+${tag}@${domain}`, tag, cursor);
  }

  /** Return the address with a tag, and the current cursor. */
  async address(tag = "") {
    const found = await this.request("GET", "/inbox/address", { tag });
    return new Address(this, found.address, found.tag, found.cursor);
  }

  /** Return the current cursor. Take it before you trigger the mail. */
  async cursor() {
    return (await this.request("GET", "/inbox/address")).cursor;
  }

  /**
   * Wait for the oldest matching mail after the cursor `after`, or from `since` on. Without both,
   * the newest matching mail of the last ten minutes is returned. If there is none, the next one
   * is. To wait for a mail after another one, pass its `cursor` as `after`.
   */
  async wait(options = {}) {
    const { seconds, query, recent } = await this.#begin(options, 1);
    if (recent.length) return this.message(recent[0].id);
    return new Mail(this, await this.#wait("/inbox/wait", seconds, query));
  }

  /**
   * Wait for `count` matching mails, 1 to 100. Returns complete mails, the oldest first. Without
   * `after` and `since`, the newest ones of the last ten minutes count too.
   */
  async waitMany(count, options = {}) {
    const { seconds, query, recent } = await this.#begin(options, count);
    if (recent.length) return this.whole(recent);
    const body = await this.#wait("/inbox/wait/many", seconds, { ...query, count });
    return this.whole(body.messages);
  }

  /**
   * Check that no matching mail arrives or is rejected. The check begins at the cursor `after`, or
   * now without it. Throws UnexpectedMail.
   */
  async expectNone({ seconds = 5, after, ...filters } = {}) {
    check(filters, FILTERS);
    const budget = new RetryBudget(PATIENCE);
    const end = Date.now() + inSeconds("seconds", seconds) * 1000;
    for (;;) {
      const left = Math.max(1, Math.min(LONGEST_POLL, (end + budget.spent - Date.now()) / 1000));
      const parameters = { ...filters, after, seconds: left.toFixed(3) };
      const request = { method: "GET", path: "/inbox/wait/none", parameters, seconds: left };
      try {
        after = (await this.#json(request, budget)).cursor;
      } catch (error) {
        if (error.status !== 409) throw error;
        const message = error.body.message;
        throw new UnexpectedMail(error.body, message ? new Mail(this, message) : null);
      }
      if (Date.now() >= end + budget.spent) return;
    }
  }

  /**
   * Yield each matching mail when it arrives, as a list entry. The stream begins after the cursor
   * `after`, or now without it. It ends after `timeout` seconds, which do not include retry delays,
   * or never. It uses one request. After a lost connection it continues without missing or
   * repeating a mail.
   */
  async *events(options = {}) {
    check(options, EVENT_OPTIONS);
    const { timeout, timeoutMs, onRefused, ...query } = options;
    const isEndless = timeout === undefined && timeoutMs === undefined;
    const end = isEndless ? Infinity : Date.now() + secondsOf({ timeout, timeoutMs }) * 1000;
    const budget = new RetryBudget(PATIENCE);
    for (;;) {
      const left = end + budget.spent - Date.now();
      if (left <= 0) return;
      if (!isEndless) query.seconds = Math.max(1, left / 1000).toFixed(3);
      try {
        for await (const { event, data, id } of this.#listen(query, budget)) {
          budget.renew();
          if (id) query.after = id;
          if (event === "message") yield new Mail(this, JSON.parse(data));
          else if (event === "refused") onRefused?.(JSON.parse(data));
          else if (event === "closed") throw new MailcheckError(JSON.parse(data).error);
        }
      } catch (error) {
        if (error.status !== 0 || !(await budget.sleep(1000))) throw error;
      }
    }
  }

  /** List mails, newest first. `limit` is 1 to 100 mails per page; the default is 50. */
  async messages(options = {}) {
    check(options, LIST_OPTIONS);
    const body = await this.request("GET", "/inbox/messages", options);
    const mails = body.messages.map((message) => new Mail(this, message));
    return new Mails(mails, body);
  }

  /** Return a complete mail. */
  async message(id) {
    return new Mail(this, await this.request("GET", pathOf(id)));
  }

  /** Return the complete mails of a list, with one request for each. */
  async whole(messages) {
    const mails = [];
    for (const { id } of messages) mails.push(await this.message(id));
    return mails;
  }

  /** Delete a mail permanently. */
  async delete(id) {
    await this.request("DELETE", pathOf(id));
  }

  /** Return the exact bytes of a mail. */
  eml(id) {
    return this.#bytes(pathOf(id, "raw"), "message/rfc822");
  }

  /** Return the HTML of a mail. */
  html(id) {
    return this.#bytes(pathOf(id, "html"), "*/*");
  }

  /** Return the decoded bytes of an attachment. */
  attachment(id, attachmentId) {
    return this.#bytes(pathOf(id, "attachments", attachmentId), "*/*");
  }

  /** Run a deliverability test, and return the report. Throws PoorScore if the score is below `atLeast` of 10. */
  async score(id, options = {}) {
    check(options, ["atLeast", "timeout", "timeoutMs"]);
    const { atLeast = 0 } = options;
    const { testId } = await this.request("POST", pathOf(id, "test"));
    const report = await this.#poll(`/test/${encodeURIComponent(testId)}/wait`, secondsOf(options, 60), {});
    if (report.score === undefined) {
      const reason = report.failure ?? `the test is ${report.status}`;
      throw new MailcheckError(`the mail has no score: ${reason}`, 200, report);
    }
    if (report.score < atLeast) throw new PoorScore(report, atLeast);
    return report;
  }

  /** Send a request, and return its JSON. On 429 and 503 it is retried for up to `patience` seconds. */
  request(method, path, parameters = {}, patience = PATIENCE) {
    const seconds = Number(parameters.timeout ?? 0);
    return this.#json({ method, path, parameters, seconds }, new RetryBudget(patience));
  }

  // The cursor for a new tag may be old, because no mail to the tag has arrived before.
  #mailbox() {
    const name = JSON.stringify([this.#api, this.#key]);
    const mailbox = Mailcheck.#mailboxes.get(name) ?? this.request("GET", "/inbox/address");
    Mailcheck.#mailboxes.set(name, mailbox);
    mailbox.catch(() => Mailcheck.#mailboxes.delete(name));
    return mailbox;
  }

  /**
   * Check the options of a wait, and return its seconds and its query. A wait without a start gets
   * one: ten minutes ago. `recent` has the newest `count` mails since then, the oldest first, or
   * none if there are fewer.
   */
  async #begin(options, count) {
    check(options, WAIT_OPTIONS);
    const { timeout, timeoutMs, ...query } = options;
    const seconds = secondsOf({ timeout, timeoutMs }, 30);
    if (query.after !== undefined || query.since !== undefined) return { seconds, query, recent: [] };
    query.since = new Date(Date.now() - LOOK_BACK * 1000).toISOString();
    const limit = Math.max(1, Math.min(count, LARGEST_PAGE));
    const { messages } = await this.request("GET", "/inbox/messages", { ...query, limit });
    return { seconds, query, recent: messages.length === count ? messages.reverse() : [] };
  }

  async #wait(path, seconds, query) {
    try {
      return await this.#poll(path, seconds, query);
    } catch (error) {
      throw error.status === 408 ? new NoMail(error.body) : error;
    }
  }

  /** Repeat a long poll until it succeeds. After `timeout` seconds, throw the 408. */
  async #poll(path, timeout, query) {
    const budget = new RetryBudget(PATIENCE);
    const deadline = Date.now() + timeout * 1000;
    for (;;) {
      const left = Math.max(1, Math.min(LONGEST_POLL, (deadline + budget.spent - Date.now()) / 1000));
      const parameters = { ...query, timeout: left.toFixed(3) };
      try {
        return await this.#json({ method: "GET", path, parameters, seconds: left }, budget);
      } catch (error) {
        if (error.status !== 408 || Date.now() >= deadline + budget.spent) throw error;
      }
    }
  }

  async #json(request, budget) {
    const content = await (await this.#send(request, budget)).text();
    const body = await new Response(content).json().catch(() => null);
    if (body === null || typeof body !== "object" || Array.isArray(body)) { // from a proxy or another server
      throw new MailcheckError(`${this.#api} does not respond like mailcheck: ${JSON.stringify(content.slice(0, 60))}`);
    }
    return body;
  }

  async #bytes(path, accept) {
    const response = await this.#send({ method: "GET", path, accept }, new RetryBudget(PATIENCE));
    return new Uint8Array(await response.arrayBuffer());
  }

  /** Read one event stream to its end. Yields the fields of each event. */
  async *#listen(query, budget) {
    let aborting, silence;
    const restartTimer = () => {
      clearTimeout(silence);
      silence = setTimeout(() => aborting.abort(), SILENCE * 1000);
    };
    const signal = () => {
      aborting = new AbortController(); // one for each attempt: retry delays are not silence
      restartTimer();
      return aborting.signal;
    };
    try {
      const stream = { method: "GET", path: "/inbox/events", parameters: query, accept: "text/event-stream", signal };
      const response = await this.#send(stream, budget);
      let rest = "";
      for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
        restartTimer();
        const events = (rest + piece).split("\n\n");
        rest = events.pop();
        for (const event of events) {
          yield Object.fromEntries(event.split("\n").map((line) => line.split(/: (.*)/s, 2)));
        }
      }
    } catch (error) {
      if (error instanceof MailcheckError) throw error;
      throw new MailcheckError(`${this.#api} cannot be reached: ${error.cause?.message ?? error.message}`);
    } finally {
      clearTimeout(silence);
      aborting?.abort();
    }
  }

  /**
   * Send a request, with retries. `seconds` is the time that the service may wait. If `signal` is
   * given, it creates the abort signal of each attempt.
   */
  async #send({ method, path, parameters = {}, seconds = 0, accept = "application/json", signal }, budget) {
    const url = this.#api + path + queryOf(parameters);
    const headers = { Authorization: `Bearer ${this.#key}`, Accept: accept };
    const longest = Math.ceil((seconds + ROUND_TRIP) * 1000); // AbortSignal.timeout requires an integer
    for (;;) {
      const response = await this.#fetch(url, { method, headers, signal: signal?.() ?? AbortSignal.timeout(longest) });
      if (response.ok) return response;
      const body = await response.json().catch(() => ({}));
      if (!(await budget.sleep(retryDelay(response)))) {
        throw new MailcheckError(body.error ?? `HTTP status ${response.status}`, response.status, body);
      }
    }
  }

  async #fetch(url, options) {
    try {
      return await fetch(url, options);
    } catch (error) {
      throw new MailcheckError(`${this.#api} cannot be reached: ${error.cause?.message ?? error.message}`);
    }
  }
}

/** The milliseconds that a call may still spend on retry delays, and those it has spent. */
class RetryBudget {
  spent = 0;
  #longest;
  #left;

  constructor(seconds) {
    this.#longest = seconds * 1000;
    this.renew();
  }

  /** Restore the full budget after a response of the service. */
  renew() {
    this.#left = this.#longest;
  }

  /** Sleep for a retry delay. Returns whether the budget allowed it. */
  async sleep(pause) {
    if (pause === null || pause > this.#left) return false;
    this.#left -= pause;
    this.spent += pause;
    await new Promise((resolve) => setTimeout(resolve, pause));
    return true;
  }
}

/** A tag must be unique; it is no secret. Node 18 has no global `crypto`. */
function randomByte() {
  return globalThis.crypto?.getRandomValues(new Uint8Array(1))[0] ?? Math.floor(Math.random() * 256);
}

function pathOf(id, ...rest) {
  return `/inbox/messages/${[id, ...rest].map(encodeURIComponent).join("/")}`;
}

function queryOf(parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value ?? undefined]) {
      if (one !== undefined) query.append(name, one);
    }
  }
  const text = query.toString();
  return text && `?${text}`;
}

/** Reject unknown options, which would be ignored otherwise. */
function check(options, known) {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw new TypeError(`unknown option ${JSON.stringify(name)}; the options are ${known.join(", ")}`);
  }
}

/** Return the timeout in seconds, from `timeout` or `timeoutMs`. */
function secondsOf({ timeout, timeoutMs }, usual) {
  if (timeoutMs === undefined) return inSeconds("timeout", timeout ?? usual);
  if (timeout !== undefined) throw new TypeError("timeout (seconds) and timeoutMs cannot be combined");
  return inSeconds("timeoutMs", timeoutMs / 1000);
}

function inSeconds(name, seconds) {
  if (!(seconds >= 0)) throw new TypeError(`${name} must be a number, 0 or more`);
  if (name !== "timeoutMs" && seconds > LONGEST_WAIT) {
    throw new RangeError(`${name} must be at most ${LONGEST_WAIT} seconds; got ${seconds}. Use timeoutMs for milliseconds`);
  }
  return seconds;
}

/** Return the milliseconds before a retry, or null if the error is permanent. */
function retryDelay(response) {
  if (response.status !== 429 && response.status !== 503) return null;
  const value = response.headers.get("Retry-After") ?? "1";
  const pauses = [Number(value) * 1000, Date.parse(value) - Date.now()];
  // A proxy may send neither seconds nor a date.
  return Math.max(100, pauses.find((pause) => !Number.isNaN(pause)) ?? 1000);
}
