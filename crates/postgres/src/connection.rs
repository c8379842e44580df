//! Connections: how they are made, and made again after they have failed.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{ConnectError, RequestError};
use crate::schema::{self, Statements};

/// The longest time that a connection to one host may take, unless the parameters have another.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// The longest time that a request may take, unless the store has another.
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);

/// Settings of each connection, which override those of the server and of the role. A statement sees what other
/// transactions have committed while it waited for their locks.
const OPTIONS: &str = "-c default_transaction_isolation=read\\ committed -c default_transaction_read_only=off";

/// Makes connections to a database.
#[derive(Clone)]
pub(crate) struct Connector {
    /// The parameters for each host.
    hosts: Vec<Config>,
    tls: Option<MakeRustlsConnect>,
    /// The longest time that a connection to one host may take.
    time_max: Duration,
    pub(crate) request_limit: Duration,
}

impl Connector {
    /// Reads the parameters of connections.
    pub(crate) fn new(parameters: &str, request_limit: Duration) -> Result<Connector, ConnectError> {
        let wrong = |why: String| ConnectError::Parameters { why };
        let mut config: Config =
            parameters.parse().map_err(|error: tokio_postgres::Error| wrong(crate::error::with_causes(&error)))?;
        // The server gives up before the store does. 0 would be no limit.
        let statement_ms = (request_limit * 4 / 5).as_millis().clamp(1, i32::MAX as u128);
        let given = config.get_options().unwrap_or_default();
        let options = format!("{given} {OPTIONS} -c statement_timeout={statement_ms}");
        config.options(options).target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("playhouse");
        }
        let time_max = config.get_connect_timeout().copied().unwrap_or(CONNECT_TIME_MAX);
        // A host may have several addresses.
        config.connect_timeout(time_max / 2);
        let tls = if config.get_ssl_mode() == SslMode::Require { Some(tls().map_err(wrong)?) } else { None };
        Ok(Connector { hosts: each_host(&config).map_err(wrong)?, tls, time_max, request_limit })
    }

    /// Returns the outcome of a request, or an error after the limit.
    pub(crate) async fn within<T, E: Into<RequestError>>(
        &self,
        request: impl Future<Output = Result<T, E>>,
    ) -> Result<T, RequestError> {
        within(self.request_limit, "the server has not answered in time", request).await
    }

    /// Makes a connection to the first host that accepts writes. `message` takes what the server sends without a request,
    /// and runs on the thread of the connections.
    pub(crate) async fn connect(
        &self,
        message: impl FnMut(AsyncMessage) + Send + 'static,
    ) -> Result<Connection, RequestError> {
        let mut hosts = self.hosts.iter();
        let (client, messages) = loop {
            let host = hosts.next().expect("the last host ends the loop");
            // A host that answers nothing does not keep the next one from being tried.
            let made = within(self.time_max, "the server has not accepted a connection in time", self.connect_to(host));
            match made.await {
                Err(_) if hosts.len() > 0 => {}
                outcome => break outcome?,
            }
        };
        Ok(Connection { client, driver: tokio::spawn(drive(messages, message)).abort_handle() })
    }

    async fn connect_to(&self, host: &Config) -> Result<(Client, Messages), tokio_postgres::Error> {
        Ok(match &self.tls {
            Some(tls) => {
                let (client, mut connection) = host.connect(tls.clone()).await?;
                (client, Box::new(move |context| connection.poll_message(context)))
            }
            None => {
                let (client, mut connection) = host.connect(NoTls).await?;
                (client, Box::new(move |context| connection.poll_message(context)))
            }
        })
    }
}

/// Returns the parameters for each host alone, because those for all have no limit of time for a host that is paused.
fn each_host(all: &Config) -> Result<Vec<Config>, String> {
    let (hosts, addresses, ports) = (all.get_hosts(), all.get_hostaddrs(), all.get_ports());
    if hosts.is_empty() {
        return Err("`host` is missing".to_owned());
    }
    if !addresses.is_empty() && addresses.len() != hosts.len() || ports.len() > 1 && ports.len() != hosts.len() {
        return Err("`hostaddr` and `port` need one value for each host".to_owned());
    }
    let one = |(number, host): (usize, &Host)| {
        let mut one = Config::new();
        match host {
            Host::Tcp(name) => one.host(name),
            #[cfg(unix)]
            Host::Unix(folder) => one.host_path(folder),
        };
        addresses.get(number).map(|&address| one.hostaddr(address));
        ports.get(number).or(ports.first()).map(|&port| one.port(port));
        all.get_user().map(|user| one.user(user));
        all.get_password().map(|password| one.password(password));
        all.get_dbname().map(|name| one.dbname(name));
        all.get_options().map(|options| one.options(options));
        all.get_application_name().map(|name| one.application_name(name));
        all.get_connect_timeout().map(|&time| one.connect_timeout(time));
        all.get_tcp_user_timeout().map(|&time| one.tcp_user_timeout(time));
        all.get_keepalives_interval().map(|time| one.keepalives_interval(time));
        all.get_keepalives_retries().map(|retries| one.keepalives_retries(retries));
        one.keepalives(all.get_keepalives()).keepalives_idle(all.get_keepalives_idle());
        one.ssl_mode(all.get_ssl_mode()).ssl_negotiation(all.get_ssl_negotiation());
        one.channel_binding(all.get_channel_binding()).load_balance_hosts(all.get_load_balance_hosts());
        one.target_session_attrs(all.get_target_session_attrs());
        one
    };
    Ok(hosts.iter().enumerate().map(one).collect())
}

/// A connection, which is closed when this value is dropped, also if the server never answers.
pub(crate) struct Connection {
    pub(crate) client: Client,
    driver: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Moves the bytes of a connection, and returns what the server sends without a request.
type Messages = Box<dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<AsyncMessage, tokio_postgres::Error>>> + Send>;

/// Moves the bytes of a connection until it ends.
async fn drive(mut messages: Messages, mut message: impl FnMut(AsyncMessage)) {
    while let Some(Ok(next)) = poll_fn(&mut messages).await {
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
async fn within<T, E: Into<RequestError>>(
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
    pub(crate) connection: Connection,
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
        // The time includes the wait for others that try to connect, because their failures would add up.
        let time_max = connector.time_max * (connector.hosts.len() as u32 + 1);
        within(time_max, "the server has not accepted a connection in time", self.wait_for_session(connector)).await
    }

    async fn wait_for_session(&self, connector: &Connector) -> Result<Arc<Session>, RequestError> {
        // Requests at the same time wait for one connection.
        let mut slot = self.session.lock().await;
        if let Some(session) = slot.as_ref().filter(|session| !session.connection.client.is_closed()) {
            return Ok(Arc::clone(session));
        }
        let connection = connector.connect(drop).await?;
        schema::check(&connection.client).await?;
        let statements = Statements::prepare(&connection.client).await?;
        let session = Arc::new(Session { connection, statements });
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
