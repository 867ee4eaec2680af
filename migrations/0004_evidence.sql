-- Up Migration

-- Entries that belong to no run are few: what they are about is found by these. The text is canonical, so the pattern
-- meets a member of the payload and nothing that a value quotes.
create index audit_entries_object on audit_entries (chain_id, (substring(claim from '"object":"([^"]*)"')), seq)
  where run_id is null;

-- The signing key of the installation is what the newest of these entries in its chain says. There is one first.
create unique index audit_entries_first_key on audit_entries (action) where action = 'audit.key_recorded';
create index audit_entries_keys on audit_entries (chain_id, seq)
  where action in ('audit.key_recorded', 'audit.key_rotated');

-- A migration is told once, however many replicas start at the same time.
create unique index audit_entries_migration on audit_entries ((substring(claim from '"object":"([^"]*)"')))
  where action = 'schema.migrated';

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
