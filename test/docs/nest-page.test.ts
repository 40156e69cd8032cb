import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Test } from '@nestjs/testing';
import ts from 'typescript';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';
import { blocks, folderFor, ours, read } from './page.js';

const PAGE = 'docs/guides/nestjs.md';
const FILES = blocks(PAGE).map((text) => ({ name: /^\/\/ (\S+)\.ts\n/.exec(text)?.[1] ?? '', text }));
const SPECS = ['stock.service.fake.spec'];

/** What a service or a controller of the page can do. */
type Verbs = Readonly<Record<string, (...args: unknown[]) => Promise<unknown>>>;

/** A file of the page as Nest's own compiler emits it, of this repository's sources and its generated client. */
function emitted(text: string): string {
  const compilerOptions = {
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    module: ts.ModuleKind.ESNext,
    target: ts.ScriptTarget.ES2022,
  };
  return ours(ts.transpileModule(text, { compilerOptions }).outputText, 'ts');
}

test('the page installs the versions of nestjs-cls that are tested', () => {
  const { devDependencies } = JSON.parse(read('package.json'));
  const majors = ['nestjs-cls', '@nestjs-cls/transactional'].map((name) => `${name}@${devDependencies[name][0]}`);
  expect(read(PAGE)).toMatch(new RegExp(`npm install ${majors.join('\\s')}\``));
});

describeWithShop('the application of docs/guides/nestjs.md', () => {
  const shop = new Shop();
  const { folder, remove } = folderFor('nest');
  const load = (name: string) => import(/* @vite-ignore */ join(folder, `${name}.js`));

  beforeAll(() => {
    const { app } = inject('postgres');
    const { url } = inject('redis');
    vi.stubEnv('DATABASE_URL', app).stubEnv('REDIS_URL', url);
    vi.stubEnv('REPORTS_DATABASE_URL', app).stubEnv('REPORTS_REDIS_URL', url);
    for (const { name, text } of FILES) writeFileSync(join(folder, `${name}.js`), emitted(text));
  });
  afterAll(() => {
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
    remove();
  });

  test('sells no more than there is, whichever service sells', async () => {
    const files = FILES.map(({ name }) => name).filter((name) => name !== 'main' && !SPECS.includes(name));
    const own = Object.assign({}, ...(await Promise.all(files.map(load))));
    const nest = await Test.createTestingModule({
      imports: [own.AppModule, own.ErrorsModule, own.HealthModule, own.ReportsModule, own.OrdersModule],
      providers: [own.Sales],
    }).compile();
    await nest.init();
    const [stock, sales, orders, reports] = [own.StockService, own.Sales, own.Orders, own.Reports].map((type) =>
      nest.get<Verbs>(type),
    ) as [Verbs, Verbs, Verbs, Verbs];

    const ways = [
      (id: number) => stock['sell']?.(id),
      (id: number) => sales['sell']?.(id, 1),
      (id: number) => orders['order']?.(id),
    ];
    for (const sell of ways) {
      const { id } = await shop.product(1);
      const both = await Promise.allSettled([sell(id), sell(id)]);
      expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
      expect(both).toContainEqual({ status: 'rejected', reason: expect.objectContaining({ message: 'sold out' }) });
      expect((await shop.row(id))?.quantity).toBe(0);
    }

    const { id } = await shop.product(3);
    expect(await stock['empty']?.(id)).toMatchObject({ id, quantity: 0 });
    expect(await sales['report']?.()).toEqual({ acquired: true, value: expect.any(Number) });
    expect(await reports['write']?.('monday')).toEqual({ day: 'monday', orders: expect.any(Number) });
    await nest.close();
  });

  test.each(SPECS)('has a test that passes, %s', async (spec) => {
    const tests: (() => Promise<void>)[] = [];
    vi.stubGlobal('test', (_: string, fn: () => Promise<void>) => tests.push(fn)).stubGlobal('expect', expect);
    await load(spec);
    expect(tests).toHaveLength(1);
    await tests[0]?.();
  });
});
