/** How much is measured. */

const FEW = {
  isQuick: true,
  idle: { seconds: 20 },
  command: { n: 200, starts: 20 },
  output: { bytes: 20_000_000 },
  viewers: { n: 50, lines: 10 },
  audit: { entries: 50_000 },
  backlog: { queued: [1_000, 20_000], ended: 0, others: 10_000 },
  growth: { n: 20_000 },
  snapshot: { n: 10_000 },
  retention: { n: 2_000, days: 4 },
};

const SIDE_BY_SIDE = {
  slots: 1_000,
  submit: { singles: 5_000, batched: 30_000 },
  drain: { n: 20_000, warmUp: 4_000 },
  latency: { n: 150 },
};

/** `rounds` is odd: a median is then something that was measured. After `roundsUntilMs` no further round begins. */
export const SIZES = Object.freeze({
  /** For tests of the bench itself. */
  tiny: {
    ...FEW,
    rounds: 1,
    slots: 100,
    submit: { singles: 100, batched: 2_000 },
    drain: { n: 1_000, warmUp: 100 },
    latency: { n: 5 },
  },
  quick: { ...FEW, ...SIDE_BY_SIDE, rounds: 3, roundsUntilMs: 420_000 },
  usual: {
    ...SIDE_BY_SIDE,
    isQuick: false,
    rounds: 3,
    idle: { seconds: 60 },
    command: { n: 2_000, starts: 200 },
    output: { bytes: 100_000_000 },
    viewers: { n: 200, lines: 50 },
    audit: { entries: 200_000 },
    backlog: { queued: [10_000, 100_000], ended: 0, others: 100_000 },
    growth: { n: 100_000 },
    snapshot: { n: 50_000 },
    retention: { n: 20_000, days: 6 },
  },
  full: {
    ...SIDE_BY_SIDE,
    isQuick: false,
    rounds: 5,
    latency: { n: 400 },
    idle: { seconds: 300 },
    command: { n: 5_000, starts: 500 },
    output: { bytes: 100_000_000 },
    viewers: { n: 200, lines: 100 },
    audit: { entries: 1_000_000 },
    backlog: { queued: [10_000, 100_000, 1_000_000], ended: 5_000_000, others: 100_000 },
    growth: { n: 1_000_000 },
    snapshot: { n: 250_000 },
    retention: { n: 125_000, days: 8 },
  },
});
