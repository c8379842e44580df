//! Encrypted connections: the certificate of the server is verified.

use std::env;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use playhouse::durable::Store;
use playhouse_postgres::PostgresStore;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::server::Server;

/// The variable that makes the test program play a part. Its value has the parameters of the connection.
const PART: &str = "PLAYHOUSE_POSTGRES_PART";

/// The entry of the process that the test starts, because the variable `SSL_CERT_FILE` holds for a whole process.
#[test]
fn part() {
    let Ok(parameters) = env::var(PART) else { return };
    match PostgresStore::connect(&parameters) {
        Ok(store) => {
            store.save("key", 0, b"").unwrap();
            println!("saved");
        }
        Err(error) => println!("refused: {error}"),
    }
}

#[test]
fn an_encrypted_connection_verifies_the_certificate_of_the_server() {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let issuer = Issuer::from_params(&authority, &authority_key);
    let server_key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&server_key, &issuer).unwrap();
    let other = CertificateParams::new([]).unwrap().self_signed(&KeyPair::generate().unwrap()).unwrap();

    let port = TcpListener::bind("localhost:0").unwrap().local_addr().unwrap().port();
    let mut files = None;
    let server = Server::start_with(|folder| {
        let write = |name: &str, text: String, mode| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        };
        let certificate = write("server.pem", certificate.pem(), 0o644);
        let key = write("server.key", server_key.serialize_pem(), 0o600);
        files = Some([write("ca.pem", authority_certificate.pem(), 0o644), write("other.pem", other.pem(), 0o644)]);
        let settings = [
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", certificate.display()),
            format!("ssl_key_file={}", key.display()),
            "listen_addresses=localhost".to_owned(),
        ];
        // The port names the Unix socket, too.
        let ports = ["-c".to_owned(), format!("port={port}")];
        settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]).chain(ports).collect()
    });
    let (Some(_server), Some([ca, other])) = (server, files) else { return };
    let outcome = |parameters: &str, roots: &std::path::Path| {
        let mut part = Command::new(env::current_exe().unwrap());
        part.args(["encryption::part", "--exact", "--nocapture"]).env("SSL_CERT_FILE", roots);
        part.env(PART, format!("user=test dbname=postgres port={port} {parameters}"));
        String::from_utf8(part.output().unwrap().stdout).unwrap()
    };
    let saved = outcome("host=localhost sslmode=require", &ca);
    assert!(saved.contains("saved"), "{saved}");
    let unknown = outcome("host=localhost sslmode=require", &other);
    assert!(unknown.contains("refused") && unknown.contains("invalid peer certificate"), "{unknown}");
    // The certificate does not have this name.
    let name = outcome("host=127.0.0.1 sslmode=require", &ca);
    assert!(name.contains("refused") && name.contains("not valid for name"), "{name}");
}
