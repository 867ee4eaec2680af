-- Up Migration

-- Timestamps by an outside authority (RFC 3161) of a chain's entry.
create table audit_anchors (
  chain_id text not null references audit_heads,
  seq bigint not null check (seq >= 1),
  link bytea not null check (length(link) = 32),
  at text not null,                                        -- the authority's own time, RFC 3339
  ref text not null check (ref <> ''),                     -- the authority's URL
  token bytea not null check (length(token) > 0),          -- the DER TimeStampToken as it came
  created_at timestamptz not null default db_now(),
  primary key (chain_id, seq)
);
create trigger audit_anchors_append_only before update or delete or truncate on audit_anchors
  for each statement execute function refuse_change('anchors are only ever appended');

-- Which replica asks the authority next: it has its turn until then, whatever becomes of it.
create table audit_anchor_turns (
  chain_id text primary key references audit_heads,
  until timestamptz not null
);

-- Tokens that the installation's operator handed in act for the installation itself. All there are so far are such.
alter table tokens add column installation boolean not null default false;
update tokens set installation = true;

-- No chain has so many entries: a number beyond this was written by somebody else. A head only moves forward, and never
-- there; one that was put there comes back to the last entry, or nothing could be appended any more.
drop trigger audit_heads_only_forward on audit_heads;
create trigger audit_heads_only_forward before update on audit_heads
  for each row when (new.seq <= old.seq and old.seq <= 999999999999999 or new.seq > 999999999999999
                     or new.chain_id <> old.chain_id)
  execute function refuse_change('a head only moves forward');

-- Appends entries to their chains and returns a receipt each. It is called by the statement that makes the recorded
-- change, as its last part: change and entry commit together without the client in between, so nobody can sit on a
-- chain's lock. Each statement in here has a snapshot of its own (read committed): the head is read after the lock
-- was waited for. Nothing in a head or a last entry keeps appending from going on: that it was tampered with is for
-- verifying to find. A chain that isn't there, or has no numbers left, is an error of our own (CA001), which is that
-- chain's alone: whoever appends to others with it tries again without it.
create or replace function audit_append(p_chain text[], p_payload jsonb[], p_run uuid[])
returns table (entry integer, receipt text) language plpgsql volatile set lock_timeout = '2s' as $$
declare
  c_last constant bigint := 999999999999999;
  v_chain record;
  v_head record;
  v_last record;
  v_i integer;
  v_done integer := 0;
  v_seq bigint;
  v_prev bytea;
  v_at timestamptz;
  v_claim text;
  v_entries integer[];
  v_seqs bigint[];
  v_claims text[];
  v_prevs bytea[];
  v_links bytea[];
begin
  for v_chain in
    select h.chain_id, h.lock_key from audit_heads h where h.chain_id = any (p_chain) order by h.lock_key
  loop
    perform pg_advisory_xact_lock(1129337940, v_chain.lock_key);
    select h.seq, h.link into strict v_head from audit_heads h where h.chain_id = v_chain.chain_id;
    v_seq := case when v_head.seq <= c_last then v_head.seq else 0 end;
    v_prev := case when v_head.seq <= c_last then v_head.link else '' end;
    v_at := date_trunc('milliseconds', db_clock());
    -- The head's own entry, or one behind it: then somebody moved the head back, and appending goes on behind the entry.
    select e.seq, e.link, e.at into v_last from audit_entries e
      where e.chain_id = v_chain.chain_id and e.seq between v_seq and c_last order by e.seq desc limit 1;
    if v_last.seq > v_seq then
      v_seq := v_last.seq;
      v_prev := v_last.link;
    end if;
    -- Never before the last entry, whose text holds its time for ever; a time that no verifier reads is nobody's.
    if v_last.at > v_at and v_last.at < '9999-01-01T00:00:00Z' then
      v_at := v_last.at;
    end if;
    v_entries := '{}'; v_seqs := '{}'; v_claims := '{}'; v_prevs := '{}'; v_links := '{}';
    for v_i in 1 .. cardinality(p_chain) loop
      continue when p_chain[v_i] <> v_chain.chain_id;
      v_seq := v_seq + 1;
      v_claim := '{"at":"' || instant_text(v_at) || '","payload":' || canonical_flat(p_payload[v_i])
        || ',"type":"capstan.audit/1"}';
      v_entries := v_entries || v_i;
      v_seqs := v_seqs || v_seq;
      v_claims := v_claims || v_claim;
      v_prevs := v_prevs || v_prev;
      v_prev := sha256(convert_to(
        '{"claim":"sha256:' || encode(sha256(convert_to(v_claim, 'UTF8')), 'hex')
        || '","domain":"loomseal-chain-v1","install_id":"' || v_chain.chain_id
        || '","prev":"' || encode(v_prev, 'hex') || '","seq":' || v_seq || '}', 'UTF8'));
      v_links := v_links || v_prev;
    end loop;
    if v_seq > c_last then
      raise exception 'the audit chain % has no numbers left', v_chain.chain_id using errcode = 'CA001';
    end if;
    insert into audit_entries (chain_id, seq, claim, prev, link, at, action, run_id)
      select v_chain.chain_id, e.seq, e.claim, e.prev, e.link, v_at, p_payload[e.i] ->> 'action', p_run[e.i]
      from unnest(v_entries, v_seqs, v_claims, v_prevs, v_links) as e (i, seq, claim, prev, link);
    update audit_heads h set seq = v_seq, link = v_prev where h.chain_id = v_chain.chain_id;
    return query
      select e.i, v_chain.chain_id || ':' || e.seq || ':' || encode(e.link, 'hex')
      from unnest(v_entries, v_seqs, v_links) as e (i, seq, link);
    v_done := v_done + cardinality(v_entries);
  end loop;
  if v_done <> cardinality(p_chain) then
    raise exception 'an audit entry has no chain to be appended to' using errcode = 'CA001';
  end if;
end $$;

-- The time of the last entry is all there is to know of it.
alter table audit_heads drop column at;
