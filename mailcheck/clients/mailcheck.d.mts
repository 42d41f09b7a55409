// Types of mailcheck.mjs; TypeScript finds them where both files lie side by side.

/** What a mail must be like; all that is given must fit, without case. */
export interface Filters {
  /** Compared whole; empty: only untagged mail. */
  tag?: string;
  tagPrefix?: string;
  /** The recipient, compared whole. */
  to?: string;
  /** A part of the author's name or address. */
  from?: string;
  subject?: string;
  text?: string;
  /** "Name: part", or several of them. */
  header?: string | readonly string[];
  hasAttachment?: boolean;
  /** An ISO 8601 instant. */
  since?: string;
}

/** How long: in seconds (at most 600), or in milliseconds. Not both. */
export interface Timeout {
  timeout?: number;
  timeoutMs?: number;
}

export interface WaitOptions extends Filters, Timeout {
  /** A cursor: only mail that came after it. */
  after?: string;
}

export interface NoneOptions extends Filters {
  /** How long nothing may come; 5 by default. */
  seconds?: number;
  after?: string;
}

export interface EventOptions extends WaitOptions {
  /** Hears of mail that was refused. */
  onRefused?: (mail: RefusedMail) => void;
}

export interface ScoreOptions extends Timeout {
  /** Of 10 points. */
  atLeast?: number;
}

export interface ListOptions extends Filters {
  after?: string;
  limit?: number;
  page?: number;
  /** A search, as in `from:shop newer:2h`. */
  q?: string;
}

/** What an address asks for: its tag and its cursor are its own. */
export type Own<Options> = Omit<Options, "tag" | "after">;

/** What did arrive while a wait was in vain. */
export interface SeenMail {
  receivedAt: string;
  to: string;
  subject: string;
  reasons: string[];
  [field: string]: unknown;
}

/** What was refused while a wait was in vain. */
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

/** The service refused a request, or can't be reached (status 0). */
export declare class MailcheckError extends Error {
  readonly status: number;
  readonly body: Record<string, any>;
}

/** No mail that matches came in time; `seen` and `rejected` say what did. */
export declare class NoMail extends MailcheckError {
  readonly seen: SeenMail[];
  readonly rejected: RefusedMail[];
  readonly cursor: string;
}

/** A mail came, or was refused, where none should; `mail` is what came, if it did. */
export declare class UnexpectedMail extends MailcheckError {
  readonly mail: Mail | null;
  readonly cursor: string;
}

/** A mail's score is lower than asked for. */
export declare class PoorScore extends MailcheckError {
  readonly report: Report;
}

/** A file in a mail. */
export declare class Attachment {
  readonly id: string;
  readonly filename: string;
  readonly contentType: string;
  /** Bytes, decoded. */
  readonly size: number;
  readonly contentId: string | null;
  readonly url: string;
  /** Get its bytes, decoded. */
  content(): Promise<Uint8Array>;
}

/** A mail of a list: without text, HTML, headers and attachments. */
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
  /** The one-time code; throws where the mail has none. */
  readonly code: string;
  /** The link a person would click, or the only one there is. */
  readonly link: string;
  /** Get the mail byte for byte as it was sent. */
  eml(): Promise<Uint8Array>;
  /** Delete it for good. */
  delete(): Promise<void>;
  /** Score it as a deliverability test; throws PoorScore below `atLeast`. */
  score(options?: ScoreOptions): Promise<Report>;
}

/** A whole mail. */
export interface Mail extends ListedMail {
  readonly text: string;
  readonly html: string;
  readonly headers: Record<string, string>;
  readonly headerList: [string, string][];
  readonly attachments: Attachment[];
}
export declare class Mail {}

/** Mails of a list, newest first, and what it says of those that are not in it. */
export declare class Mails<One extends ListedMail = ListedMail> extends Array<One> {
  /** How many match, on all pages. */
  readonly total: number;
  /** Null behind the last one. */
  readonly nextPage: number | null;
  /** How many may match as well: they have just come, and what is in them is not known yet. */
  readonly notSearched: number;
}

/** An inbox address with a tag, and the cursor from which its waits begin. */
export declare class Address {
  readonly email: string;
  readonly tag: string;
  cursor: string;
  /** Wait for the next mail to this address; the one after it next time. */
  wait(options?: Own<WaitOptions>): Promise<Mail>;
  /** Wait for the next `count` mails, 1 to 100; gives whole ones, the oldest first. */
  waitMany(count: number, options?: Own<WaitOptions>): Promise<Mail[]>;
  /** Wait and see that no mail comes which was not waited for already; throws UnexpectedMail. */
  expectNone(options?: Own<NoneOptions>): Promise<void>;
  /** Give each mail to this address as it comes, also over several calls. */
  events(options?: Own<EventOptions>): AsyncGenerator<ListedMail>;
  /** List all mails to this address since it was made, newest first: whole ones. */
  messages(filters?: Omit<Filters, "tag">): Promise<Mails<Mail>>;
  /** Delete all mails to this address for good. */
  delete(): Promise<void>;
  toString(): string;
}

/** A developer inbox, reached with an API key. */
export declare class Mailcheck {
  /** `url` with or without /api/v1; by default MAILCHECK_URL and MAILCHECK_API_KEY. */
  constructor(options?: { url?: string; key?: string });
  /** Make an address nobody has used, for one test; `label` begins its tag. */
  newAddress(label?: string): Promise<Address>;
  /** Give the address of a tag, with the inbox's present cursor. */
  address(tag?: string): Promise<Address>;
  /** Give the inbox's present cursor: take it before the mail is triggered. */
  cursor(): Promise<string>;
  /** Wait for the oldest mail that matches; without `after` and `since` from now on. */
  wait(options?: WaitOptions): Promise<Mail>;
  /** Wait for `count` mails that match, 1 to 100; gives whole ones, the oldest first. */
  waitMany(count: number, options?: WaitOptions): Promise<Mail[]>;
  /** Wait and see that no mail comes that matches, and none is refused; throws UnexpectedMail. */
  expectNone(options?: NoneOptions): Promise<void>;
  /** Give each mail that matches as soon as it comes, for ever or for `timeout` seconds. */
  events(options?: EventOptions): AsyncGenerator<ListedMail>;
  /** List mails, newest first. */
  messages(options?: ListOptions): Promise<Mails>;
  /** Get a whole mail. */
  message(id: string): Promise<Mail>;
  /** Get whole mails for those of a list, one request for each. */
  whole(messages: readonly { readonly id: string }[]): Promise<Mail[]>;
  /** Delete a mail for good. */
  delete(id: string): Promise<void>;
  /** Get a mail byte for byte as it was sent. */
  eml(id: string): Promise<Uint8Array>;
  /** Get the HTML of a mail as a file. */
  html(id: string): Promise<Uint8Array>;
  /** Get an attachment's bytes, decoded. */
  attachment(id: string, attachmentId: string): Promise<Uint8Array>;
  /** Score a mail as a deliverability test; throws PoorScore below `atLeast`. */
  score(id: string, options?: ScoreOptions): Promise<Report>;
  /** Send a request below /api/v1; repeats it while the service asks for patience, in seconds. */
  request(method: string, path: string, parameters?: object, patience?: number): Promise<any>;
}
