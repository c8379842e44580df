//! The options of connections.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use crate::error::ConnectError;

/// The options of connections to an etcd cluster.
///
/// # Examples
///
/// ```no_run
/// use playhouse_etcd::{EtcdOptions, EtcdStore};
///
/// let options = EtcdOptions::new(["https://a.example:2379", "https://b.example:2379", "https://c.example:2379"])
///     .namespace("shop/")
///     .root_certificates(std::fs::read("ca.pem")?)
///     .identity(std::fs::read("client.pem")?, std::fs::read("client.key")?);
/// let store = EtcdStore::connect(&options)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct EtcdOptions {
    pub(crate) endpoints: Vec<String>,
    pub(crate) namespace: String,
    root_certificates: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) user: Option<(String, String)>,
    pub(crate) request_limit: Duration,
}

impl EtcdOptions {
    /// Creates the options of a cluster with these endpoints, each like `http://127.0.0.1:2379`. A request goes to the
    /// first one that answers.
    pub fn new<E: Into<String>>(endpoints: impl IntoIterator<Item = E>) -> EtcdOptions {
        let endpoints =
            endpoints.into_iter().map(|endpoint| endpoint.into().trim_end_matches('/').to_owned()).collect();
        EtcdOptions {
            endpoints,
            namespace: "playhouse/".to_owned(),
            root_certificates: None,
            identity: None,
            user: None,
            request_limit: Duration::from_secs(10),
        }
    }

    /// Sets the longest time that one member may take for an answer. It is 10 s otherwise. etcd itself gives up after 7 s. A
    /// request that is sent to several members may take as long for each. A connection may take 2 s, but no longer than this.
    pub fn request_limit(mut self, limit: Duration) -> EtcdOptions {
        self.request_limit = limit;
        self
    }

    /// Sets the first part of all keys in etcd, which separates this store from others in the same cluster. It is
    /// `playhouse/` otherwise. Keys may contain `/`, so no namespace of a cluster begins with another one.
    pub fn namespace(mut self, namespace: impl Into<String>) -> EtcdOptions {
        self.namespace = namespace.into();
        self
    }

    /// Sets the certificates, in PEM, that have signed those of the members. Those of the system count otherwise.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> EtcdOptions {
        self.root_certificates = Some(pem.into());
        self
    }

    /// Sets the certificate of this client and its key, both in PEM.
    pub fn identity(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> EtcdOptions {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// Sets the name and the password of a user of etcd.
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> EtcdOptions {
        self.user = Some((name.into(), password.into()));
        self
    }

    /// Checks the options, and returns the settings of requests.
    pub(crate) fn check(&self) -> Result<ureq::config::Config, ConnectError> {
        let wrong = |why: String| ConnectError::Options { why };
        if self.endpoints.is_empty() {
            return Err(wrong(
                "the list of endpoints is empty: name at least one, as in \"http://127.0.0.1:2379\"".to_owned(),
            ));
        }
        for endpoint in &self.endpoints {
            let uri = endpoint.parse::<ureq::http::Uri>().ok().filter(|uri| {
                let has_scheme = matches!(uri.scheme_str(), Some("http" | "https"));
                let authority = uri.authority().map(|authority| authority.as_str());
                let has_port = authority.is_some_and(|authority| {
                    !authority.contains('@')
                        && (uri.port_u16().is_some() || authority.ends_with(uri.host().unwrap_or("")))
                });
                has_scheme && has_port && uri.path() == "/" && uri.query().is_none() && !endpoint.contains('#')
            });
            if uri.is_none() {
                return Err(wrong(format!("the endpoint {:?} is not like \"http://127.0.0.1:2379\"", shown(endpoint))));
            }
        }
        let mut tls = TlsConfig::builder().unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
        if self.endpoints.iter().any(|endpoint| endpoint.starts_with("https://")) {
            tls = tls.root_certs(RootCerts::Specific(Arc::new(self.roots().map_err(wrong)?)));
            if let Some((certificate, key)) = &self.identity {
                let chain = certificates(certificate, "the certificate of the client").map_err(wrong)?;
                let key = PrivateKey::from_pem(key)
                    .map_err(|_| wrong("the key of the client has no PEM of a key".to_owned()))?;
                tls = tls.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
            }
        }
        Ok(ureq::Agent::config_builder()
            .tls_config(tls.build())
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIME_MAX.min(self.request_limit)))
            .max_idle_connections_per_host(4)
            .build())
    }

    fn roots(&self) -> Result<Vec<Certificate<'static>>, String> {
        if let Some(pem) = &self.root_certificates {
            return certificates(pem, "the root certificates");
        }
        let found = rustls_native_certs::load_native_certs().certs;
        if found.is_empty() {
            return Err("an endpoint has `https`, and the system has no root certificates: set them".to_owned());
        }
        Ok(found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect())
    }
}

/// The longest time that a connection may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);

impl fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdOptions")
            .field("endpoints", &self.endpoints.iter().map(|endpoint| shown(endpoint)).collect::<Vec<_>>())
            .field("namespace", &self.namespace)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .finish_non_exhaustive()
    }
}

/// Returns an endpoint without what comes before its host, which may be a password.
fn shown(endpoint: &str) -> &str {
    endpoint.rsplit_once('@').map_or(endpoint, |(_, host)| host)
}

/// Returns the certificates in a text.
fn certificates(pem: &[u8], whose: &str) -> Result<Vec<Certificate<'static>>, String> {
    let mut found = Vec::new();
    for item in parse_pem(pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(format!("{whose}: {error}")),
        }
    }
    if found.is_empty() { Err(format!("{whose}: no certificate in PEM was found")) } else { Ok(found) }
}
