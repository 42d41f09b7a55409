// Wait for a sign-up mail with fetch and the types that openapi-typescript generates.
import type { components, operations } from "./generated";

type Body<Operation extends keyof operations> =
  operations[Operation] extends { responses: { 200: { content: { "application/json": infer Json } } } } ? Json : never;

declare const process: { env: Record<string, string> };
const { MAILCHECK_API, MAILCHECK_API_KEY } = process.env;

async function call<Operation extends keyof operations>(
  path: string, query: operations[Operation]["parameters"]["query"], method = "GET",
): Promise<Body<Operation>> {
  const words = new URLSearchParams(Object.entries(query ?? {}).map(([name, value]) => [name, String(value)]));
  const response = await fetch(`${MAILCHECK_API}${path}?${words}`, { method, headers: { "X-API-Key": MAILCHECK_API_KEY } });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return response.json();
}

export async function signUp(send: (address: string) => Promise<void>): Promise<string> {
  const address = await call<"getInboxAddress">("/inbox/address", { tag: "typescript", unique: true });
  await send(address.address);
  const mail: components["schemas"]["Message"] = await call<"waitForMessage">(
    "/inbox/wait", { tag: address.tag, after: address.cursor, subject: "Welcome", timeout: 30 });
  const deleted = await call<"deleteMessage">(`/inbox/messages/${mail.id}`, undefined, "DELETE");
  return `${mail.codes[0]} ${mail.links[0]} ${deleted.success}`;
}
