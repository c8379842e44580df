//! Addresses on the command line.

/// Returns `text` if it reads `host:port`. Whether such a host exists is not checked.
///
/// # Errors
///
/// Says how an address reads.
pub fn address(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err("an address reads host:port, with a port from 0 to 65535".to_owned()),
    }
}
