/** Bodies for the OpenAPI document, which a test sends: what a person tries first. */

export const SUBMIT_EXAMPLES = {
  command: {
    summary: 'A command',
    value: {
      kind: 'command',
      name: 'nightly backup',
      labels: { env: 'prod' },
      timeout: '15m',
      spec: { argv: ['pg_dump', '-Fc', 'app'], env: { TZ: 'UTC' } },
    },
  },
  script: {
    summary: 'A script',
    value: { kind: 'script', spec: { interpreter: 'bash', content: 'echo "hello from $CAPSTAN_RUN_ID"\n' } },
  },
  http: {
    summary: 'A request',
    value: { kind: 'http', spec: { method: 'GET', url: 'https://example.com/health', expectedStatus: [200] } },
  },
  noop: { summary: 'Nothing, to see a run end', value: { kind: 'noop' } },
} as const;

export const BATCH_EXAMPLES = {
  two: {
    summary: 'Two runs, one with a key of its own',
    value: {
      runs: [
        { kind: 'command', labels: { env: 'prod' }, spec: { argv: ['uptime'] } },
        { kind: 'noop', idempotencyKey: 'nightly-2030-01-31' },
      ],
    },
  },
} as const;

/** The answer when no run of a batch was taken. */
export const NONE_TAKEN = {
  items: [
    {
      status: 422,
      problem: {
        type: 'urn:capstan:problem:invalid_input',
        title: 'The input is invalid',
        status: 422,
        detail: '/spec/argv: must have at least one item: the program',
        code: 'invalid_input',
        errors: [{ pointer: '/spec/argv', message: 'must have at least one item: the program' }],
        requestId: 'req_01h455vb4pex5vsknk084sn02q',
      },
    },
  ],
} as const;

export const BULK_CANCEL_EXAMPLES = {
  count: {
    summary: 'Count first',
    value: { filter: { state: ['pending', 'running'], label: ['env:prod'] }, dryRun: true },
  },
  cancel: { summary: 'Cancel them', value: { filter: { state: ['pending', 'running'], label: ['env:prod'] } } },
} as const;

export const BULK_RERUN_EXAMPLES = {
  count: { summary: 'Count first', value: { filter: { state: 'failed', q: 'backup' }, dryRun: true } },
  rerun: { summary: 'Run them again', value: { filter: { state: 'failed', q: 'backup' }, limit: 100 } },
} as const;
