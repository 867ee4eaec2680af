/**
 * The architecture as rules: which folder may import which, and what each file suffix may touch. Type imports count.
 * `src/README.md` shows the same picture; a rule that is in the way is changed there and here, with its reason.
 */

/** Lowest first; a folder imports only those before it. The files directly in src/ stand on top. */
const LAYERS = ['verifier', 'kernel', 'platform', 'audit', 'access', 'runs', 'execution', 'doctor', 'replica'];
/** Clients of the HTTP API: no layers of the server. */
const CLIENTS = ['client', 'cli', 'console'];

const any = (names) => `(${names.join('|')})`;
const npm = (...names) => `(^|/)node_modules/(@types/)?${any(names)}/`;

const NEST = npm('@nestjs', 'rxjs', 'reflect-metadata', 'fastify', '@fastify');
const DRIVERS = npm('pg', 'postgres', 'node-pg-migrate');
const IO = '^(node:)?(fs|net|tls|dgram|dns|http|https|http2|child_process|worker_threads|cluster)(/|$)';
const PURE = '\\.(machine|rules)\\.ts$';
/** A file of types, constants or plumbing, named without a suffix. */
const NOUN = '/[^/.]+\\.ts$';
const SQL = '\\.sql\\.ts$';
const BARREL = '/index\\.[cm]?[jt]sx?$';
const DRAWER = '/(utils?|common|shared|helpers?)/';
const INSTALLED = '(^|/)node_modules/';
const SUPERVISOR = '^src/execution/supervisor/';
const REQUESTER = '^src/execution/requester/';
const VERIFIER = '^src/verifier/';
const VERIFIER_ENTRY = '^src/verifier/verify\\.ts$';
const SUPERVISOR_CLIENT = '^src/execution/supervisor/supervisor\\.client\\.ts$';

/** No file of `from` may import one of `to`; what is left out matches every file. */
const never = (name, comment, { from, notFrom, to, notTo, ...how }) => ({
  name,
  comment,
  severity: 'error',
  from: { ...(from && { path: from }), ...(notFrom && { pathNot: notFrom }) },
  to: { ...(to && { path: to }), ...(notTo && { pathNot: notTo }), ...how },
});

const layers = [
  ...LAYERS.slice(0, -1).map((layer, index) =>
    never('downward-only', 'a folder knows nothing of the layers above it', {
      from: `^src/${layer}/`,
      to: `^src/${any(LAYERS.slice(index + 1))}/`,
    }),
  ),
  never('known-folders', 'a new folder takes its place in the layers first', {
    from: '^src/[^/]+/',
    notFrom: `^src/${any([...LAYERS, ...CLIENTS])}/`,
  }),
  never('top-is-imported-by-nobody', 'what composes the program stands on top', {
    from: '^src/.+/',
    to: '^src/[^/]+$',
  }),
  never('server-without-clients', 'no layer of the server imports a client', {
    from: `^src/${any(LAYERS)}/`,
    to: `^src/${any(CLIENTS)}/`,
  }),
  never('client-apart', 'whoever has the HTTP API needs nothing else of ours', {
    from: '^src/client/',
    to: '^src/',
    notTo: '^src/client/',
  }),
  never('client-anywhere', 'the TypeScript client runs wherever there is fetch: nothing of Node is in it', {
    from: '^src/client/',
    dependencyTypes: ['core'],
  }),
  never('cli-apart', 'the command line client knows its transport, the words, the platform and the verifier only', {
    from: '^src/cli/',
    to: '^src/',
    notTo: '^src/(cli|client|verifier|kernel|platform)/',
  }),
  never('cli-is-light', 'the command line client starts fast and opens no database', {
    from: '^src/cli/',
    to: [NEST, DRIVERS],
    reachable: true,
  }),
  never('console-apart', 'the console speaks HTTP only', {
    from: '^src/console/',
    to: '^src/',
    notTo: '^src/console/',
  }),
];

const files = [
  never('no-cycles', 'two files that need each other are one', { circular: true }),
  never('no-barrels', 'a name is imported from where it is defined', { to: BARREL, notTo: INSTALLED }),
  never('no-barrels', 'a name is imported from where it is defined', { from: BARREL }),
  never('no-drawers', 'a folder is named for a part of the product', { to: DRAWER, notTo: INSTALLED }),
  never('no-drawers', 'a folder is named for a part of the product', { from: DRAWER }),
  never('resolvable', 'every import is answered', {
    // They have a package.json of their own, which the bench installs when it is asked for peers.
    notFrom: '^test/bench/peers/',
    couldNotResolve: true,
  }),
  never('declared', 'what runs is in dependencies', {
    from: '^src/',
    // It makes dist/, and runs where that is made.
    notFrom: '^src/build-verifier\\.mjs$',
    dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
    dependencyTypesNot: ['type-only'],
  }),
  never('no-tests-in-src', 'the program never needs its tests', { from: '^src/', to: '^test/' }),
];

const suffixes = [
  never('nest-at-the-edge', 'the domain is free of Nest: plain classes, wired by factory', {
    from: '^src/.+/',
    notFrom: ['\\.(controller|guard|module|dto)\\.ts$', '^src/platform/http/'],
    to: NEST,
  }),
  never('dto-is-a-shape', 'a DTO takes decorators from Nest and calls nobody', {
    from: '\\.dto\\.ts$',
    to: [NEST, DRIVERS, SQL, '\\.(service|loop|controller|guard|module)\\.ts$'],
    notTo: npm('@nestjs/swagger'),
    dependencyTypesNot: ['type-only'],
  }),
  never('edge-without-sql', 'a controller calls a service', {
    from: '\\.(controller|guard)\\.ts$',
    to: SQL,
    dependencyTypesNot: ['type-only'],
  }),
  never('sql-is-a-statement', 'a statement needs the types of platform/db and pure files', {
    from: SQL,
    to: '^src/',
    notTo: [SQL, PURE, NOUN, '^src/kernel/', '^src/platform/db/'],
  }),
  never('pure-imports-pure', 'a decision depends on words and decisions only', {
    from: PURE,
    notTo: [PURE, NOUN, '^src/kernel/'],
  }),
  never('pure-without-io', 'a decision touches nothing outside, through no file in between', {
    from: PURE,
    to: [DRIVERS, IO],
    reachable: true,
  }),
  never('kernel-without-io', 'the kernel is words', { from: '^src/kernel/', to: [NEST, DRIVERS, IO] }),
];

const drivers = [
  never('postgres-in-statements', 'fragments are composed in statements; the pool is in platform/db', {
    from: '^src/',
    notFrom: [SQL, '^src/platform/db/'],
    to: npm('postgres'),
  }),
  never('pg-for-own-sessions', 'sessions apart from the pools are made in platform: lease, wake-ups, migrations', {
    from: '^src/',
    notFrom: '^src/platform/(db|postgres)/',
    to: npm('pg', 'node-pg-migrate'),
  }),
  never('supervisor-alone', 'the supervisor outlives the replica: Node, its own folder and the kernel', {
    from: SUPERVISOR,
    notFrom: SUPERVISOR_CLIENT,
    notTo: [SUPERVISOR, '^src/kernel/'],
    dependencyTypesNot: ['core'],
  }),
  never('verifier-alone', 'an auditor reads the verifier: Node and its own folder, nothing else', {
    from: VERIFIER,
    notTo: VERIFIER,
    dependencyTypesNot: ['core'],
  }),
  never('verifier-alone', 'who makes evidence shares no code with who checks it: it only asks for the verdict', {
    from: '^src/audit/',
    to: VERIFIER,
    notTo: [VERIFIER_ENTRY, '^src/verifier/(rfc3161|der|refusal)\\.ts$'],
  }),
  never('requester-alone', "the requester is the supervisor's: it knows nothing of a replica", {
    from: REQUESTER,
    to: '^src/',
    notTo: [REQUESTER, '^src/execution/supervisor/', '^src/kernel/'],
  }),
  never('requester-alone', 'what speaks to strangers is loaded by nobody else', {
    from: '^src/',
    notFrom: REQUESTER,
    to: REQUESTER,
  }),
  never('supervisor-alone', 'the supervisor knows nothing of the replica that talks to it', {
    from: SUPERVISOR,
    notFrom: SUPERVISOR_CLIENT,
    to: SUPERVISOR_CLIENT,
  }),
];

module.exports = {
  forbidden: [...layers, ...files, ...suffixes, ...drivers],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'require', 'node', 'types'] },
  },
};
