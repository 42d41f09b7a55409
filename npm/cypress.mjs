// Tasks for Cypress, which run in its Node.js process: on("task", mailcheckTasks()) in setupNodeEvents.

import { Address, Mailcheck } from "./mailcheck.mjs";

/** Return the tasks of the commands. `options` are those of `Mailcheck`. */
export function mailcheckTasks(options = {}) {
  let client;
  const inbox = () => (client ??= new Mailcheck(options));
  const addressOf = ({ email, tag, cursor }) => new Address(inbox(), email, tag, cursor);
  return {
    async "mailcheck:address"(label) {
      const { email, tag, cursor } = await inbox().newAddress(label);
      return { email, tag, cursor };
    },
    async "mailcheck:wait"({ address, filters }) {
      return { ...(await addressOf(address).wait(filters)) };
    },
    async "mailcheck:none"({ address, filters }) {
      await addressOf(address).expectNone(filters);
      return null; // Cypress rejects undefined
    },
  };
}
