-- Up Migration

-- Whose token took a draining life out of service. Null while draining: its process is stopping, which nobody undoes.
alter table workers add column drained_by text, add check (drained_by is null or state <> 'live');
