//! Everything that was seen, as JSON for programs.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::attached::Seen;

/// Describes the theaters. Times are numbers of seconds, under keys that end with `_seconds`.
pub fn describe(seen: &[Seen]) -> Value {
    let theaters = seen.iter().map(|seen| match &seen.state {
        Ok(snapshot) => {
            let snapshot = serde_json::to_value(snapshot).expect("INVARIANT: a snapshot has string keys only");
            let (came, left) = snapshot_migrations(&snapshot);
            let mut theater = with_seconds(snapshot);
            // The address that it was looked at, which is not always the one that it says.
            theater["address"] = seen.address.clone().into();
            theater["migrations"] = json!({ "in": came, "out": left });
            theater
        }
        Err(error) => json!({ "address": seen.address, "error": error }),
    });
    json!({ "theaters": theaters.collect::<Vec<_>>() })
}

fn snapshot_migrations(snapshot: &Value) -> (u64, u64) {
    let count = |at: usize| snapshot["migrations"][at].as_u64().unwrap_or(0);
    (count(0), count(1))
}

/// Replaces each time, which serde writes as seconds and nanoseconds, by a number of seconds.
fn with_seconds(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| match time(&value) {
                Some(time) => (format!("{key}_seconds"), json!(time.as_secs_f64())),
                None => (key, with_seconds(value)),
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(with_seconds).collect()),
        value => value,
    }
}

fn time(value: &Value) -> Option<Duration> {
    let fields = value.as_object().filter(|fields| fields.len() == 2)?;
    let nanos = u32::try_from(fields.get("nanos")?.as_u64()?).ok()?;
    Some(Duration::new(fields.get("secs")?.as_u64()?, nanos))
}
