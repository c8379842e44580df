//! The default transport of theaters.

use playhouse::transport::Tcp;
use playhouse_testkit::conformance::transport;

// GUARANTEE: Addresses are released
// GUARANTEE: Any transport
#[test]
fn tcp_keeps_all_rules() {
    transport::check("127.0.0.1:0", || Tcp).assert_all_kept();
}
