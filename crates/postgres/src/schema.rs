//! The tables: how they are created and recognised, and the statements on them.

use tokio_postgres::{Client, Statement};

use crate::error::{ConnectError, RequestError};

/// The number of the format.
const FORMAT: i32 = 1;

/// The oldest supported version of the server, as `server_version_num` has it.
const VERSION_MIN: i32 = 130_000;

/// The number of the lock of processes that create the tables.
const CREATION: i64 = 0x506c_4873;

/// One row for each state. The keys are bytes, because these are ordered without regard to a language. The sequence
/// gives each save a revision above all earlier ones, also above those before a removal.
const TABLES: &str = "
    CREATE TABLE playhouse_state (key bytea PRIMARY KEY, revision bigint NOT NULL, bytes bytea NOT NULL);
    CREATE SEQUENCE playhouse_revision;
    CREATE TABLE playhouse_format (format integer NOT NULL);
    INSERT INTO playhouse_format VALUES (1);
";

/// Creates the tables if there are none. Later connections do not, because they would hide that the tables are gone.
pub(crate) async fn create(client: &Client) -> Result<(), RequestError> {
    check_version(client).await?;
    if !is_created(client).await? {
        client.execute("SELECT pg_advisory_lock($1)", &[&CREATION]).await?;
        // Another process may have created them during the wait for the lock. This is a new transaction, because one
        // that has begun before does not see the names of new tables. The end of a failed connection unlocks, too.
        if !is_created(client).await? {
            client.batch_execute(TABLES).await?;
        }
        client.execute("SELECT pg_advisory_unlock($1)", &[&CREATION]).await?;
    }
    Ok(())
}

/// Checks the server and the tables. Lets commits wait until they are durable, unless they wait for more.
pub(crate) async fn check(client: &Client) -> Result<(), RequestError> {
    check_version(client).await?;
    let waits = "SELECT set_config('synchronous_commit', 'on', false)
                 WHERE current_setting('synchronous_commit') IN ('off', 'local')";
    client.batch_execute(waits).await?;
    let found = client.query_one("SELECT format FROM playhouse_format", &[]).await?.get(0);
    if found != FORMAT {
        return Err(RequestError::Unfit(ConnectError::Format { found, known: FORMAT }));
    }
    Ok(())
}

async fn check_version(client: &Client) -> Result<(), RequestError> {
    let row = client
        .query_one("SELECT current_setting('server_version_num')::integer, current_setting('server_version')", &[])
        .await?;
    if row.get::<_, i32>(0) < VERSION_MIN {
        return Err(RequestError::Unfit(ConnectError::Version { found: row.get(1) }));
    }
    Ok(())
}

async fn is_created(client: &Client) -> Result<bool, RequestError> {
    Ok(client.query_one("SELECT to_regclass('playhouse_format') IS NOT NULL", &[]).await?.get(0))
}

/// The prepared statements of a connection.
pub(crate) struct Statements {
    pub(crate) load: Statement,
    pub(crate) create: Statement,
    pub(crate) replace: Statement,
    pub(crate) remove: Statement,
    pub(crate) revision: Statement,
    pub(crate) keys: Statement,
    pub(crate) notify: Statement,
}

/// Locks the key `$1` until the end of the statement's transaction.
///
/// A state is created and removed under this lock. A removal could otherwise come between the moment in which a creation
/// takes its revision and the moment in which the row appears, together with saves of higher revisions.
const LOCKED: &str =
    "WITH locked AS MATERIALIZED (SELECT pg_advisory_xact_lock(1349273715, hashtext(encode($1, 'hex'))))";

impl Statements {
    pub(crate) async fn prepare(client: &Client) -> Result<Statements, tokio_postgres::Error> {
        let create = format!(
            "{LOCKED} INSERT INTO playhouse_state (key, revision, bytes)
             SELECT $1, nextval('playhouse_revision'), $2 FROM locked ON CONFLICT (key) DO NOTHING RETURNING revision"
        );
        let remove = format!(
            "{LOCKED} DELETE FROM playhouse_state USING locked WHERE key = $1 AND revision = $2 RETURNING revision"
        );
        Ok(Statements {
            load: client.prepare("SELECT revision, bytes FROM playhouse_state WHERE key = $1").await?,
            create: client.prepare(&create).await?,
            replace: client
                .prepare(
                    "UPDATE playhouse_state SET revision = nextval('playhouse_revision'), bytes = $2
                     WHERE key = $1 AND revision = $3 RETURNING revision",
                )
                .await?,
            remove: client.prepare(&remove).await?,
            revision: client.prepare("SELECT revision FROM playhouse_state WHERE key = $1").await?,
            keys: client.prepare("SELECT key FROM playhouse_state WHERE key >= $1 AND key < $2 ORDER BY key").await?,
            notify: client
                .prepare("SELECT count(pg_notify('playhouse_state', key)) FROM unnest($1::text[]) AS key")
                .await?,
        })
    }
}
