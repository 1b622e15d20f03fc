-- The store, format 1. Times are microseconds since 1970 UTC, NULL for none.
-- Events and posts are JSON. A conversation's number n joins the tables; its
-- id is what the rest of the program knows. The keys of records and inbox are
-- n << 32 | seq: one integer that keeps a conversation's rows together.

CREATE TABLE conversations (
	n          INTEGER PRIMARY KEY,
	id         TEXT NOT NULL UNIQUE,
	thread     TEXT NOT NULL UNIQUE, -- the thread's key
	agent      TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,     -- of the last admission or commit
	seq        INTEGER NOT NULL,     -- of the last record
	arrived    INTEGER NOT NULL,     -- seq of the last inbox entry ever admitted
	loud       INTEGER NOT NULL,     -- seq of the last that is not quiet
	taken      INTEGER NOT NULL,     -- entries up to this seq are gone
	owner      TEXT,                 -- of the lease, NULL when there is none
	epoch      INTEGER NOT NULL,     -- claims ever
	attempt    INTEGER NOT NULL,     -- claims since the last release
	ready_at   INTEGER,              -- when it can be claimed: of a leased one the end of the lease
	pause_at   INTEGER               -- not ready before, while it is not leased
);
CREATE INDEX conversations_ready ON conversations (ready_at) WHERE ready_at IS NOT NULL;

CREATE TABLE records (
	key  INTEGER PRIMARY KEY,
	at   INTEGER NOT NULL,
	kind TEXT NOT NULL,
	data BLOB
);

CREATE TABLE inbox (
	key   INTEGER PRIMARY KEY,
	at    INTEGER NOT NULL,
	quiet INTEGER NOT NULL,
	event BLOB NOT NULL
);

-- What was admitted, for as long as repeats are recognised; oldest first.
CREATE TABLE events (
	n            INTEGER PRIMARY KEY,
	at           INTEGER NOT NULL,
	channel      TEXT NOT NULL,
	id           TEXT NOT NULL,
	same         TEXT,             -- never of an ignored event
	conversation INTEGER,          -- NULL of an ignored event
	reason       TEXT,             -- why it was ignored
	digest       INTEGER NOT NULL  -- of the JSON, to see a repeat with other content
);
CREATE UNIQUE INDEX events_id ON events (channel, id);
CREATE UNIQUE INDEX events_same ON events (channel, same) WHERE same IS NOT NULL;

CREATE TABLE blobs (
	conversation INTEGER NOT NULL,
	name         TEXT NOT NULL,
	data         BLOB NOT NULL,
	UNIQUE (conversation, name)
);

CREATE TABLE posts (
	n            INTEGER PRIMARY KEY,
	conversation INTEGER NOT NULL,
	key          TEXT NOT NULL,
	thread       TEXT NOT NULL,
	post         BLOB NOT NULL,
	state        TEXT NOT NULL,    -- due, sent, dead
	due_at       INTEGER,          -- when it can be claimed: of a claimed one the end of the claim; NULL while
	                               -- an older post of its thread is unsettled, and once it is settled
	owner        TEXT,             -- of the claim, NULL when there is none
	attempts     INTEGER NOT NULL, -- claims so far
	doubt_at     INTEGER,          -- when an attempt began that may have been made
	queued_at    INTEGER NOT NULL,
	first_at     INTEGER,          -- of the first claim
	claimed_at   INTEGER,          -- of the last claim
	settled_at   INTEGER,
	ref          TEXT,
	reason       TEXT,
	UNIQUE (conversation, key)
);
CREATE INDEX posts_open ON posts (thread) WHERE state = 'due';
CREATE INDEX posts_due ON posts (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE health (
	n          INTEGER PRIMARY KEY CHECK (n = 1),
	clean      INTEGER NOT NULL, -- the last owner closed the store
	checked_at INTEGER
);
INSERT INTO health (n, clean) VALUES (1, 1);
