// The layers of docs/architecture.md: who may import whom, type imports counted.
const layer = (name, from, ...to) => ({
  name,
  severity: 'error',
  from: { path: from },
  to: { path: '^src/', pathNot: to },
});

/** The files at the top of src/, and what each of them may import beside base/. */
const TOP = {
  index: ['extension', 'handle', 'lock', 'operators', 'options', 'with-lock'],
  extension: [
    'arguments',
    'assemble',
    'context',
    'handle',
    'lock',
    'operators',
    'options',
    'resolve',
    'with-lock',
    'prisma/',
  ],
  assemble: ['open-handles', 'options', 'parts', 'fence/', 'lease/', 'prisma/', 'redis/'],
  handle: [
    'arguments',
    'context',
    'lock',
    'options',
    'parts',
    'resolve',
    'under-grant',
    'with-lock',
    'fence/',
    'lease/',
  ],
  operators: ['options', 'parts', 'under-grant', 'fence/', 'lease/'],
  'with-lock': ['context', 'join', 'lock', 'options', 'parts', 'under-grant', 'fence/', 'lease/'],
  'under-grant': ['options', 'parts', 'fence/', 'lease/'],
  parts: ['open-handles', 'fence/', 'lease/'],
  join: ['lock', 'options'],
  lock: [],
  context: [],
  'open-handles': [],
  arguments: ['options', 'resolve'],
  resolve: ['options'],
  options: [],
};
const file = (name) => `^src/${name}[.]ts$`;
const place = (name) => (name.endsWith('/') ? `^src/${name}` : file(name));

module.exports = {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    layer('base-imports-nothing', '^src/base/', '^src/base/'),
    layer('lease-imports-base', '^src/lease/', '^src/lease/', '^src/base/'),
    layer('fence-imports-base', '^src/fence/', '^src/fence/', '^src/base/'),
    layer('redis-implements-the-port-of-lease', '^src/redis/', '^src/redis/', '^src/lease/store[.]ts$', '^src/base/'),
    layer(
      'prisma-implements-the-port-of-fence',
      '^src/prisma/',
      '^src/prisma/',
      '^src/fence/database[.]ts$',
      '^src/pg/opening[.]ts$',
      '^src/base/',
    ),
    layer('pg-imports-nothing', '^src/pg/', '^src/pg/'),
    {
      name: 'pg-only-where-it-was-asked-for',
      comment: 'It is an optional peer: what stands on it is a module of its own.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(pg/(index|client|with-begin)[.]ts$|cli/)' },
      to: { path: ['^src/pg/(?!opening)', 'node_modules/(pg|@types/pg)/'] },
    },
    ...Object.entries(TOP).map(([name, allowed]) =>
      layer(`${name}-imports-what-it-is-allowed`, file(name), ...allowed.map(place), '^src/base/'),
    ),
    {
      name: 'every-file-at-the-top-is-listed',
      severity: 'error',
      from: { path: '^src/[^/]+$', pathNot: Object.keys(TOP).map(file) },
      to: {},
    },
    layer('cli-stands-on-the-ground-floor', '^src/cli/(?!(commands|locks|servers)/)', '^src/cli/', file('options')),
    layer(
      'commands-check-arguments',
      '^src/cli/commands/',
      '^src/cli/',
      file('options'),
      file('arguments'),
      '^src/base/',
    ),
    layer(
      'only-what-looks-at-locks-knows-the-fence',
      '^src/cli/locks/',
      '^src/cli/',
      '^src/fence/(admission|sql)[.]ts$',
      '^src/lease/store[.]ts$',
      '^src/base/',
    ),
    layer(
      'only-the-way-to-the-servers-knows-redis',
      '^src/cli/servers/',
      '^src/cli/',
      file('options'),
      '^src/redis/(client|keys|slot|store)[.]ts$',
      '^src/lease/(quorum|store)[.]ts$',
    ),
    {
      name: 'nothing-imports-the-cli',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/cli/' },
      to: { path: '^src/cli/' },
    },
    {
      name: 'no-run-time-dependency',
      comment: 'The core depends on Node and on the peer @prisma/client. ioredis is known by its shape alone.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/cli/' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-peer', 'npm-optional'],
        pathNot: 'node_modules/(@prisma/client|pg|@types/pg)/',
      },
    },
    {
      name: 'the-cli-reads-options-and-connects',
      comment: 'commander for its options; pg and ioredis are loaded only by the commands that connect.',
      severity: 'error',
      from: { path: '^src/cli/' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-peer', 'npm-optional'],
        pathNot: 'node_modules/(commander|pg|@types/pg|ioredis)/',
      },
    },
    {
      name: 'prisma-in-one-place',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(extension[.]ts$|prisma/)' },
      to: { path: 'node_modules/@prisma/' },
    },
    {
      name: 'what-ships-stands-alone',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|examples|bench|scripts)/' },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'default'] },
  },
};
