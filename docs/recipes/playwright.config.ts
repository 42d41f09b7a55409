// `npx playwright test` starts the shop and tests it in four browsers at a time.
import { defineConfig } from "@playwright/test";

const port = process.env.SHOP_PORT ?? "5000";

export default defineConfig({
  testMatch: "*.spec.ts",
  workers: 4,
  fullyParallel: true,
  // The client waits for up to two minutes when a rate limit is exceeded.
  timeout: 150_000,
  use: {
    baseURL: `http://127.0.0.1:${port}`,
    // Without CHROMIUM, Playwright uses the browser of `npx playwright install chromium`.
    launchOptions: { executablePath: process.env.CHROMIUM },
  },
  webServer: {
    command: `python3 -m flask --app shop run --port ${port}`,
    url: `http://127.0.0.1:${port}/`,
    reuseExistingServer: false,
  },
});
