-- Format 3: threads that a conversation owns besides its own, whether it has
-- left them, and whose next words it waits for.

CREATE TABLE threads (
	n            INTEGER PRIMARY KEY,
	conversation INTEGER NOT NULL,
	thread       TEXT NOT NULL UNIQUE, -- the thread's key, never one of conversations.thread when it was added
	place        TEXT NOT NULL         -- key of the thread that the post was for which opened it
);
CREATE INDEX threads_place ON threads (conversation, place);

ALTER TABLE conversations ADD COLUMN left INTEGER NOT NULL DEFAULT 0; -- its threads are not followed
ALTER TABLE conversations ADD COLUMN held_by TEXT;    -- the author that ready_at waits for, NULL for none
ALTER TABLE conversations ADD COLUMN held_at INTEGER; -- since when
