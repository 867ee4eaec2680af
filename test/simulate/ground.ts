/** What a lane is prepared with once, and two organizations for each history, so that histories never meet. */
import { AccessService } from '../../src/access/access.service.js';
import { installationChain } from '../../src/audit/audit.sql.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { systemTiming } from '../../src/platform/time.js';
import type { Lane } from './lane.js';

/** Prepares the database, when it is new; the id of the installation's chain. */
export async function prepare(lane: Lane): Promise<string> {
  await new AccessService(lane.pool, systemTiming).prepare();
  const chain = await installationChain(lane.pool);
  if (!chain) throw new Error('the database was not prepared');
  return chain;
}

export async function makeOrganizations(lane: Lane, installation: string): Promise<readonly string[]> {
  const ids = [newId(), newId()];
  const chains = ids.map((id) => encodeId('org', id));
  const names = ids.map((id) => `o${id.slice(-12)}`);
  await lane.control.query({
    name: 'make_organizations',
    text: `with o as (insert into organizations (id, name) select * from unnest($1::uuid[], $2::text[]) returning id)
           insert into audit_heads (chain_id, organization_id) select * from unnest($3::text[], $1::uuid[])
           where (select count(*) from o) > 0`,
    values: [ids, names, chains],
  });
  await lane.control.query({
    name: 'record_organizations',
    text: `select from unnest($1::text[], $2::text[]) as i (chain, name)
           cross join lateral audit_append(
             array[$3::text, i.chain],
             array_fill(jsonb_build_object('action', 'organization.created', 'object', i.chain, 'name', i.name,
                                           'principal', 'system'), array[2]),
             array[null::uuid, null::uuid])`,
    values: [chains, names, installation],
  });
  return ids;
}
