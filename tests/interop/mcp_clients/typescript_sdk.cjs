// The same conversation through the official TypeScript SDK, 1.x or 2.x (NODE_PATH says where).
const [url, key, mode] = process.argv.slice(2);

function load() {
  if (mode === "1.x") {
    const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
    const transports = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
    return [Client, transports.StreamableHTTPClientTransport, {}];
  }
  const sdk = require("@modelcontextprotocol/client");
  const negotiation = mode === "2026-07-28" ? { pin: mode } : mode;
  const options = { versionNegotiation: { mode: negotiation } };
  return [sdk.Client, sdk.StreamableHTTPClientTransport, options];
}

function tell(step, facts = {}) {
  console.log(JSON.stringify({ step, ...facts }));
}

async function main() {
  const [Client, Transport, options] = load();
  const client = new Client({ name: "test", version: "1" }, options);
  const requestInit = { headers: { Authorization: `Bearer ${key}` } };
  await client.connect(new Transport(new URL(url), { requestInit }));
  const call = (name, args, more) =>
    mode === "1.x"
      ? client.callTool({ name, arguments: args }, undefined, more)
      : client.callTool({ name, arguments: args }, more);

  tell("tools", { names: (await client.listTools()).tools.map((tool) => tool.name) });
  const address = (await call("new_address", {})).structuredContent;
  tell("address", address);
  const progress = [];
  const wanted = { tag: address.tag, after: address.cursor, timeout: 20 };
  const onprogress = ({ progress: done }) => {
    progress.push(done);
    tell("waiting");
  };
  const { message } = (await call("wait_for_message", wanted, { onprogress })).structuredContent;
  tell("arrived", { codes: message.codes, link: message.bestLink, progress });
  const abort = new AbortController();
  const unwanted = { signal: abort.signal, onprogress: () => abort.abort("no longer wanted") };
  await call("wait_for_message", { tag: "never" }, unwanted).catch(() => tell("cancelled"));
  // In the handshake era the cancellation is a message of its own, on its way beside the next call.
  await new Promise((resume) => setTimeout(resume, 500));
  const again = await call("wait_for_message", { tag: "never", timeout: 1 });
  tell("timed out", { said: again.structuredContent.timedOut });
  const failed = await call("get_message", { id: "nothing" });
  tell("failed", { is_error: failed.isError, text: failed.content[0].text });
  await call("no_such_tool", {}).catch((error) => tell("refused", { code: error.code }));
  await client.close();
}

main();
