// Each view in a headless Chromium. Items are those of docs/spec/time-and-sql.md.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import puppeteer from 'puppeteer-core';
import { Client } from './client.mjs';
import { seed } from './seed.mjs';

const { values: flags } = parseArgs({ options: Object.fromEntries(['rowplane', 'chromium', 'data', 'pictures'].map(name => [name, { type: 'string' }])) });
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const web = '#/object/deployments.apps/shop/web';

const sql = statement => `#/sql?q=${encodeURIComponent(statement)}`;
const podsOfNodes = 'SELECT spec_node_name AS node, count(*) AS pods FROM pods GROUP BY 1 ORDER BY 2 DESC';
/// Views by name: the address, and a selector that is there when the view is complete.
const views = {
  changes: ['#/', '.changes tbody tr, .notice + form + .day'],
  events: ['#/?show=events', 'table'],
  pods: ['#/objects/pods', '.scroll tbody tr'],
  kinds: ['#/objects/nodes?sort=-Name', '.scroll tbody tr'],
  yaml: [web, 'pre.code'],
  history: [`${web}?tab=history`, '.scroll tbody tr, main > .notice'],
  diff: [`${web}?tab=diff`, 'pre.diff, main > .notice'],
  blame: [`${web}?tab=blame`, 'table.blame'],
  secret: ['#/object/secrets/payments/ledger-db', 'pre.code'],
  sql: [sql(podsOfNodes), '.day h2, .notice'],
  chart: [`${sql(podsOfNodes)}&as=chart`, 'figure, .notice'],
  server: ['#/server', '.tiles'],
};

const until = async (test, pause = 50) => { while (!(await test())) await new Promise(resolve => setTimeout(resolve, pause)); };

await until(() => existsSync(`${flags.data}/admin.kubeconfig`));
const client = new Client(`${flags.data}/admin.kubeconfig`);
await until(async () => (await client.request('GET', '/readyz').catch(() => ({}))).status === 200);
await seed(client, flags.pictures ? 3000 : 0);
const offers = {
  history: (await client.request('GET', '/history/range')).status === 200,
  sql: (await client.request('POST', '/rowplane/sql', { query: 'SELECT 1' })).status === 200,
};
console.log(`the server offers: ${JSON.stringify(offers)}`);

const proxy = spawn(flags.rowplane, ['console', '--no-open', '--kubeconfig', `${flags.data}/admin.kubeconfig`], { stdio: ['ignore', 'pipe', 'inherit'] });
const base = (await new Promise(resolve => proxy.stdout.once('data', resolve))).toString().trim();
const browser = await puppeteer.launch({ executablePath: flags.chromium, pipe: true, protocolTimeout: 0, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-lcd-text'] });
let failures = 0;

async function test(name, run) {
  try {
    await run();
    console.log(`ok      ${name}`);
  } catch (error) {
    failures += 1;
    console.log(`FAILED  ${name}\n${error.message}`);
  }
}

/// A page whose messages and requests are kept.
async function open(address, { width = 1280, scheme = 'light' } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(0);
  page.messages = [];
  page.requests = [];
  // A server without a feature says so by these statuses, which Chromium reports.
  const isLack = text => /status of 40[45]/.test(text) && !(offers.history && offers.sql);
  page.on('console', message => { if (!isLack(message.text())) page.messages.push(`${message.type()}: ${message.text()}`); });
  page.on('pageerror', error => page.messages.push(`error: ${error.message}`));
  page.on('request', request => page.requests.push(request.url()));
  await page.setViewport({ width, height: width < 500 ? 844 : 800 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await page.goto(base + address);
  return page;
}

const settle = async (page, selector) => {
  await page.waitForSelector(selector);
  await page.waitForFunction(() => !document.querySelector('[aria-busy="true"]'));
};

for (const [name, [address, selector]] of Object.entries(views)) {
  for (const width of [1280, 390]) {
    for (const scheme of ['light', 'dark']) {
      await test(`time_and_sql_69 ${name} ${width} ${scheme}`, async () => {
        const page = await open(address, { width, scheme });
        await settle(page, selector);
        if (flags.pictures && !['kinds', 'secret'].includes(name)) {
          mkdirSync(flags.pictures, { recursive: true });
          if (name === 'server') await page.waitForFunction(() => document.body.innerText.includes('Rates are those'));
          await new Promise(resolve => setTimeout(resolve, 300));
          await page.screenshot({ path: `${flags.pictures}/${name}-${width}-${scheme}.png` });
        }
        const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        assert(!isWide, 'the page is wider than the window');
        // The page's own policy forbids other scripts; the debugger may add one.
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
        assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`), []);
        assert.deepEqual(page.messages, []);
        assert.deepEqual(page.requests.filter(url => !url.startsWith(base.replace('console/', ''))), []);
        await page.close();
      });
    }
  }
}

await test('the first view', async () => {
  const times = [];
  for (let turn = 0; turn < 5; turn += 1) {
    const page = await browser.newPage();
    page.setDefaultTimeout(0);
    await page.goto(`${base}#/`);
    await page.waitForSelector('.changes tbody tr, .notice + .filters ~ .scroll');
    times.push(await page.evaluate(() => performance.now()));
    await page.close();
  }
  // A figure for people: a busy machine is no failure.
  console.log(`        ${times.map(time => `${Math.round(time)} ms`).join(', ')} from navigation to rows`);
});

/// Presses Tab until the focus is on what the test wants.
async function tabTo(page, wanted, argument) {
  for (let presses = 0; presses < 400; presses += 1) {
    if (await page.evaluate(wanted, argument)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error('Tab does not reach it');
}

await test('an object is found and its fields are read by keyboard alone', async () => {
  const page = await open('#/');
  await page.waitForSelector('nav a');
  await tabTo(page, () => document.activeElement.textContent === 'Objects');
  await page.keyboard.press('Enter');
  await settle(page, '.scroll tbody tr');
  await tabTo(page, () => document.activeElement.textContent === 'Deployment' || document.activeElement.querySelector?.('span')?.textContent === 'Deployment');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('h1').textContent.startsWith('Deployment'));
  await settle(page, '.scroll tbody tr');
  await tabTo(page, () => document.activeElement.textContent.endsWith('web') && document.activeElement.closest('td'));
  await page.keyboard.press('Enter');
  await settle(page, 'pre.code');
  await tabTo(page, () => document.activeElement.textContent === 'Blame');
  await page.keyboard.press('Enter');
  await settle(page, 'table.blame');
  assert(await page.evaluate(() => document.querySelector('table.blame').innerText.includes('anna') || document.querySelector('table.blame').innerText.includes('kubectl')));
  await page.close();
});

await test('a list follows the cluster', async () => {
  const page = await open('#/objects/configmaps?ns=shop');
  await settle(page, '.scroll tbody tr');
  await until(async () => page.requests.some(url => url.includes('watch=true')));
  await client.ok('POST', '/api/v1/namespaces/shop/configmaps', { metadata: { name: 'just-made' } });
  await page.waitForFunction(() => document.querySelector('.scroll').innerText.includes('just-made'));
  await client.ok('DELETE', '/api/v1/namespaces/shop/configmaps/just-made');
  await page.waitForFunction(() => !document.querySelector('.scroll').innerText.includes('just-made'));
  await page.close();
});

await test('values of Secrets are shown only when asked for', async () => {
  const page = await open('#/object/secrets/payments/ledger-db');
  await settle(page, 'pre.code');
  const value = Buffer.from('not-a-real-one').toString('base64');
  const isThere = () => page.evaluate(text => document.body.innerText.includes(text), value);
  assert(!(await isThere()));
  await page.evaluate(() => [...document.querySelectorAll('button')].find(button => button.textContent.startsWith('Show')).click());
  await page.waitForFunction(text => document.body.innerText.includes(text), {}, value);
  await page.close();
});

if (offers.history) {
  const range = await client.ok('GET', '/history/range');
  await test('time_and_sql_70 a time, an object, two versions and the command by keyboard alone', async () => {
    const page = await open('#/');
    await browser.defaultBrowserContext().overridePermissions(new URL(base).origin, ['clipboard-read', 'clipboard-write', 'clipboard-sanitized-write']);
    await settle(page, '.changes tbody tr');
    await page.waitForSelector('input[type=range]');
    await tabTo(page, () => document.activeElement.type === 'range');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowLeft');
    await page.waitForSelector('.banner');
    await page.goto(`${base}${web}?tab=history`);
    await settle(page, '.scroll tbody tr');
    await tabTo(page, () => document.activeElement.textContent === 'diff');
    await page.keyboard.press('Enter');
    await settle(page, 'pre.diff, .notice');
    await page.bringToFront();
    await tabTo(page, () => document.activeElement.textContent === 'Copy' && document.activeElement.parentElement.textContent.includes('rowplane undo'));
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => [...document.querySelectorAll('.command')].some(command => command.textContent.includes('Copied')));
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^rowplane undo deployments\.apps\/web -n shop --to /);
    await page.close();
  });

  await test('time_and_sql_71 the past is named, asked for through the door, and stays', async () => {
    const page = await open(`#/objects/deployments.apps?ns=shop&at=rv-${range.now.revision}`);
    await settle(page, '.banner');
    await page.waitForSelector('.scroll tbody tr');
    const before = await page.evaluate(() => document.querySelector('.scroll').innerText);
    await client.ok('PATCH', '/apis/apps/v1/namespaces/shop/deployments/cart', { metadata: { labels: { later: 'yes' } }, spec: { replicas: 9 } }, { type: 'application/merge-patch+json' });
    await page.evaluate(() => document.querySelector('.who button').click());
    await page.waitForNetworkIdle({ timeout: 0 });
    assert.equal(await page.evaluate(() => document.querySelector('.scroll').innerText), before);
    const lists = page.requests.filter(url => url.includes('/apis/apps/'));
    assert(lists.length > 0 && lists.every(url => url.includes(`/asof/rv-${range.now.revision}/`)), lists.join(' '));
    await page.close();
  });

  await test('new changes come by themselves, and are those of the history', async () => {
    const page = await open('#/?ns=shop&resource=configmaps');
    await settle(page, '.changes tbody tr');
    await client.ok('POST', '/api/v1/namespaces/shop/configmaps', { metadata: { name: 'newest' } }, { as: 'anna' });
    await page.waitForFunction(() => document.querySelector('.changes tbody tr').innerText.includes('newest'));
    const { items: [newest] } = await client.ok('GET', '/history?namespace=shop&resource=configmaps&limit=1');
    const row = await page.evaluate(() => document.querySelector('.changes tbody tr').innerText);
    assert(row.includes(newest.user || 'not recorded'), row);
    await page.close();
  });
}

if (offers.sql) {
  await test('SQL: rows are those of the API, what is cut is said, and errors are told', async () => {
    const page = await open(sql('SELECT name FROM nodes ORDER BY 1'));
    await settle(page, '.scroll tbody tr');
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('.scroll tbody td')].map(cell => cell.innerText)), ['n1', 'n2', 'n3']);
    await page.goto(base + sql('WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1500) SELECT n FROM c'));
    await page.waitForSelector('.cut');
    await page.goto(base + sql('SELECT missing FROM nodes'));
    await page.waitForSelector('.notice.bad');
    await page.close();
  });
}

if (flags.pictures && offers.history) {
  const page = await open(`#/?at=rv-${(await client.ok('GET', '/history/range')).now.revision}`, { scheme: 'dark' });
  await settle(page, '.banner');
  await page.waitForSelector('.changes tbody tr');
  await page.screenshot({ path: `${flags.pictures}/past-1280-dark.png` });
}

await browser.close();
proxy.kill();
console.log(failures ? `${failures} failed` : 'all passed');
process.exit(failures ? 1 : 0);
