/** The words for a run that a server and its clients share: its states, its kinds, how its queue is called; each once. */

export const LIVE_STATES = ['held', 'pending', 'claimed', 'running', 'parked'] as const;
export const END_STATES = ['succeeded', 'failed', 'canceled', 'timed_out', 'interrupted', 'rejected'] as const;
export const RUN_STATES = [...LIVE_STATES, ...END_STATES] as const;

/** What a run came from. */
export const ORIGINS = ['api', 'schedule', 'trigger', 'parent'] as const;

/** The whole name of a queue. */
export const QUEUE_NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;

export const KINDS = ['noop', 'command', 'script', 'http'] as const;
