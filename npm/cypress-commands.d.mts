import type { ListedMail, NoneOptions, Own, WaitOptions } from "./mailcheck.mjs";

export interface CypressAddress {
  readonly email: string;
  readonly tag: string;
  cursor: string;
}

/** A complete mail. Its attachments have `url`, and are downloaded with the key. */
export type CypressMail = Omit<ListedMail, "eml" | "delete" | "score"> & {
  readonly text: string;
  readonly html: string;
  readonly headers: Record<string, string>;
};

declare global {
  namespace Cypress {
    interface Chainable {
      /** Yield a new address for this test. Its tag begins with `label`, by default the title of the test. */
      mailAddress(label?: string): Chainable<CypressAddress>;
      /** Yield the next mail to the address. Another call yields the one after it. */
      waitForMail(address: CypressAddress, filters?: Own<WaitOptions>): Chainable<CypressMail>;
      /** Fail if a further mail to the address arrives. */
      expectNoMail(address: CypressAddress, filters?: Own<NoneOptions>): Chainable<null>;
    }
  }
}
