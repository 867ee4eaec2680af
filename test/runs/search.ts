/**
 * Breadth-first search over every interleaving of a small world: the first broken law comes with the shortest way to
 * it. When the whole world was seen without one, it also says from where the goal can't be reached any more.
 */

export interface Step<State> {
  readonly label: string;
  /** Something that goes wrong; what must happen without faults doesn't count on it. */
  readonly fault: boolean;
  readonly next: State;
}

export interface World<State> {
  readonly initial: State;
  key(state: State): string;
  steps(state: State): Iterable<Step<State>>;
  /** The law that this step breaks, if any. */
  broken(before: State, step: Step<State>): string | undefined;
  /** Everything has ended, or waits for something that can be named. */
  isGoal(state: State): boolean;
  /** Sights worth having seen: a search that never met them proves little. */
  sights(before: State, step: Step<State>): Iterable<string>;
}

export interface Found {
  readonly states: number;
  readonly law: string | undefined;
  /** The shortest way to the broken law, a step a line. */
  readonly path: readonly string[];
  readonly seen: ReadonlySet<string>;
}

interface Graph {
  readonly parent: number[];
  readonly label: string[];
  readonly goals: number[];
  /** Steps without faults, backwards. */
  readonly from: number[];
  readonly to: number[];
}

export function search<State>(world: World<State>, maxStates: number): Found {
  const graph: Graph = { parent: [-1], label: ['(begin)'], goals: [], from: [], to: [] };
  const seen = new Set<string>();
  const known = new Map([[world.key(world.initial), 0]]);
  const frontier: (State | undefined)[] = [world.initial];
  for (let at = 0; at < frontier.length; at += 1) {
    const state = frontier[at] as State;
    frontier[at] = undefined;
    if (world.isGoal(state)) graph.goals.push(at);
    for (const step of world.steps(state)) {
      const law = world.broken(state, step);
      if (law !== undefined) return { states: known.size, law, path: [...pathTo(graph, at), step.label], seen };
      for (const sight of world.sights(state, step)) seen.add(sight);
      const key = world.key(step.next);
      let index = known.get(key);
      if (index === undefined) {
        index = frontier.push(step.next) - 1;
        known.set(key, index);
        graph.parent.push(at);
        graph.label.push(step.label);
        if (known.size > maxStates) throw new Error(`the world has more than ${maxStates} states`);
      }
      if (!step.fault && index !== at) {
        graph.from.push(at);
        graph.to.push(index);
      }
    }
  }
  const stuck = firstStuck(graph, frontier.length);
  if (stuck === undefined) return { states: known.size, law: undefined, path: [], seen };
  return { states: known.size, law: 'after faults stop, everything ends', path: pathTo(graph, stuck), seen };
}

/** The first state from which no way without faults leads to a goal. */
function firstStuck(graph: Graph, size: number): number | undefined {
  const starts = new Int32Array(size + 1);
  for (const to of graph.to) starts[to + 1] = (starts[to + 1] ?? 0) + 1;
  for (let i = 0; i < size; i += 1) starts[i + 1] = (starts[i + 1] ?? 0) + (starts[i] ?? 0);
  const place = starts.slice();
  const back = new Int32Array(graph.to.length);
  graph.to.forEach((to, edge) => {
    const slot = place[to] ?? 0;
    back[slot] = graph.from[edge] ?? 0;
    place[to] = slot + 1;
  });
  const reaches = new Uint8Array(size);
  const stack = [...graph.goals];
  for (const goal of graph.goals) reaches[goal] = 1;
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    for (let slot = starts[at] ?? 0; slot < (starts[at + 1] ?? 0); slot += 1) {
      const before = back[slot] ?? 0;
      if (reaches[before]) continue;
      reaches[before] = 1;
      stack.push(before);
    }
  }
  const stuck = reaches.indexOf(0);
  return stuck === -1 ? undefined : stuck;
}

function pathTo(graph: Graph, index: number): string[] {
  const path: string[] = [];
  for (let at = index; at > 0; at = graph.parent[at] ?? 0) path.push(graph.label[at] ?? '');
  return path.reverse();
}
