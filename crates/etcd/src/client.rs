//! Requests to the members of a cluster.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::error::{ConnectError, RequestError};
use crate::message::{Authenticate, Authenticated, Failure};
use crate::options::EtcdOptions;

/// The largest size of an answer. Those of this crate are smaller, because lists come in parts.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Sends requests, to one member after another until one answers.
pub(crate) struct Client {
    agent: Agent,
    options: EtcdOptions,
    /// The number of the endpoint that gets the next request first.
    preferred: AtomicUsize,
    /// The token that etcd has given to the user.
    token: Mutex<Option<String>>,
}

/// Whether a request may be executed twice.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Repeat {
    /// A request that reads. It is sent to the next member after any error.
    Safe,
    /// A request that writes. It is sent to the next member only if the one before did not get it.
    Unsafe,
}

impl Client {
    pub(crate) fn new(options: &EtcdOptions) -> Result<Client, ConnectError> {
        let agent = Agent::new_with_config(options.check()?);
        Ok(Client { agent, options: options.clone(), preferred: AtomicUsize::new(0), token: Mutex::new(None) })
    }

    /// Sends a request, and reads the answer.
    pub(crate) fn call<A: DeserializeOwned>(
        &self,
        path: &str,
        request: &impl Serialize,
        repeat: Repeat,
    ) -> Result<A, RequestError> {
        let limit = Limit { whole: Some(self.options.request_limit), read: None };
        self.anywhere(repeat, |endpoint| read(endpoint, self.send(endpoint, path, request, limit)?))
    }

    /// Sends a request whose answer has no end. Reading fails when nothing has come for some time, and may go on.
    pub(crate) fn stream(
        &self,
        path: &str,
        request: &impl Serialize,
        read: Duration,
    ) -> Result<Response<Body>, RequestError> {
        let limit = Limit { whole: None, read: Some(read) };
        self.anywhere(Repeat::Safe, |endpoint| checked(endpoint, self.send(endpoint, path, request, limit)?))
    }

    /// Makes a request to one endpoint after another.
    fn anywhere<T>(
        &self,
        repeat: Repeat,
        request: impl Fn(&str) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        let endpoints = &self.options.endpoints;
        let first = self.preferred.load(Ordering::Relaxed);
        let mut number = first;
        loop {
            let outcome = self.authenticated(&endpoints[number], &request);
            let next = (number + 1) % endpoints.len();
            // After an error, also the next request goes to another member.
            self.preferred.store(if outcome.is_ok() { number } else { next }, Ordering::Relaxed);
            match outcome {
                Err(error) if next != first && (error.is_unsent || repeat == Repeat::Safe) => number = next,
                outcome => return outcome,
            }
        }
    }

    /// Makes a request to one endpoint, after the user has authenticated there if etcd requires it.
    fn authenticated<T>(
        &self,
        endpoint: &str,
        request: &impl Fn(&str) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        match (request(endpoint), &self.options.user) {
            // The members refuse the token of a user before they execute anything.
            (Err(error), Some((name, password))) if error.is_unauthenticated => {
                *self.token() = None;
                let limit = Limit { whole: Some(self.options.request_limit), read: None };
                let answer = self.send(endpoint, "/v3/auth/authenticate", &Authenticate { name, password }, limit)?;
                let Authenticated { token } = read(endpoint, answer)?;
                *self.token() = Some(token);
                request(endpoint)
            }
            (outcome, _) => outcome,
        }
    }

    fn send(
        &self,
        endpoint: &str,
        path: &str,
        request: &impl Serialize,
        limit: Limit,
    ) -> Result<Response<Body>, RequestError> {
        let body = serde_json::to_vec(request).expect("requests have no maps");
        let mut post = self.agent.post(format!("{endpoint}{path}")).header("Content-Type", "application/json");
        if let Some(token) = &*self.token() {
            post = post.header("Authorization", token);
        }
        let post = post.config().timeout_global(limit.whole).timeout_per_read(limit.read).build();
        post.send(&body[..]).map_err(|error| RequestError::of(endpoint, error))
    }

    fn token(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The longest times of a request.
#[derive(Clone, Copy)]
struct Limit {
    whole: Option<Duration>,
    /// The time without a byte of the answer.
    read: Option<Duration>,
}

/// Returns the answer to a request that has not failed.
fn checked(endpoint: &str, mut answer: Response<Body>) -> Result<Response<Body>, RequestError> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string().unwrap_or_default();
    let Ok(Failure { message, error }) = serde_json::from_str(&text) else {
        return Err(RequestError::unexpected(endpoint, format_args!("HTTP {}", status.as_u16())));
    };
    Err(RequestError::reported(endpoint, status.as_u16(), &message.or(error).unwrap_or_default()))
}

fn read<A: DeserializeOwned>(endpoint: &str, answer: Response<Body>) -> Result<A, RequestError> {
    let mut answer = checked(endpoint, answer)?;
    let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
    let text = text.map_err(|error| RequestError::of(endpoint, error))?;
    serde_json::from_slice(&text).map_err(|error| RequestError::unexpected(endpoint, error))
}
