-- Up Migration

-- Whose token took a draining life out of service. Null while draining: its process is stopping, which nobody undoes.
-- `drains` counts how often persons took it out of service or put it back: who does so names the count that they saw,
-- so what is carried out late undoes nothing that was decided since.
alter table workers
  add column drained_by text,
  add column drains integer not null default 0,
  add check (drained_by is null or state <> 'live');
