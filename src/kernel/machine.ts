/**
 * A transition is a value: where it starts, what must hold, where it leads, what it writes. A table of them decides
 * by itself, and draws itself.
 */

export interface Transition<State extends string, Command extends string, Guard extends string> {
  /** Its number in the product's table. */
  readonly row: string;
  readonly command: Command;
  readonly from: readonly State[];
  readonly guard: readonly Guard[];
  /** The states it may lead to; `unchanged` when the row only answers or marks. */
  readonly to: readonly State[] | 'unchanged';
  /** Whether an audit entry is appended in the same transaction. */
  readonly audited: boolean;
  /** The type of the event written with it, when there is one. */
  readonly event: string | null;
}

export type Decision<T> =
  | { readonly outcome: 'apply'; readonly transition: T }
  | { readonly outcome: 'refuse'; readonly because: 'state' | 'guard' };

/** The one transition that applies to `state` under `command` when exactly the guards for which `holds` is true hold. */
export function decideIn<State extends string, Command extends string, Guard extends string>(
  table: readonly Transition<State, Command, Guard>[],
  state: State,
  command: Command,
  holds: (guard: Guard) => boolean,
): Decision<Transition<State, Command, Guard>> {
  const fromHere = table.filter((row) => row.command === command && row.from.includes(state));
  const transition = fromHere.find((row) => row.guard.every(holds));
  if (transition) return { outcome: 'apply', transition };
  return { outcome: 'refuse', because: fromHere.length === 0 ? 'state' : 'guard' };
}

/** The table as a Mermaid state diagram; `start` names the state before there is anything. */
export function diagramOf<State extends string>(
  table: readonly Transition<State, string, string>[],
  start: State,
  isEnd: (state: State) => boolean,
): string {
  const name = (state: State) => (state === start ? '[*]' : state);
  const edges = table.flatMap((row) => {
    const { to } = row;
    if (to === 'unchanged') return [];
    return row.from.flatMap((from) =>
      to.map((target) => `  ${name(from)} --> ${target}: ${row.row} ${row.command}${row.audited ? ' ◆' : ''}`),
    );
  });
  const ends = [...new Set(table.flatMap((row) => (row.to === 'unchanged' ? [] : row.to)))].filter(isEnd);
  return ['stateDiagram-v2', ...edges, ...ends.map((state) => `  ${state} --> [*]`)].join('\n');
}
