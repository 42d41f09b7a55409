// A wait of minutes through the official client of tasks, which polls until the mail is there.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, key, modules] = process.argv.slice(2);
const { resolve } = createRequire(`${modules}/x.js`);
const load = (name) => import(pathToFileURL(resolve(name)));
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
const tasks = await import(
  pathToFileURL(`${modules}/@modelcontextprotocol/ext-tasks/dist/client/index.js`)
);

const VERSION = "2026-07-28";
const info = { name: "test", version: "1" };
const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const authorization = { Authorization: `Bearer ${key}` };
const polls = [];

function tell(step, facts = {}) {
  console.log(JSON.stringify({ step, ...facts }));
}

// The SDK itself does not know results of tasks yet, so the client sends these requests alone.
async function rawDispatch(request, { signal } = {}) {
  const { method, params } = request;
  const body = JSON.stringify({ jsonrpc: "2.0", id: polls.length + 1, ...request });
  polls.push(method);
  if (method === "tasks/get") tell("polling");
  const headers = {
    ...authorization,
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": VERSION,
    "Mcp-Method": method,
    "Mcp-Name": params.taskId ?? params.name,
  };
  const response = await fetch(url, { method: "POST", headers, body, signal });
  const { result, error } = await response.json();
  return error === undefined ? { kind: "result", result } : { kind: "error", error };
}

const client = new Client(info, { capabilities, versionNegotiation: { mode: { pin: VERSION } } });
const requestInit = { headers: authorization };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
const address = (await client.callTool({ name: "new_address", arguments: {} })).structuredContent;
tell("address", address);
const framing = { protocolVersion: VERSION, clientInfo: info, clientCapabilities: capabilities };
const session = tasks.createTaskSessionFromClient(client, {
  endpointId: "mailcheck",
  rawDispatch,
  v2RequestFraming: framing,
});
const wanted = { tag: address.tag, after: address.cursor, timeout: 300 };
const execution = await session.callTool("wait_for_message", wanted);
const { outcome } = await execution.settle();
const { message } = tasks.resultFromTaskOutcome(outcome).structuredContent;
tell("arrived", { codes: message.codes, link: message.bestLink, polls });
await session.close();
await client.close();
process.exit(0);
