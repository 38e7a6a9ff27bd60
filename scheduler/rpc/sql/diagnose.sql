-- Why nothing suits: what waits at the heads of apps' queues. Locks nothing.
SELECT (
\ir waiting.sql
)::text
