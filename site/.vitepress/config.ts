// The site shows README.md, docs/, CHANGELOG.md and the pages of examples as they stand in the repository.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type DefaultTheme, defineConfig, type Plugin } from 'vitepress';
import llmstxt from 'vitepress-plugin-llms';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TITLE = 'fenced-lock';
const DESCRIPTION =
  'A distributed lock for Prisma, pg, Kysely and Drizzle on PostgreSQL under which no update is lost, whatever Redis or the process does.';

/** The pages of the site, in the order in which they are read. A page that stands in none of these is an error. */
const SECTIONS: Readonly<Record<string, readonly string[]>> = {
  Start: [
    'README.md',
    'docs/start.md',
    'docs/comparison.md',
    'docs/guides/selling-stock.md',
    'docs/guides/examples.md',
  ],
  Use: [
    'docs/locks.md',
    'docs/handles.md',
    'docs/options.md',
    'docs/errors.md',
    'docs/guard.md',
    'docs/module-formats.md',
  ],
  Guides: ['docs/guides/'],
  'Coming from': ['docs/coming-from/'],
  Run: [
    'docs/topologies.md',
    'docs/rights.md',
    'docs/operators.md',
    'docs/cli.md',
    'docs/channels.md',
    'docs/versioning.md',
  ],
  Judge: ['docs/correctness.md', 'docs/benchmarks.md', 'docs/architecture.md', 'CHANGELOG.md', 'SECURITY.md'],
  Decisions: ['docs/decisions/README.md', 'docs/decisions/'],
  Examples: ['examples/'],
};

function pagesBelow(folder: string): string[] {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md') && !file.includes('node_modules'))
    .map((file) => join(folder, file))
    .sort();
}

const shown = new Set<string>();
const sidebar: DefaultTheme.SidebarItem[] = Object.entries(SECTIONS).map(([text, files], at) => ({
  text,
  collapsed: at > 3,
  items: files
    .flatMap((file) => (file.endsWith('/') ? pagesBelow(file) : existsSync(join(ROOT, file)) ? [file] : []))
    .filter((file) => !shown.has(file) && shown.add(file))
    .map((file) => ({ text: headingOf(file), link: addressOf(file) })),
}));
const forgotten = pagesBelow('docs/').filter((file) => !shown.has(file));
if (forgotten.length > 0) throw new Error(`No section has these pages: ${forgotten.join(', ')}`);

function headingOf(file: string): string {
  if (file === 'README.md') return 'What it is';
  const [, heading = file] = /^# (.+)$/m.exec(readFileSync(join(ROOT, file), 'utf8')) ?? [];
  return heading.replaceAll('`', '');
}

function addressOf(file: string): string {
  return file === 'README.md' ? '/' : `/${file.replace(/\.md$/, '')}`;
}

/** GitHub's names of headings, so that the links that work there work here. */
function slugify(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');
}

/** Where a relative link of a page leads on the site; `undefined`: to a file that is no page of it. */
function targetOf(page: string, href: string): string | undefined {
  const [path = '', section] = href.split('#');
  let file = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path));
  if (!existsSync(join(ROOT, file))) throw new Error(`${page}: no file for the link ${href}`);
  if (statSync(join(ROOT, file)).isDirectory()) {
    const inside = pagesBelow(file);
    const first = inside.find((each) => each === join(file, 'README.md')) ?? inside[0];
    if (first === undefined) return undefined;
    file = first;
  }
  if (!shown.has(file)) return undefined;
  const sections = [...readFileSync(join(ROOT, file), 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, text = '']) =>
    slugify(text),
  );
  if (section !== undefined && !sections.includes(section)) throw new Error(`${page}: no section for the link ${href}`);
  return `${addressOf(file)}${section === undefined ? '' : `#${section}`}`;
}

function isForeignImage(token: { readonly type: string; attrGet(name: string): string | null }): boolean {
  return token.type === 'image' && /^https?:/.test(token.attrGet('src') ?? '');
}

/** The pages stand outside of this folder, and would look for it beside themselves. */
const VUE_OF_THE_SITE: Plugin = {
  name: 'vue of the site',
  enforce: 'pre',
  resolveId(source, _importer, { ssr }) {
    if (!/^vue(\/server-renderer)?$/.test(source)) return null;
    if (ssr) return { id: source, external: true };
    return this.resolve(source, fileURLToPath(import.meta.url), { skipSelf: true });
  },
};

export default defineConfig({
  title: TITLE,
  description: DESCRIPTION,
  srcDir: '..',
  srcExclude: ['CONTRIBUTING.md', '{bench,site,skills,test,model,.github}/**', '**/node_modules/**'],
  rewrites: { 'README.md': 'index.md' },
  cleanUrls: true,
  lastUpdated: false,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    anchor: { slugify },
    config(md) {
      md.core.ruler.push('links of the repository', (state) => {
        const page: string = state.env.relativePath === 'index.md' ? 'README.md' : state.env.relativePath;
        for (const inline of state.tokens) {
          // The badges are for the page of the package: the site asks no other host.
          if (inline.children?.some(isForeignImage)) inline.children = [];
          const { children } = inline;
          let isText = false;
          for (const token of children ?? []) {
            if (token.type === 'link_close' && isText) token.tag = 'span';
            const href = token.attrGet('href');
            if (token.type === 'link_open' && href !== null && !/^[a-z]+:/.test(href)) {
              const target = targetOf(page, href);
              // A file of the repository that is no page: its name is enough.
              isText = target === undefined;
              if (target === undefined) Object.assign(token, { tag: 'span', attrs: [] });
              else token.attrSet('href', target);
            } else if (token.type === 'link_open') {
              isText = false;
            }
          }
        }
      });
    },
  },
  vite: {
    plugins: [llmstxt({ description: DESCRIPTION, excludeIndexPage: false }), VUE_OF_THE_SITE],
  },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Start', link: '/docs/start' },
      { text: 'Comparison', link: '/docs/comparison' },
      { text: 'Errors', link: '/docs/errors' },
    ].filter(({ link }) => shown.has(`${link.slice(1)}.md`)),
    sidebar,
    outline: [2, 3],
    externalLinkIcon: true,
  },
});
