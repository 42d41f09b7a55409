// Sign-in of the official TypeScript SDK, 2.x or 1.x, and a call of each tool. The test acts as the
// person: it reads the address of the authorization server, and writes the answer's address.
const { createInterface } = require("node:readline");

const [server, redirectUri, documentUrl, clientId, secret, calls, version] = process.argv.slice(2);

function load() {
  if (version === "1.x") {
    const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
    const http = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { UnauthorizedError } = require("@modelcontextprotocol/sdk/client/auth.js");
    return { Client, UnauthorizedError, ...http };
  }
  return require("@modelcontextprotocol/client");
}

function tell(step, facts = {}) {
  console.log(JSON.stringify({ step, ...facts }));
}

const kept = {};
const provider = {
  redirectUrl: redirectUri,
  clientMetadataUrl: documentUrl || undefined,
  clientMetadata: { client_name: "TypeScript", redirect_uris: [redirectUri] },
  state: () => "typescript",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  redirectToAuthorization: (url) => tell("authorize", { url: url.href }),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
};
if (clientId) kept.client = { client_id: clientId, client_secret: secret || undefined };

async function main() {
  const { Client, StreamableHTTPClientTransport, UnauthorizedError } = load();
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const client = () => new Client({ name: "test", version: "1" });
  const transport = () =>
    new StreamableHTTPClientTransport(new URL(server), { authProvider: provider });
  const first = transport();
  try {
    await client().connect(first);
    throw new Error("connected without tokens");
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
  }
  const { searchParams } = new URL((await lines.next()).value);
  await first.finishAuth(version === "1.x" ? searchParams.get("code") : searchParams);
  const before = kept.tokens.access_token;
  // The access token is lost, so that the client refreshes it.
  kept.tokens = { ...kept.tokens, access_token: "mca_lost" };
  const connected = client();
  await connected.connect(transport());
  tell("tools", { names: (await connected.listTools()).tools.map((tool) => tool.name) });
  for (const [name, args] of JSON.parse(calls)) {
    const { content, isError } = await connected.callTool({ name, arguments: args });
    const text = content.map((part) => part.text ?? "").join(" ");
    tell("called", { name, text: isError ? `failed: ${text}` : text });
  }
  tell("done", { client: kept.client?.client_id, is_new: kept.tokens.access_token !== before });
  await connected.close();
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
