-- Up Migration

-- Each is built by looking at every entry once (about a second per million), and while that takes nothing can be appended:
-- so they come by themselves, and nothing that waits for another lock is repeated together with them.
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
