-- The procedures of this name in the schema. Binds: name.
SELECT p.prosrc, p.prokind = 'p' AND NOT p.prosecdef AND p.proconfig IS NULL AND l.lanname = 'plpgsql',
       has_function_privilege(p.oid, 'EXECUTE')
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.proname = $1 AND p.pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
