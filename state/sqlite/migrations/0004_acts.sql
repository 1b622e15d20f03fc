-- Format 4: what an ignored event told of, and the posts that are dead, for
-- people who ask.

ALTER TABLE events ADD COLUMN act TEXT; -- same of an ignored event
CREATE INDEX events_act ON events (channel, act) WHERE act IS NOT NULL;
CREATE INDEX posts_dead ON posts (queued_at) WHERE state = 'dead';
