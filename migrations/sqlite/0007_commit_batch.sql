-- Of PostgreSQL only; the numbers go in step.
SELECT 1;
