// Waits for the mail that a program under test sends. One file, no
// dependencies, Node 18 or newer (keys are secret: not for browsers).
// Types for TypeScript are in mailcheck.d.mts, to lie beside it.
//
//   import { Mailcheck } from "./mailcheck.mjs";
//
//   const inbox = new Mailcheck();                     // MAILCHECK_URL, MAILCHECK_API_KEY
//   const address = await inbox.newAddress("signup");  // before the mail is triggered
//   await signUp(address.email);
//   const mail = await address.wait();                 // the next mail to this very address
//   expect(mail.code).toBe("482913");
//
// Nothing here guesses or looks back in time: an address carries a cursor that
// was taken before it was made, and a wait returns the oldest mail that came
// after it. The mailbox and its cursor are asked for once in a process; the tags
// are made here. So a test costs one request for each mail.
//
// A wait in vain throws NoMail, which says what did arrive instead. Where the
// service asks for patience (429, or 503, with Retry-After), a call waits for up
// to two minutes in all, which no wait's own time-out counts; beyond that it
// throws what the service said.

import { randomBytes } from "node:crypto";

const DEFAULT_URL = "http://127.0.0.1:8080";
const API_PATH = "/api/v1";
const LONGEST_POLL = 55; // seconds a single request waits; longer waits are made of several
const ROUND_TRIP = 10; // seconds a response may take beyond the wait itself
const SILENCE = 45; // seconds after which a stream of events is broken: it says something every 15
const PATIENCE = 120; // seconds that a call waits in all where it is put off
const LONGEST_WAIT = 600; // seconds; more are milliseconds that were meant as such
const LARGEST_PAGE = 100;
const LONGEST_LABEL = 24;
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";
const ENDING = 10; // random characters of a tag: 50 bits

const FILTERS = ["tag", "tagPrefix", "to", "from", "subject", "text", "header", "hasAttachment", "since"];

/** The service refused a request, or can't be reached (status 0). */
export class MailcheckError extends Error {
  constructor(message, status = 0, body = {}) {
    super(message);
    this.name = new.target.name;
    this.status = status;
    this.body = body;
  }
}

/** No mail that matches came in time; `seen` and `rejected` say what did. */
export class NoMail extends MailcheckError {
  constructor(body) {
    const lines = [body.error ?? "no matching message arrived in time"];
    for (const mail of body.seen ?? []) {
      const reasons = mail.reasons.join("; ") || "it matches, but came after the wait ended";
      lines.push(`  arrived ${mail.receivedAt} for ${mail.to}, ${JSON.stringify(mail.subject)}: ${reasons}`);
    }
    for (const mail of body.rejected ?? []) {
      lines.push(`  refused ${mail.refusedAt} for ${mail.to}: ${mail.reason}`);
    }
    super(lines.join("\n"), 408, body);
    this.seen = body.seen ?? [];
    this.rejected = body.rejected ?? [];
    this.cursor = body.cursor;
  }
}

/** A mail came, or was refused, where none should; `mail` is what came, if it did. */
export class UnexpectedMail extends MailcheckError {
  constructor(body, mail) {
    super(body.error ?? "a mail came that should not", 409, body);
    this.mail = mail;
    this.cursor = body.cursor;
  }
}

/** A mail's score is lower than asked for; `report` is the whole report. */
export class PoorScore extends MailcheckError {
  constructor(report, atLeast) {
    const lines = [`the mail scores ${report.score} of 10, not ${atLeast}`];
    for (const one of report.deductions ?? []) lines.push(`  -${one.points} ${one.id}: ${one.fix || one.meaning}`);
    super(lines.join("\n"), 200, report);
    this.report = report;
  }
}

/** A file in a mail. */
export class Attachment {
  #client;
  #messageId;

  constructor(client, messageId, fields) {
    this.#client = client;
    this.#messageId = messageId;
    Object.assign(this, fields);
  }

  /** Get its bytes, decoded. */
  content() {
    return this.#client.attachment(this.#messageId, this.id);
  }
}

/** A message as the API gives it, with what tests ask for most at hand. */
export class Mail {
  #client;

  constructor(client, fields) {
    this.#client = client;
    Object.assign(this, fields);
    if (fields.attachments) {
      this.attachments = fields.attachments.map((one) => new Attachment(client, fields.id, one));
    }
  }

  /** The one-time code; throws where the mail has none. */
  get code() {
    if (!this.codes.length) {
      throw new MailcheckError(`no one-time code in the mail ${JSON.stringify(this.subject)}`);
    }
    return this.codes[0];
  }

  /** The link a person would click, or the only one there is. */
  get link() {
    if (this.bestLink) return this.bestLink;
    if (this.links.length === 1) return this.links[0];
    throw new MailcheckError(
      `${this.links.length} links in the mail ${JSON.stringify(this.subject)}, none to click: ${this.links.join(" ")}`,
    );
  }

  /** Get the mail byte for byte as it was sent. */
  eml() {
    return this.#client.eml(this.id);
  }

  /** Delete it for good. */
  delete() {
    return this.#client.delete(this.id);
  }

  /** Score it as a deliverability test; gives the report, or throws PoorScore below `atLeast` of 10. */
  score(options = {}) {
    return this.#client.score(this.id, options);
  }
}

/**
 * Mails of a list, newest first: an array that also says what is not in it. `total` counts all that
 * match, on all pages; `nextPage` is a number, or null behind the last one. `notSearched` counts mails
 * that may match as well: they have just come, and what is in them is not known yet.
 */
export class Mails extends Array {
  static [Symbol.species] = Array; // what is made of it (map, filter, ...) is a plain array

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

  /** Wait for the next mail to this address; the one after it next time. */
  async wait(options = {}) {
    const mail = await this.#client.wait({ after: this.cursor, ...this.#own(options, WAIT_OPTIONS) });
    this.cursor = mail.cursor;
    return mail;
  }

  /** Wait for the next `count` mails to this address, 1 to 100; gives whole ones, the oldest first. */
  async waitMany(count, options = {}) {
    const own = this.#own(options, WAIT_OPTIONS);
    const mails = await this.#client.waitMany(count, { after: this.cursor, ...own });
    this.cursor = mails.at(-1).cursor;
    return mails;
  }

  /** Wait and see that no mail comes which was not waited for already; throws UnexpectedMail. */
  async expectNone(options = {}) {
    await this.#client.expectNone({ after: this.cursor, ...this.#own(options, NONE_OPTIONS) });
  }

  /** Give each mail to this address as it comes, also over several calls. */
  async *events(options = {}) {
    const own = this.#own(options, EVENT_OPTIONS);
    for await (const mail of this.#client.events({ after: this.cursor, ...own })) {
      this.cursor = mail.cursor;
      yield mail;
    }
  }

  /** List all mails to this address since it was made, newest first: whole ones. */
  async messages(filters = {}) {
    const asked = { ...this.#own(filters, FILTERS), after: this.#madeAt, limit: LARGEST_PAGE };
    const found = [];
    let body;
    for (let page = 1; page !== null; page = body.nextPage) {
      body = await this.#client.request("GET", "/inbox/messages", { ...asked, page });
      found.push(...(await this.#client.whole(body.messages)));
    }
    return new Mails(found, body);
  }

  /** Delete all mails to this address for good. */
  async delete() {
    await this.#client.request("DELETE", "/inbox/messages", { tag: this.tag });
  }

  toString() {
    return this.email;
  }

  #own(options, known) {
    // Its tag and its cursor are its own.
    const others = known.filter((name) => name !== "tag" && name !== "after");
    check(options, others);
    return { ...options, tag: this.tag };
  }
}

const WAIT_OPTIONS = [...FILTERS, "after", "timeout", "timeoutMs"];
const EVENT_OPTIONS = [...WAIT_OPTIONS, "onRefused"];
const NONE_OPTIONS = [...FILTERS, "after", "seconds"];
const LIST_OPTIONS = [...FILTERS, "after", "limit", "page", "q"];

/** A developer inbox, reached with an API key. */
export class Mailcheck {
  static #mailboxes = new Map(); // of the process: promises, so that it is asked for once

  #api;
  #key;

  constructor(options = {}) {
    check(options, ["url", "key"]);
    const url = (options.url || process.env.MAILCHECK_URL || DEFAULT_URL).trim().replace(/\/+$/, "");
    this.#api = (url.endsWith(API_PATH) ? url.slice(0, -API_PATH.length) : url) + API_PATH;
    this.#key = (options.key || process.env.MAILCHECK_API_KEY || "").trim();
    if (!this.#key) throw new MailcheckError("no API key: pass { key } or set MAILCHECK_API_KEY");
    if (!/^[!-~]+$/.test(this.#key)) {
      throw new MailcheckError("the API key holds a space, a line break or a letter that none has");
    }
  }

  /** Make an address nobody has used, for one test; `label` begins its tag. */
  async newAddress(label = "") {
    const { mailbox, domain, cursor } = await this.#mailbox();
    const words = label.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, LONGEST_LABEL);
    const begin = words.replace(/^-+|-+$/g, "");
    const ending = Array.from(randomBytes(ENDING), (byte) => BASE32[byte % 32]).join("");
    const tag = begin ? `${begin}-${ending}` : ending;
    return new Address(this, `${mailbox}+${tag}@${domain}`, tag, cursor);
  }

  /** Give the address of a tag, with the inbox's present cursor. */
  async address(tag = "") {
    const found = await this.request("GET", "/inbox/address", { tag });
    return new Address(this, found.address, found.tag, found.cursor);
  }

  /** Give the inbox's present cursor: take it before the mail is triggered. */
  async cursor() {
    return (await this.request("GET", "/inbox/address")).cursor;
  }

  /**
   * Wait for the oldest mail that matches. Pass a cursor as `after`; without it, and
   * without `since`, only mail that comes from now on counts.
   */
  async wait(options = {}) {
    check(options, WAIT_OPTIONS);
    return new Mail(this, await this.#wait("/inbox/wait", options));
  }

  /** Wait for `count` mails that match, 1 to 100; gives whole ones, the oldest first. */
  async waitMany(count, options = {}) {
    check(options, WAIT_OPTIONS);
    const body = await this.#wait("/inbox/wait/many", { ...options, count });
    return this.whole(body.messages);
  }

  /**
   * Wait and see that no mail comes that matches, and none is refused: counted from the
   * cursor `after`, without it from now on. Throws UnexpectedMail.
   */
  async expectNone({ seconds = 5, after, ...filters } = {}) {
    check(filters, FILTERS);
    const patience = new Patience(PATIENCE);
    const end = Date.now() + inSeconds("seconds", seconds) * 1000;
    for (;;) {
      const left = Math.max(1, Math.min(LONGEST_POLL, (end + patience.spent - Date.now()) / 1000));
      const parameters = { ...filters, after, seconds: left.toFixed(3) };
      const asked = { method: "GET", path: "/inbox/wait/none", parameters, seconds: left };
      try {
        after = (await this.#json(asked, patience)).cursor;
      } catch (error) {
        if (error.status !== 409) throw error;
        const message = error.body.message;
        throw new UnexpectedMail(error.body, message ? new Mail(this, message) : null);
      }
      if (Date.now() >= end + patience.spent) return;
    }
  }

  /**
   * Give each mail that matches as soon as it comes, as a list has it: behind the cursor
   * `after`, without it from now on, for `timeout` seconds, without it for ever; being put
   * off is not counted. One request; where the connection breaks it goes on, with none left
   * out or given twice.
   */
  async *events(options = {}) {
    check(options, EVENT_OPTIONS);
    const { timeout, timeoutMs, onRefused, ...asked } = options;
    const isEndless = timeout === undefined && timeoutMs === undefined;
    const end = isEndless ? Infinity : Date.now() + secondsOf({ timeout, timeoutMs }) * 1000;
    const patience = new Patience(PATIENCE);
    for (;;) {
      const left = end + patience.spent - Date.now();
      if (left <= 0) return;
      if (!isEndless) asked.seconds = Math.max(1, left / 1000).toFixed(3);
      try {
        for await (const { event, data, id } of this.#listen(asked, patience)) {
          patience.renew();
          if (id) asked.after = id;
          if (event === "message") yield new Mail(this, JSON.parse(data));
          else if (event === "refused") onRefused?.(JSON.parse(data));
          else if (event === "closed") throw new MailcheckError(JSON.parse(data).error);
        }
      } catch (error) {
        if (error.status !== 0 || !(await patience.sleep(1000))) throw error;
      }
    }
  }

  /** List mails, newest first: a page of `limit`, 1 to 100, and 50 by default. */
  async messages(options = {}) {
    check(options, LIST_OPTIONS);
    const body = await this.request("GET", "/inbox/messages", options);
    const mails = body.messages.map((message) => new Mail(this, message));
    return new Mails(mails, body);
  }

  /** Get a whole mail. */
  async message(id) {
    return new Mail(this, await this.request("GET", pathOf(id)));
  }

  /** Get whole mails for those of a list, one request for each. */
  async whole(messages) {
    const mails = [];
    for (const { id } of messages) mails.push(await this.message(id));
    return mails;
  }

  /** Delete a mail for good. */
  async delete(id) {
    await this.request("DELETE", pathOf(id));
  }

  /** Get a mail byte for byte as it was sent. */
  eml(id) {
    return this.#bytes(pathOf(id, "raw"), "message/rfc822");
  }

  /** Get the HTML of a mail as a file. */
  html(id) {
    return this.#bytes(pathOf(id, "html"), "*/*");
  }

  /** Get an attachment's bytes, decoded. */
  attachment(id, attachmentId) {
    return this.#bytes(pathOf(id, "attachments", attachmentId), "*/*");
  }

  /** Score a mail as a deliverability test; gives the report, or throws PoorScore below `atLeast` of 10. */
  async score(id, options = {}) {
    check(options, ["atLeast", "timeout", "timeoutMs"]);
    const { atLeast = 0 } = options;
    const { testId } = await this.request("POST", pathOf(id, "test"));
    const report = await this.#poll(`/test/${encodeURIComponent(testId)}/wait`, secondsOf(options, 60), {});
    if (report.score === undefined) {
      const why = report.failure ?? `the test is ${report.status}`;
      throw new MailcheckError(`the mail has no score: ${why}`, 200, report);
    }
    if (report.score < atLeast) throw new PoorScore(report, atLeast);
    return report;
  }

  /** Send a request, gives its JSON; repeats it while the service asks for patience (429, 503). */
  request(method, path, parameters = {}, patience = PATIENCE) {
    const seconds = Number(parameters.timeout ?? 0);
    return this.#json({ method, path, parameters, seconds }, new Patience(patience));
  }

  // Nothing has come yet to a tag that is made later: any earlier cursor is before its mail.
  #mailbox() {
    const name = JSON.stringify([this.#api, this.#key]);
    const asked = Mailcheck.#mailboxes.get(name) ?? this.request("GET", "/inbox/address");
    Mailcheck.#mailboxes.set(name, asked);
    asked.catch(() => Mailcheck.#mailboxes.delete(name));
    return asked;
  }

  async #wait(path, { timeout, timeoutMs, ...asked }) {
    const seconds = secondsOf({ timeout, timeoutMs }, 30);
    if (asked.after === undefined && asked.since === undefined) asked.after = await this.cursor();
    try {
      return await this.#poll(path, seconds, asked);
    } catch (error) {
      throw error.status === 408 ? new NoMail(error.body) : error;
    }
  }

  /** Repeat a long poll until it has an answer, or the time-out is over: then it is 408. */
  async #poll(path, timeout, asked) {
    const patience = new Patience(PATIENCE);
    const deadline = Date.now() + timeout * 1000;
    for (;;) {
      const left = Math.max(1, Math.min(LONGEST_POLL, (deadline + patience.spent - Date.now()) / 1000));
      const parameters = { ...asked, timeout: left.toFixed(3) };
      try {
        return await this.#json({ method: "GET", path, parameters, seconds: left }, patience);
      } catch (error) {
        if (error.status !== 408 || Date.now() >= deadline + patience.spent) throw error;
      }
    }
  }

  async #json(asked, patience) {
    const content = await (await this.#send(asked, patience)).text();
    const body = await new Response(content).json().catch(() => null);
    if (body === null || typeof body !== "object" || Array.isArray(body)) { // a page of a proxy, or another server
      throw new MailcheckError(`${this.#api} does not answer as mailcheck does: ${JSON.stringify(content.slice(0, 60))}`);
    }
    return body;
  }

  async #bytes(path, accept) {
    const response = await this.#send({ method: "GET", path, accept }, new Patience(PATIENCE));
    return new Uint8Array(await response.arrayBuffer());
  }

  /** Read one stream of events to its end: the fields of each. */
  async *#listen(asked, patience) {
    let aborting, silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => aborting.abort(), SILENCE * 1000);
    };
    const signal = () => {
      aborting = new AbortController(); // for each attempt: to be put off is no silence
      heard();
      return aborting.signal;
    };
    try {
      const stream = { method: "GET", path: "/inbox/events", parameters: asked, accept: "text/event-stream", signal };
      const response = await this.#send(stream, patience);
      let rest = "";
      for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
        heard();
        const events = (rest + piece).split("\n\n");
        rest = events.pop();
        for (const event of events) {
          yield Object.fromEntries(event.split("\n").map((line) => line.split(/: (.*)/s, 2)));
        }
      }
    } catch (error) {
      if (error instanceof MailcheckError) throw error;
      throw new MailcheckError(`${this.#api} can't be reached: ${error.cause?.message ?? error.message}`);
    } finally {
      clearTimeout(silence);
      aborting?.abort();
    }
  }

  /**
   * Send a request until it is not put off. `seconds` is what it waits by itself; where `signal` is
   * given, it makes what ends an attempt instead.
   */
  async #send({ method, path, parameters = {}, seconds = 0, accept = "application/json", signal }, patience) {
    const url = this.#api + path + queryOf(parameters);
    const headers = { Authorization: `Bearer ${this.#key}`, Accept: accept };
    const longest = Math.ceil((seconds + ROUND_TRIP) * 1000); // a time-out refuses parts of milliseconds
    for (;;) {
      const response = await this.#fetch(url, { method, headers, signal: signal?.() ?? AbortSignal.timeout(longest) });
      if (response.ok) return response;
      const body = await response.json().catch(() => ({}));
      if (!(await patience.sleep(pauseOf(response)))) {
        throw new MailcheckError(body.error ?? `HTTP status ${response.status}`, response.status, body);
      }
    }
  }

  async #fetch(url, options) {
    try {
      return await fetch(url, options);
    } catch (error) {
      throw new MailcheckError(`${this.#api} can't be reached: ${error.cause?.message ?? error.message}`);
    }
  }
}

/** How long a call may still be put off, and how long it was; milliseconds. */
class Patience {
  spent = 0;
  #longest;
  #left;

  constructor(seconds) {
    this.#longest = seconds * 1000;
    this.renew();
  }

  /** Be as patient as at the beginning: the service has answered. */
  renew() {
    this.#left = this.#longest;
  }

  /** Sleep as long as the service asks; tells whether that was possible. */
  async sleep(pause) {
    if (pause === null || pause > this.#left) return false;
    this.#left -= pause;
    this.spent += pause;
    await new Promise((resolve) => setTimeout(resolve, pause));
    return true;
  }
}

function pathOf(id, ...rest) {
  return `/inbox/messages/${[id, ...rest].map(encodeURIComponent).join("/")}`;
}

function queryOf(parameters) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value ?? undefined]) {
      if (one !== undefined) given.append(name, one);
    }
  }
  const query = given.toString();
  return query && `?${query}`;
}

/** Refuse options that there are not, which would be overlooked otherwise. */
function check(options, known) {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw new TypeError(`there is no option ${JSON.stringify(name)}; there are: ${known.join(", ")}`);
  }
}

/** Read `timeout` in seconds, or `timeoutMs`. */
function secondsOf({ timeout, timeoutMs }, usual) {
  if (timeoutMs === undefined) return inSeconds("timeout", timeout ?? usual);
  if (timeout !== undefined) throw new TypeError("give timeout (seconds) or timeoutMs, not both");
  return inSeconds("timeoutMs", timeoutMs / 1000);
}

function inSeconds(name, seconds) {
  if (!(seconds >= 0)) throw new TypeError(`${name} is a number, 0 or more`);
  if (name !== "timeoutMs" && seconds > LONGEST_WAIT) {
    throw new RangeError(`${name} is seconds, up to ${LONGEST_WAIT}; you gave ${seconds}: milliseconds? They are timeoutMs`);
  }
  return seconds;
}

/** Give the milliseconds to wait before the request is worth repeating, or null. */
function pauseOf(response) {
  if (response.status !== 429 && response.status !== 503) return null;
  const value = response.headers.get("Retry-After") ?? "1";
  const pauses = [Number(value) * 1000, Date.parse(value) - Date.now()];
  // What a proxy has written there may be neither seconds nor a date.
  return Math.max(100, pauses.find((pause) => !Number.isNaN(pause)) ?? 1000);
}
