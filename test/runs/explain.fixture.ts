/** What the product's own statements cost, as the server plans and counts it: they are carried out all the same. */
import type postgres from 'postgres';
import type { Pool, Sql } from '../../src/platform/db/db.js';

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly Node[];
}

export interface Cost {
  /** Pages touched, by functions that it calls too; each as often as it was. */
  readonly blocks: number;
  /** Tables read from their beginning to their end. */
  readonly scanned: readonly string[];
  /** Indexes that it goes by. */
  readonly indexes: readonly string[];
  /** Rows of the largest sort. */
  readonly sorted: number;
}

/** The costs of each statement that `work` sends through the pool it is given, in their order. */
export async function costsOf(pool: Pool, work: (explaining: Pool) => Promise<unknown>): Promise<Cost[]> {
  const costs: Cost[] = [];
  const explaining = {
    run: async (statement: (sql: Sql) => postgres.PendingQuery<postgres.Row[]>) => {
      const rows = await pool.run<object[]>(
        (sql) => sql`explain (analyze, buffers, timing off, format json) ${statement(sql)}`,
      );
      const [[{ Plan: plan }]] = Object.values(rows[0] ?? {}) as [[{ Plan: Node }]];
      costs.push(costOf(plan));
      return [];
    },
  };
  await work(explaining as unknown as Pool);
  return costs;
}

function costOf(plan: Node): Cost {
  const nodes = allOf(plan);
  const named = (key: 'Relation Name' | 'Index Name', of: (node: Node) => boolean) => [
    ...new Set(nodes.filter(of).flatMap((node) => node[key] ?? [])),
  ];
  return {
    blocks: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
    scanned: named('Relation Name', (node) => node['Node Type'] === 'Seq Scan' && node['Actual Loops'] > 0),
    indexes: named('Index Name', (node) => node['Actual Loops'] > 0),
    sorted: Math.max(
      0,
      ...nodes
        .filter((node) => node['Node Type'].includes('Sort'))
        .map((node) => node['Actual Rows'] * node['Actual Loops']),
    ),
  };
}

function allOf(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(allOf)];
}
