#!/bin/sh
# The two roles of debateweb in a PostgreSQL of one's own: the owner of the schema, who migrates,
# and the application's, which can neither truncate nor change the schema nor switch triggers off.
# The passwords come from files and are quoted by psql. Run it once, as a superuser, on an empty
# database.
set -eu

owner_file=${DEBATEWEB_OWNER_PASSWORD_FILE:-/run/secrets/database_owner_password}
app_file=${DEBATEWEB_APP_PASSWORD_FILE:-/run/secrets/database_app_password}
test -s "$owner_file" && test -s "$app_file"

# Variables, not arguments: a password in a command line is seen by everybody on the machine.
owner_password=$(cat "$owner_file") app_password=$(cat "$app_file") \
    psql -v ON_ERROR_STOP=1 -X -q -U "$POSTGRES_USER" -d "$POSTGRES_DB" <<'SQL'
\getenv owner_password owner_password
\getenv app_password app_password
\set database :DBNAME
CREATE ROLE debateweb_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE debateweb_app LOGIN PASSWORD :'app_password';
ALTER DATABASE :"database" OWNER TO debateweb_owner;
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"database" TO debateweb_app;
ALTER SCHEMA public OWNER TO debateweb_owner;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO debateweb_app;
ALTER DEFAULT PRIVILEGES FOR ROLE debateweb_owner
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO debateweb_app;
ALTER DEFAULT PRIVILEGES FOR ROLE debateweb_owner
    GRANT USAGE, SELECT ON SEQUENCES TO debateweb_app;
SQL
