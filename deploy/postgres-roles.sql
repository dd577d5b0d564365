-- The two roles of Overread in PostgreSQL, and a database for one study. Run it as a superuser; running it again changes nothing:
--
--     psql -v study=cardiology -f postgres-roles.sql        (without -v the database is called overread)
--
-- overread_owner owns the tables and migrates them. overread_app is what the server connects as: it owns nothing, and `overread migrate
-- --app-role overread_app` gives it what it needs. Passwords are read from the files that OWNER_PASSWORD_FILE and APP_PASSWORD_FILE name;
-- where neither is set, passwords stay as they are.

\set ON_ERROR_STOP on
\if :{?study} \else \set study overread \endif

SELECT format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS', name)
FROM (VALUES ('overread_owner'), ('overread_app')) AS wanted (name)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec

\set owner_password `test -z "$OWNER_PASSWORD_FILE" || cat "$OWNER_PASSWORD_FILE"`
\set app_password `test -z "$APP_PASSWORD_FILE" || cat "$APP_PASSWORD_FILE"`
SELECT format('ALTER ROLE %I PASSWORD %L', name, password)
FROM (VALUES ('overread_owner', :'owner_password'), ('overread_app', :'app_password')) AS said (name, password)
WHERE password <> '' \gexec

SELECT format('CREATE DATABASE %I OWNER overread_owner', :'study')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'study') \gexec
REVOKE ALL ON DATABASE :"study" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"study" TO overread_app;

\connect :"study"
ALTER SCHEMA public OWNER TO overread_owner;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
