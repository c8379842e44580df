//! Connections: how they are made, and made again after they have failed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{ConnectError, RequestError};
use crate::schema::{self, Statements};

/// The longest time that a connection may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// The longest time that a request may take. The server gives up earlier, see [`OPTIONS`].
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);

/// Settings of each connection, which override those of the server and of the role. A commit waits until it is durable.
/// A statement sees what other transactions have committed while it waited for their locks.
const OPTIONS: &str = "-c synchronous_commit=on -c default_transaction_isolation=read\\ committed \
                       -c default_transaction_read_only=off -c statement_timeout=8s";

/// Makes connections to a database.
#[derive(Clone)]
pub(crate) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    /// Reads the parameters of connections.
    pub(crate) fn new(parameters: &str) -> Result<Connector, ConnectError> {
        let wrong = |why: String| ConnectError::Parameters { why };
        let mut config: Config =
            parameters.parse().map_err(|error: tokio_postgres::Error| wrong(crate::error::with_causes(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(wrong("`host` is missing".to_owned()));
        }
        let options = config.get_options().map_or_else(|| OPTIONS.to_owned(), |given| format!("{given} {OPTIONS}"));
        config.options(options).target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIME_MAX);
        }
        if config.get_application_name().is_none() {
            config.application_name("playhouse");
        }
        let tls = if config.get_ssl_mode() == SslMode::Require { Some(tls().map_err(wrong)?) } else { None };
        Ok(Connector { config, tls })
    }

    /// Makes a connection. `message` takes what the server sends without a request, and runs on the thread of the
    /// connections.
    pub(crate) async fn connect(
        &self,
        message: impl FnMut(AsyncMessage) + Send + 'static,
    ) -> Result<Client, RequestError> {
        within(CONNECT_TIME_MAX, "the server has not accepted a connection in time", async {
            Ok::<_, RequestError>(match &self.tls {
                Some(tls) => {
                    let (client, connection) = self.config.connect(tls.clone()).await?;
                    tokio::spawn(drive(connection, message));
                    client
                }
                None => {
                    let (client, connection) = self.config.connect(NoTls).await?;
                    tokio::spawn(drive(connection, message));
                    client
                }
            })
        })
        .await
    }
}

/// Moves the bytes of a connection until it ends.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, mut message: impl FnMut(AsyncMessage))
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(Ok(next)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
        message(next);
    }
}

/// Returns the settings of encrypted connections. The system's root certificates are trusted, or those that the
/// variables `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
fn tls() -> Result<MakeRustlsConnect, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let cause = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(format!("`sslmode=require` needs root certificates, and none were found{cause}"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Ends a future after some time.
pub(crate) async fn within<T, E: Into<RequestError>>(
    time: Duration,
    what: &'static str,
    request: impl Future<Output = Result<T, E>>,
) -> Result<T, RequestError> {
    match timeout(time, request).await {
        Ok(outcome) => outcome.map_err(Into::into),
        Err(_) => Err(RequestError::TimedOut(what)),
    }
}

/// A connection with its prepared statements.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) statements: Statements,
}

/// A place for a connection, which is made by the first request, and again by the first one after it has failed.
#[derive(Default)]
pub(crate) struct Slot {
    session: Mutex<Option<Arc<Session>>>,
}

impl Slot {
    /// Returns the connection.
    pub(crate) async fn session(&self, connector: &Connector) -> Result<Arc<Session>, RequestError> {
        // Requests at the same time wait for one connection.
        let mut slot = self.session.lock().await;
        if let Some(session) = slot.as_ref().filter(|session| !session.client.is_closed()) {
            return Ok(Arc::clone(session));
        }
        let client = connector.connect(drop).await?;
        let prepared = async {
            schema::prepare(&client).await?;
            Ok::<_, RequestError>(Statements::prepare(&client).await?)
        };
        let statements = within(CONNECT_TIME_MAX, "the server has not answered in time", prepared).await?;
        let session = Arc::new(Session { client, statements });
        *slot = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Closes a connection whose server has not answered in time, unless it was replaced already.
    pub(crate) async fn close(&self, closed: &Arc<Session>) {
        let mut slot = self.session.lock().await;
        if slot.as_ref().is_some_and(|session| Arc::ptr_eq(session, closed)) {
            *slot = None;
        }
    }
}
