// Waits for the mail that a program under test sends. One file, no
// dependencies, Node 18 or newer (keys are secret: not for browsers).
//
//   import { Mailcheck } from "./mailcheck.mjs";
//
//   const inbox = new Mailcheck();                     // MAILCHECK_URL, MAILCHECK_API_KEY
//   const address = await inbox.newAddress("signup");  // before the mail is triggered
//   await signUp(address.email);
//   const mail = await address.wait();                 // the next mail to this very address
//   expect(mail.code).toBe("482913");
//
// An address carries the cursor of the moment it was made, and a wait returns
// the oldest mail that came after it: no clock, no look-back, no race. A wait in
// vain throws NoMail, which says what did arrive instead. Requests over the
// limit wait as long as the service asks (Retry-After).

const DEFAULT_URL = "http://127.0.0.1:8080";
const LONGEST_POLL = 55; // seconds a single request waits; longer waits are made of several
const ROUND_TRIP = 10; // seconds a response may take beyond the wait itself
const PATIENCE = 60; // seconds that a request other than a wait may be put off

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

/** A message as the API gives it, with what tests ask for most at hand. */
export class Mail {
  constructor(fields) {
    Object.assign(this, fields);
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
}

/** An inbox address with a tag, and the cursor from which its waits begin. */
export class Address {
  #client;

  constructor(client, { address, tag, cursor }) {
    this.#client = client;
    this.email = address;
    this.tag = tag;
    this.cursor = cursor;
  }

  /** Wait for the next mail to this address; the one after it next time. Seconds. */
  async wait({ timeout = 30, ...filters } = {}) {
    const mail = await this.#client.wait({ ...filters, tag: this.tag, after: this.cursor, timeout });
    this.cursor = mail.cursor;
    return mail;
  }

  /** List the mails to this address, newest first. */
  messages() {
    return this.#client.messages({ tag: this.tag });
  }

  toString() {
    return this.email;
  }
}

/** A developer inbox, reached with an API key. */
export class Mailcheck {
  #api;
  #key;

  constructor({ url = process.env.MAILCHECK_URL || DEFAULT_URL, key = process.env.MAILCHECK_API_KEY } = {}) {
    if (!key) throw new MailcheckError("no API key: pass { key } or set MAILCHECK_API_KEY");
    this.#api = `${url.replace(/\/+$/, "")}/api/v1`;
    this.#key = key;
  }

  /** Make an address nobody has used, for one test; `label` begins its tag. */
  async newAddress(label) {
    const parameters = { tag: label || undefined, unique: "true" };
    return new Address(this, await this.request("GET", "/inbox/address", { parameters }));
  }

  /** Give the address of a tag, with the inbox's present cursor. */
  async address(tag = "") {
    return new Address(this, await this.request("GET", "/inbox/address", { parameters: { tag } }));
  }

  /**
   * Wait for the oldest mail that matches: tag, after, since, subject, from, to.
   * Pass the cursor of an address as `after`; without it only mail that comes
   * from now on counts. `timeout` is in seconds.
   */
  async wait({ timeout = 30, ...filters } = {}) {
    const deadline = Date.now() + timeout * 1000;
    if (filters.after === undefined && filters.since === undefined) {
      filters.after = (await this.request("GET", "/inbox/address")).cursor;
    }
    for (;;) {
      const left = (deadline - Date.now()) / 1000;
      const seconds = Math.max(1, Math.min(LONGEST_POLL, left));
      const parameters = { ...filters, timeout: seconds.toFixed(3) };
      try {
        return new Mail(await this.request("GET", "/inbox/wait", { parameters, seconds, deadline }));
      } catch (error) {
        if (error.status !== 408) throw error;
        if (Date.now() >= deadline) throw new NoMail(error.body);
      }
    }
  }

  /** List mails, newest first: tag, since, after, limit, page, q. */
  async messages(parameters = {}) {
    const body = await this.request("GET", "/inbox/messages", { parameters });
    return body.messages.map((message) => new Mail(message));
  }

  /** Get a whole mail. */
  async message(id) {
    return new Mail(await this.request("GET", `/inbox/messages/${encodeURIComponent(id)}`));
  }

  /** Delete a mail for good. */
  async delete(id) {
    await this.request("DELETE", `/inbox/messages/${encodeURIComponent(id)}`);
  }

  /** Send a request; repeats it while the service asks for patience (429, 503). */
  async request(method, path, { parameters = {}, seconds = 0, deadline = Date.now() + PATIENCE * 1000 } = {}) {
    const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null);
    const query = given.length ? `?${new URLSearchParams(given)}` : "";
    for (;;) {
      const response = await this.#fetch(method, this.#api + path + query, seconds + ROUND_TRIP);
      const body = await response.json().catch(() => ({}));
      if (response.ok) return body;
      const pause = pauseOf(response);
      if (pause === null || Date.now() + pause * 1000 > deadline) {
        throw new MailcheckError(body.error ?? `HTTP status ${response.status}`, response.status, body);
      }
      await new Promise((resolve) => setTimeout(resolve, pause * 1000));
    }
  }

  async #fetch(method, url, seconds) {
    const headers = { Authorization: `Bearer ${this.#key}`, Accept: "application/json" };
    try {
      return await fetch(url, { method, headers, signal: AbortSignal.timeout(seconds * 1000) });
    } catch (error) {
      throw new MailcheckError(`${this.#api} can't be reached: ${error.cause?.message ?? error.message}`);
    }
  }
}

function pauseOf(response) {
  if (response.status !== 429 && response.status !== 503) return null;
  const value = response.headers.get("Retry-After") ?? "1";
  const seconds = Number(value);
  return Math.max(0.1, Number.isNaN(seconds) ? (Date.parse(value) - Date.now()) / 1000 : seconds);
}
