// The same conversation through the official TypeScript SDK, 1.x or 2.x (NODE_PATH says where).
// The first argument is the URL of the endpoint, or a command with MCP on its input and output.
const [server, key, mode] = process.argv.slice(2);
const isHttp = server.startsWith("http");

function load() {
  if (mode === "1.x") {
    const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
    const http = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const stdio = require("@modelcontextprotocol/sdk/client/stdio.js");
    return [Client, { ...http, ...stdio }, {}];
  }
  const sdk = require("@modelcontextprotocol/client");
  const stdio = require("@modelcontextprotocol/client/stdio");
  const negotiation = mode === "2026-07-28" ? { pin: mode } : mode;
  return [sdk.Client, { ...sdk, ...stdio }, { versionNegotiation: { mode: negotiation } }];
}

function connect({ StreamableHTTPClientTransport, StdioClientTransport }) {
  const requestInit = { headers: { Authorization: `Bearer ${key}` } };
  if (isHttp) return new StreamableHTTPClientTransport(new URL(server), { requestInit });
  const [command, ...args] = server.split(" ");
  return new StdioClientTransport({ command, args, env: { MAILCHECK_API_KEY: key } });
}

function tell(step, facts = {}) {
  console.log(JSON.stringify({ step, ...facts }));
}

async function main() {
  const [Client, transports, options] = load();
  const client = new Client({ name: "test", version: "1" }, options);
  await client.connect(connect(transports));
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
