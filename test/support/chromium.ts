import puppeteer, { type Browser } from 'puppeteer-core';
import { onPath } from '../../src/addons/testing/servers/programs.js';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome'];

/** Where a browser of Chromium's kind is: `CHROME_PATH`, or one of its names on the `PATH`. */
export function chromiumPath(): string | undefined {
  return process.env['CHROME_PATH'] ?? NAMES.map((name) => onPath(name)).find((path) => path !== undefined);
}

/** Why tests in a browser are skipped. */
export const NO_CHROMIUM = 'no chromium on the PATH, and no CHROME_PATH: apt-get install chromium';

export async function startChromium(): Promise<Browser> {
  const executablePath = chromiumPath();
  if (executablePath === undefined) throw new Error(NO_CHROMIUM);
  // Without its sandbox, which no root may use: it sees pages of this project alone.
  return await puppeteer.launch({ executablePath, args: ['--no-sandbox', '--force-color-profile=srgb'] });
}
