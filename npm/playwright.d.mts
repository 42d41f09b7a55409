import type {
  Fixtures,
  PlaywrightTestArgs,
  PlaywrightTestOptions,
  PlaywrightWorkerArgs,
  PlaywrightWorkerOptions,
  TestType,
} from "@playwright/test";
import type { Address, Mailcheck } from "./mailcheck.mjs";

export interface MailFixtures {
  /** An address for this test only. */
  mailAddress: Address;
}

export interface MailWorkerFixtures {
  /** The client of MAILCHECK_URL and MAILCHECK_API_KEY. */
  mailcheck: Mailcheck;
}

/** Both fixtures, to extend a `test` of your own. */
export declare const fixtures: Fixtures<MailFixtures, MailWorkerFixtures>;

export declare const test: TestType<
  PlaywrightTestArgs & PlaywrightTestOptions & MailFixtures,
  PlaywrightWorkerArgs & PlaywrightWorkerOptions & MailWorkerFixtures
>;

export { expect } from "@playwright/test";
