// The layers of docs/architecture.md: who may import whom, type imports counted.
const layer = (name, from, ...to) => ({
  name,
  severity: 'error',
  from: { path: from },
  to: { path: '^src/', pathNot: to },
});

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
      '^src/base/',
    ),
    layer('context-imports-base', '^src/context[.]ts$', '^src/base/'),
    layer('options-import-base', '^src/options[.]ts$', '^src/base/'),
    layer(
      'with-lock-tells-the-story',
      '^src/with-lock[.]ts$',
      '^src/(context|options)[.]ts$',
      '^src/lease/',
      '^src/fence/',
      '^src/base/',
    ),
    layer('cli-stands-on-the-ground-floor', '^src/cli/', '^src/cli/', '^src/options[.]ts$', '^src/base/'),
    {
      name: 'nothing-imports-the-cli',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/cli/' },
      to: { path: '^src/cli/' },
    },
    layer(
      'index-names',
      '^src/index[.]ts$',
      '^src/extension[.]ts$',
      '^src/options[.]ts$',
      '^src/with-lock[.]ts$',
      '^src/base/',
    ),
    {
      name: 'no-run-time-dependency',
      comment: 'The core depends on Node and on the peer @prisma/client. ioredis is known by its shape alone.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/cli/' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'npm-peer', 'npm-optional'], pathNot: 'node_modules/@prisma/client/' },
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
