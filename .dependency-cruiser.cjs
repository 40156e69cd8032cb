// The layers of docs/architecture.md: who may import whom, type imports counted.
const layer = (name, from, ...to) => ({
  name,
  severity: 'error',
  from: { path: from },
  to: { path: '^src/', pathNot: to },
});

/** Each room of src/, and the rooms and ports that it may import; base/ is for all. */
const ROOMS = {
  call: ['options/', 'waiting/', 'transaction/', 'fencing/', 'database/'],
  options: ['stores/memory'],
  waiting: [],
  stores: ['waiting/store'],
  redis: ['waiting/store'],
  database: [],
  fencing: ['database/'],
  transaction: ['database/', 'fencing/'],
  connection: ['database/'],
  prisma: ['connection/', 'database/', 'fencing/writes'],
  base: [],
  faces: ['public', 'assemble', 'client', 'call/', 'connection/', 'database/', 'fencing/fencing', 'options/'],
  // The addons stand on top, and nothing below knows them.
  'addons/otel': [],
  'addons/testing': [
    'index',
    'client',
    'call/',
    'options/',
    'waiting/',
    'stores/memory',
    'database/',
    'fencing/',
    'prisma/',
    'redis/names',
  ],
  'addons/decorators': ['index', 'current', 'options/'],
  'addons/nest': ['index', 'current', 'addons/decorators/'],
  'addons/nest-cls': ['index', 'current'],
  'addons/board': ['public', 'options/', 'call/observed', 'call/recorder', 'database/sql'],
};
/** The files at the top. */
const TOP = {
  index: ['public', 'client', 'extension', 'current', 'options/'],
  public: ['client', 'current', 'call/', 'options/', 'stores/memory'],
  current: ['client', 'call/lock', 'prisma/client'],
  extension: ['assemble', 'client', 'call/', 'options/', 'connection/rescue', 'fencing/', 'prisma/'],
  client: ['call/', 'options/', 'waiting/', 'database/', 'fencing/', 'transaction/', 'prisma/'],
  assemble: ['call/', 'options/', 'waiting/', 'stores/', 'redis/', 'database/', 'transaction/'],
};
const file = (name) => `^src/${name}[.]ts$`;
const place = (name) => (name.endsWith('/') ? `^src/${name}` : file(name));

module.exports = {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    ...Object.entries(ROOMS).map(([room, allowed]) =>
      layer(
        `${room}-imports-what-it-is-allowed`,
        `^src/${room}/`,
        `^src/${room}/`,
        ...allowed.map(place),
        '^src/base/',
      ),
    ),
    ...Object.entries(TOP).map(([name, allowed]) =>
      layer(`${name}-imports-what-it-is-allowed`, file(name), ...allowed.map(place), '^src/base/'),
    ),
    {
      name: 'every-file-is-in-a-room',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: [...Object.keys(ROOMS).map((room) => `^src/${room}/`), ...Object.keys(TOP).map(file), '^src/cli/'],
      },
      to: {},
    },
    {
      name: 'the-core-knows-no-prisma',
      comment: 'The fence serves plain pg, Kysely and Drizzle as well.',
      severity: 'error',
      from: { path: '^src/(connection|database|transaction|fencing|waiting|faces)/' },
      to: { path: ['^src/prisma/', 'node_modules/@prisma/'] },
    },
    {
      name: 'pg-by-its-shape',
      comment: 'The pool is had from the driver adapter; the package does not depend on pg.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(cli|addons/testing)/' },
      to: { path: 'node_modules/(pg|@types/pg)/', dependencyTypesNot: ['type-only'] },
    },
    layer(
      'cli-stands-on-the-ground-floor',
      '^src/cli/(?!(commands|doctor|servers)/)',
      '^src/cli/',
      file('options/options'),
      file('base/errors'),
      file('base/invisible'),
    ),
    layer(
      'the-command-uses-the-operators-of-the-client',
      '^src/cli/(commands|doctor|servers)/',
      '^src/cli/',
      '^src/base/',
      '^src/options/',
      '^src/(assemble|client|call/(operators|history|observed)|connection/(pool-database|pg))[.]ts$',
      '^src/(fencing/fencing|waiting/store|redis/names|redis/topology/slot)[.]ts$',
      '^src/addons/board/(board|node-listener|options|client-source|source)[.]ts$',
    ),
    {
      name: 'nothing-imports-the-testing',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/addons/testing/' },
      to: { path: '^src/addons/testing/' },
    },
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
      from: { path: '^src/', pathNot: '^src/(cli|addons/(otel|nest|nest-cls|testing))/' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-peer', 'npm-optional'],
        dependencyTypesNot: ['type-only'],
        pathNot: 'node_modules/@prisma/client/',
      },
    },
    {
      name: 'a-subpath-has-its-own-peers',
      severity: 'error',
      from: { path: '^src/addons/(nest|nest-cls)/' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-peer', 'npm-optional'],
        pathNot: 'node_modules/(@(nestjs/(common|core)|nestjs-cls/transactional)|rxjs)/',
      },
    },
    {
      name: 'the-testing-loads-servers-when-asked',
      comment: 'Optional peers, each loaded by the function that needs it.',
      severity: 'error',
      from: { path: '^src/addons/testing/' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-peer', 'npm-optional'],
        dependencyTypesNot: ['dynamic-import', 'type-only'],
      },
    },
    {
      name: 'the-cli-reads-options-and-connects',
      comment:
        'commander for its options, diff for what it shows; pg and ioredis are loaded only by the commands that connect.',
      severity: 'error',
      from: { path: '^src/cli/' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-peer', 'npm-optional'],
        pathNot: 'node_modules/(commander|diff|pg|@types/pg|ioredis)/',
      },
    },
    {
      name: 'otel-knows-the-api-alone',
      comment: 'An optional peer: who imports `/otel` brings it.',
      severity: 'error',
      from: { path: '^src/addons/otel/' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-peer', 'npm-optional'],
        pathNot: 'node_modules/@opentelemetry/api/',
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
