-- Up Migration

-- What every run costs, made less. In the order in which submits and ends take these tables, all at once: who holds one of
-- them never waits for another that is taken here.
lock table live_runs, runs, audit_heads, audit_entries in access exclusive mode;

-- Whether a claim may take it. A column of its own, so that no index names the state: then the step from claimed to running
-- changes nothing that an index holds, and stays in its page.
alter table live_runs add column claimable boolean not null generated always as (state = 'pending' and not_before is null) stored;
-- A run of kind `noop` has no tool whose start would have to be kept apart from the claim. Null in rows of the version before.
alter table live_runs add column kind text;
drop index live_runs_order, live_runs_due, live_runs_newest;
create index live_runs_order on live_runs (queue, (-priority), position) where claimable;
create index live_runs_due on live_runs (not_before) where not_before is not null;
create index live_runs_newest on live_runs (organization_id, created_at, run_id) where claimable;
create index live_runs_set_aside on live_runs (organization_id, created_at, run_id) where holder is null and not claimable;

-- A look at another table for each row is most of what writing a small row costs. These rows are written by the statements
-- that write, or lock, what they refer to; `capstan doctor` looks after them.
alter table live_runs drop constraint live_runs_run_id_fkey, drop constraint live_runs_holder_fkey;
alter table runs drop constraint runs_root_id_fkey, drop constraint runs_organization_id_fkey;
alter table audit_entries drop constraint audit_entries_chain_id_fkey;

-- Checks are made again with every update, of all columns: a pattern is most of what that costs.
alter table runs drop constraint runs_queue_check;

-- Room for the outcome beside the record: an update that finds none in its page writes into every index of the table.
alter table runs set (fillfactor = 45);
alter table live_runs set (fillfactor = 50);

-- `,"name":value` of a JSON object; nothing for null.
create function json_member(p_name text, p_value text) returns text language sql stable
  as $$ select coalesce(',"' || p_name || '":' || to_json(p_value)::text, '') $$;

-- Appends entries to their chains and returns a receipt each. `p_payload` is RFC 8785 text of objects, `p_action` their
-- actions. It is called by the statement that makes the recorded change, as its last part: change and entry commit together
-- without the client in between, so nobody can sit on a chain's lock. Each statement in here has a snapshot of its own (read
-- committed): the head is read after the lock was waited for. Nothing in a head or a last entry keeps appending from going
-- on: that it was tampered with is for verifying to find. A chain that isn't there, or has no numbers left, is an error of
-- our own (CA001), which is that chain's alone: whoever appends to others with it tries again without it.
create function audit_append(p_chain text[], p_action text[], p_payload text[], p_run uuid[])
returns table (entry integer, receipt text) language plpgsql volatile set lock_timeout = '2s' as $$
declare
  c_last constant bigint := 999999999999999;
  v_chain record;
  v_head record;
  v_last record;
  v_done integer := 0;
  v_seq bigint;
  v_link bytea;
  v_at timestamptz;
  v_new record;
  v_before text;
  v_links bytea[];
begin
  for v_chain in
    select h.chain_id, h.lock_key from audit_heads h where h.chain_id = any (p_chain) order by h.lock_key
  loop
    perform pg_advisory_xact_lock(1129337940, v_chain.lock_key);
    select h.seq, h.link into strict v_head from audit_heads h where h.chain_id = v_chain.chain_id;
    v_seq := case when v_head.seq <= c_last then v_head.seq else 0 end;
    v_link := case when v_head.seq <= c_last then v_head.link else '' end;
    v_at := date_trunc('milliseconds', db_clock());
    -- The head's own entry, or one behind it: then somebody moved the head back, and appending goes on behind the entry.
    select e.seq, e.link, e.at into v_last from audit_entries e
      where e.chain_id = v_chain.chain_id and e.seq between v_seq and c_last order by e.seq desc limit 1;
    if v_last.seq > v_seq then
      v_seq := v_last.seq;
      v_link := v_last.link;
    end if;
    -- Never before the last entry, whose text holds its time for ever; a time that no verifier reads is nobody's.
    if v_last.at > v_at and v_last.at < '9999-01-01T00:00:00Z' then
      v_at := v_last.at;
    end if;
    -- Everything that can be made without the link before is made at once: only the linking itself goes one by one.
    select array_agg(c.i order by c.i) as entries, array_agg(c.action order by c.i) as actions,
           array_agg(c.run order by c.i) as runs, array_agg(c.claim order by c.i) as claims,
           array_agg('{"claim":"sha256:' || encode(sha256(convert_to(c.claim, 'UTF8')), 'hex')
                     || '","domain":"loomseal-chain-v1","install_id":"' || v_chain.chain_id || '","prev":"'
                     order by c.i) as befores
      into v_new
      from (
        select p.i, p.action, p.run,
               '{"at":"' || instant_text(v_at) || '","payload":' || p.payload || ',"type":"capstan.audit/1"}' as claim
        from unnest(p_chain, p_action, p_payload, p_run) with ordinality as p (chain, action, payload, run, i)
        where p.chain = v_chain.chain_id
        offset 0
      ) c;
    v_links := array[v_link];
    foreach v_before in array v_new.befores loop
      v_seq := v_seq + 1;
      v_link := sha256(convert_to(v_before || encode(v_link, 'hex') || '","seq":' || v_seq || '}', 'UTF8'));
      v_links := v_links || v_link;
    end loop;
    if v_seq > c_last then
      raise exception 'the audit chain % has no numbers left', v_chain.chain_id using errcode = 'CA001';
    end if;
    insert into audit_entries (chain_id, seq, claim, prev, link, at, action, run_id)
      select v_chain.chain_id, v_seq - cardinality(v_new.entries) + e.n, e.claim, e.prev, e.link, v_at, e.action, e.run
      from unnest(v_new.claims, trim_array(v_links, 1), v_links[2:], v_new.actions, v_new.runs)
             with ordinality as e (claim, prev, link, action, run, n);
    update audit_heads h set seq = v_seq, link = v_link where h.chain_id = v_chain.chain_id;
    return query
      select e.i::integer, v_chain.chain_id || ':' || (v_seq - cardinality(v_new.entries) + e.n) || ':' || encode(e.link, 'hex')
      from unnest(v_new.entries, v_links[2:]) with ordinality as e (i, link, n);
    v_done := v_done + cardinality(v_new.entries);
  end loop;
  if v_done <> cardinality(p_chain) then
    raise exception 'an audit entry has no chain to be appended to' using errcode = 'CA001';
  end if;
end $$;

-- The same for payloads as objects: flat, with ASCII names; strings, integers, booleans and null only (as `canonical_flat`).
create or replace function audit_append(p_chain text[], p_payload jsonb[], p_run uuid[])
returns table (entry integer, receipt text) language sql volatile as $$
  select a.entry, a.receipt
  from (
    select array_agg(p.payload ->> 'action' order by p.i) as actions, array_agg(c.canonical order by p.i) as payloads
    from unnest(p_payload) with ordinality as p (payload, i)
    cross join lateral (
      select '{' || string_agg(to_json(key)::text || ':' || value::text, ',' order by key collate "C") || '}' as canonical
      from jsonb_each(p.payload)
    ) c
  ) made
  cross join lateral audit_append(p_chain, made.actions, made.payloads, p_run) a
$$;
