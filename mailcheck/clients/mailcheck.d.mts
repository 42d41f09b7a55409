// Types of mailcheck.mjs and mailcheck.cjs, for which the daemon serves them as mailcheck.d.mts and
// mailcheck.d.cts. TypeScript finds the types if both files are in the same folder.

/** Filters for mail. All must match; case is ignored. */
export interface Filters {
  /** Must be equal. Empty: only mail without a tag. */
  tag?: string;
  tagPrefix?: string;
  /** The recipient. Must be equal. */
  to?: string;
  /** Part of the author's name or address. */
  from?: string;
  subject?: string;
  text?: string;
  /** "Name: part", or several of them. */
  header?: string | readonly string[];
  hasAttachment?: boolean;
  /** An ISO 8601 date and time. */
  since?: string;
}

/** The timeout in seconds (at most 600) or in milliseconds, but not both. */
export interface Timeout {
  timeout?: number;
  timeoutMs?: number;
}

export interface WaitOptions extends Filters, Timeout {
  /** A cursor: only mail that arrived after it. */
  after?: string;
}

export interface NoneOptions extends Filters {
  /** Seconds in which no mail may arrive; 5 by default. */
  seconds?: number;
  after?: string;
}

export interface EventOptions extends WaitOptions {
  /** Called for each rejected mail. */
  onRefused?: (mail: RefusedMail) => void;
}

export interface ScoreOptions extends Timeout {
  /** The required score, of 10 points. */
  atLeast?: number;
}

export interface ListOptions extends Filters {
  after?: string;
  limit?: number;
  page?: number;
  /** A search, such as `from:shop newer:2h`. */
  q?: string;
}

/** The options of an address, which has a tag and a cursor of its own. */
export type Own<Options> = Omit<Options, "tag" | "after">;

/** A mail that arrived but did not match the wait. */
export interface SeenMail {
  receivedAt: string;
  to: string;
  subject: string;
  reasons: string[];
  [field: string]: unknown;
}

/** A mail that was rejected during the wait. */
export interface RefusedMail {
  refusedAt: string;
  to: string;
  reason: string;
  [field: string]: unknown;
}

export interface Deduction {
  check: string;
  id: string;
  points: number;
  meaning: string;
  fix: string;
  [field: string]: unknown;
}

/** The report of a deliverability test. */
export interface Report {
  testId: string;
  status: string;
  /** 0 to 10. */
  score: number;
  deductions: Deduction[];
  checks: Record<string, Record<string, unknown>>;
  [field: string]: unknown;
}

/** The service returned an error, or cannot be reached (status 0). */
export declare class MailcheckError extends Error {
  readonly status: number;
  readonly body: Record<string, any>;
}

/** No matching mail arrived before the timeout. `seen` and `rejected` show what arrived. */
export declare class NoMail extends MailcheckError {
  readonly seen: SeenMail[];
  readonly rejected: RefusedMail[];
  readonly cursor: string;
}

/** A mail arrived or was rejected although none was expected. `mail` is null if it was rejected. */
export declare class UnexpectedMail extends MailcheckError {
  readonly mail: Mail | null;
  readonly cursor: string;
}

/** The score of a mail is lower than required. */
export declare class PoorScore extends MailcheckError {
  readonly report: Report;
}

/** An attachment of a mail. */
export declare class Attachment {
  readonly id: string;
  readonly filename: string;
  readonly contentType: string;
  /** Number of decoded bytes. */
  readonly size: number;
  readonly contentId: string | null;
  readonly url: string;
  /** Download the decoded bytes. */
  content(): Promise<Uint8Array>;
}

/** A mail of a list, without text, HTML, headers and attachments. */
export interface ListedMail {
  readonly id: string;
  readonly to: string;
  readonly tag: string;
  readonly from: { readonly address: string; readonly name: string };
  readonly subject: string;
  readonly receivedAt: string;
  readonly expiresAt: string;
  readonly links: string[];
  readonly codes: string[];
  readonly bestLink: string | null;
  readonly shareUrl: string;
  readonly cursor: string;
  readonly [field: string]: any;
  /** The one-time code. Throws if the mail contains none. */
  readonly code: string;
  /** The link that a person would click. */
  readonly link: string;
  /** Return the exact bytes of the mail. */
  eml(): Promise<Uint8Array>;
  /** Delete the mail permanently. */
  delete(): Promise<void>;
  /** Run a deliverability test of the mail. Throws PoorScore if the score is below `atLeast`. */
  score(options?: ScoreOptions): Promise<Report>;
}

/** A complete mail. */
export interface Mail extends ListedMail {
  readonly text: string;
  readonly html: string;
  readonly headers: Record<string, string>;
  readonly headerList: [string, string][];
  readonly attachments: Attachment[];
}
export declare class Mail {}

/** A page of a list of mails, newest first. */
export declare class Mails<One extends ListedMail = ListedMail> extends Array<One> {
  /** Number of matching mails on all pages. */
  readonly total: number;
  /** Null on the last page. */
  readonly nextPage: number | null;
  /** Number of further mails that may match: they have just arrived and are not parsed yet. */
  readonly notSearched: number;
}

/** An inbox address with a tag, and the cursor from which its waits begin. */
export declare class Address {
  readonly email: string;
  readonly tag: string;
  cursor: string;
  /** Wait for the next mail to this address. Another call returns the one after it. */
  wait(options?: Own<WaitOptions>): Promise<Mail>;
  /** Wait for the next `count` mails, 1 to 100. Returns complete mails, the oldest first. */
  waitMany(count: number, options?: Own<WaitOptions>): Promise<Mail[]>;
  /** Check that no further mail to this address arrives. Throws UnexpectedMail. */
  expectNone(options?: Own<NoneOptions>): Promise<void>;
  /** Yield each mail to this address when it arrives. */
  events(options?: Own<EventOptions>): AsyncGenerator<ListedMail>;
  /** List all mails to this address since it was created, newest first, as complete mails. */
  messages(filters?: Omit<Filters, "tag">): Promise<Mails<Mail>>;
  /** Delete all mails to this address permanently. */
  delete(): Promise<void>;
  toString(): string;
}

/** A developer inbox, accessed with an API key. */
export declare class Mailcheck {
  /** `url` with or without /api/v1. The defaults are MAILCHECK_URL and MAILCHECK_API_KEY. */
  constructor(options?: { url?: string; key?: string });
  /** Create a new, unique address for one test. Its tag begins with `label`. */
  newAddress(label?: string): Promise<Address>;
  /** Return the address with a tag, and the current cursor. */
  address(tag?: string): Promise<Address>;
  /** Return the current cursor. Take it before you trigger the mail. */
  cursor(): Promise<string>;
  /** Wait for the oldest matching mail; without `after` and `since`, the newest of the last ten minutes or the next. */
  wait(options?: WaitOptions): Promise<Mail>;
  /** Wait for `count` matching mails, 1 to 100. Returns complete mails, the oldest first. */
  waitMany(count: number, options?: WaitOptions): Promise<Mail[]>;
  /** Check that no matching mail arrives or is rejected. Throws UnexpectedMail. */
  expectNone(options?: NoneOptions): Promise<void>;
  /** Yield each matching mail when it arrives, for `timeout` seconds or without end. */
  events(options?: EventOptions): AsyncGenerator<ListedMail>;
  /** List mails, newest first. */
  messages(options?: ListOptions): Promise<Mails>;
  /** Return a complete mail. */
  message(id: string): Promise<Mail>;
  /** Return the complete mails of a list, with one request for each. */
  whole(messages: readonly { readonly id: string }[]): Promise<Mail[]>;
  /** Delete a mail permanently. */
  delete(id: string): Promise<void>;
  /** Return the exact bytes of a mail. */
  eml(id: string): Promise<Uint8Array>;
  /** Return the HTML of a mail. */
  html(id: string): Promise<Uint8Array>;
  /** Return the decoded bytes of an attachment. */
  attachment(id: string, attachmentId: string): Promise<Uint8Array>;
  /** Run a deliverability test of a mail. Throws PoorScore if the score is below `atLeast`. */
  score(id: string, options?: ScoreOptions): Promise<Report>;
  /** Send a request below /api/v1. On 429 and 503 it is retried for up to `patience` seconds. */
  request(method: string, path: string, parameters?: object, patience?: number): Promise<any>;
}
