//! Messages between theaters.

/// Declares the answer of a message.
macro_rules! remote_message {
    ($name:ident -> $reply:ty) => {
        impl playhouse_actor::Message for $name {
            type Reply = $reply;
            const WIRE: Option<playhouse_actor::wire::WireForm<$name>> = Some(playhouse_actor::wire::WireForm::of());
        }
    };
}
