//! Requests and answers of etcd's gateway for JSON. Numbers are texts, and bytes are texts in Base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes.
#[derive(Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Bytes).map_err(serde::de::Error::custom)
    }
}

/// A number of 64 bits.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct Number(pub(crate) u64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        String::deserialize(deserializer)?.parse().map(Number).map_err(serde::de::Error::custom)
    }
}

/// Asks for the keys from `key` to `range_end`, or for `key` alone if there is no end.
#[derive(Serialize, Default)]
pub(crate) struct Range {
    pub(crate) key: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) range_end: Option<Bytes>,
    pub(crate) limit: Number,
    pub(crate) keys_only: bool,
}

#[derive(Deserialize)]
pub(crate) struct RangeAnswer {
    pub(crate) header: Header,
    #[serde(default)]
    pub(crate) kvs: Vec<KeyValue>,
    #[serde(default)]
    pub(crate) more: bool,
}

/// The revision of the whole store: each change of a key gives the next one.
#[derive(Deserialize)]
pub(crate) struct Header {
    pub(crate) revision: Number,
}

#[derive(Deserialize)]
pub(crate) struct KeyValue {
    pub(crate) key: Bytes,
    #[serde(default)]
    pub(crate) value: Bytes,
    pub(crate) mod_revision: Number,
}

/// Executes `success` if the key has the expected revision, and `failure` otherwise.
#[derive(Serialize)]
pub(crate) struct Txn {
    pub(crate) compare: [Compare; 1],
    pub(crate) success: Vec<Operation>,
    pub(crate) failure: [Operation; 1],
}

/// Whether the revision of the last change of a key is this one. That of a missing key is 0.
#[derive(Serialize)]
pub(crate) struct Compare {
    pub(crate) key: Bytes,
    pub(crate) target: &'static str,
    pub(crate) result: &'static str,
    pub(crate) mod_revision: Number,
}

#[derive(Serialize)]
pub(crate) enum Operation {
    #[serde(rename = "request_put")]
    Put { key: Bytes, value: Bytes },
    #[serde(rename = "request_delete_range")]
    Delete { key: Bytes },
    #[serde(rename = "request_range")]
    Range(Range),
}

#[derive(Deserialize)]
pub(crate) struct TxnAnswer {
    pub(crate) header: Header,
    #[serde(default)]
    pub(crate) succeeded: bool,
    #[serde(default)]
    pub(crate) responses: Vec<OperationAnswer>,
}

#[derive(Deserialize)]
pub(crate) struct OperationAnswer {
    pub(crate) response_range: Option<RangeOfOperation>,
}

#[derive(Deserialize)]
pub(crate) struct RangeOfOperation {
    #[serde(default)]
    pub(crate) kvs: Vec<KeyValue>,
}

#[derive(Serialize)]
pub(crate) struct Authenticate<'a> {
    pub(crate) name: &'a str,
    pub(crate) password: &'a str,
}

#[derive(Deserialize)]
pub(crate) struct Authenticated {
    pub(crate) token: String,
}

#[derive(Serialize)]
pub(crate) struct Watch {
    pub(crate) create_request: WatchCreate,
}

#[derive(Serialize)]
pub(crate) struct WatchCreate {
    pub(crate) key: Bytes,
    pub(crate) range_end: Bytes,
}

/// The answer to a request that has failed. Versions of the gateway name the text differently.
#[derive(Deserialize)]
pub(crate) struct Failure {
    pub(crate) message: Option<String>,
    pub(crate) error: Option<String>,
}
