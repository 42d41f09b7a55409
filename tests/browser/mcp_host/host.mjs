// A host of MCP Apps, made of the official bridge: each card has its own frame, as in a chat.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const HOST = { name: "host", version: "1" };

window.opened = [];

// Show the card of a result, and return when the card has nothing more to load.
window.openCard = async (result, { capabilities, hostContext } = {}) => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.style.cssText = "width: 100%; height: 600px; border: 0";
  document.body.append(frame);
  const bridge = new AppBridge(null, HOST, capabilities ?? { openLinks: {}, serverTools: {} }, { hostContext });
  const heights = [];
  bridge.oncalltool = async ({ name, arguments: given }) => {
    const found = JSON.parse(await window.callTool(name, JSON.stringify(given)));
    // The card shows what it has got before it sends anything else.
    setTimeout(() => frame.dispatchEvent(new Event("called")), 0);
    return found;
  };
  bridge.onopenlink = async ({ url }) => {
    window.opened.push(url);
    return {};
  };
  bridge.onsizechange = ({ height }) => heights.push(height);
  const initialized = new Promise((resolve) => { bridge.oninitialized = resolve; });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.src = "/card";
  await initialized;
  await bridge.sendToolInput({ arguments: {} });
  const called = new Promise((resolve) => frame.addEventListener("called", resolve));
  await bridge.sendToolResult(result);
  await called;
  window.tearDown = () => bridge.teardownResource({});
  return heights.length > 0;
};
