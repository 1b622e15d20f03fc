-- Format 2: named values that belong to no conversation, and which inbox entry
-- an event became. Of the events admitted before, those still waiting are known.

CREATE TABLE named_values (
	space TEXT NOT NULL,
	key   TEXT NOT NULL,
	data  BLOB NOT NULL,
	UNIQUE (space, key)
);

ALTER TABLE events ADD COLUMN seq INTEGER; -- of the inbox entry, NULL of an ignored event
UPDATE events SET seq = entry.seq FROM (
	SELECT key & 4294967295 AS seq,
		json_extract(CAST(event AS TEXT), '$.thread.channel') AS channel,
		json_extract(CAST(event AS TEXT), '$.id') AS id
	FROM inbox
) AS entry WHERE events.channel = entry.channel AND events.id = entry.id;
